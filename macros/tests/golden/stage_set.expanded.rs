const _: () = {
    use ::stagetrace::__private0 as _st;
    static STAGE_0: _st::StageInfo = _st::StageInfo::new(
            "DiffStage",
            "scheduler_dispatch",
            1u8,
            ::core::option::Option::None,
        )
        .at({
            static SITE: _st::StageSite = _st::StageSite::new();
            &SITE
        });
    static STAGE_1: _st::StageInfo = _st::StageInfo::new(
            "DiffStage",
            "denoise_step",
            3u8,
            ::core::option::Option::Some(_st::Stage::new(&STAGE_0)),
        )
        .at({
            static SITE: _st::StageSite = _st::StageSite::new();
            &SITE
        });
    static STAGE_2: _st::StageInfo = _st::StageInfo::new(
            "DiffStage",
            "vae",
            2u8,
            ::core::option::Option::None,
        )
        .at({
            static SITE: _st::StageSite = _st::StageSite::new();
            &SITE
        });
    #[automatically_derived]
    #[allow(dead_code, deprecated, unreachable_patterns)]
    impl DiffStage {
        /// The scheduler works.
        ///
        /// Stage `scheduler_dispatch`, level 1.
        pub const SCHEDULER_DISPATCH: _st::Stage = _st::Stage::new(&STAGE_0);
        /// Stage `denoise_step`, level 3, within [`SchedulerDispatch`](Self::SchedulerDispatch).
        pub const STEP: _st::Stage = _st::Stage::new(&STAGE_1);
        /// All stages of this set, in order of declaration.
        pub const ALL: [Self; 3usize] = [Self::SchedulerDispatch, Self::Step, Self::VAE];
        /// The handle of this stage, which the recorder takes.
        #[must_use]
        pub const fn stage(self) -> _st::Stage {
            match self {
                Self::SchedulerDispatch => _st::Stage::new(&STAGE_0),
                Self::Step => _st::Stage::new(&STAGE_1),
                Self::VAE => _st::Stage::new(&STAGE_2),
            }
        }
        /// The stage that is exported under `name`, if this set has it.
        #[must_use]
        pub fn from_name(name: &::core::primitive::str) -> ::core::option::Option<Self> {
            match name {
                "scheduler_dispatch" => {
                    ::core::option::Option::Some(Self::SchedulerDispatch)
                }
                "denoise_step" => ::core::option::Option::Some(Self::Step),
                "vae" => ::core::option::Option::Some(Self::VAE),
                _ => ::core::option::Option::None,
            }
        }
    }
    #[automatically_derived]
    impl _st::StageSet for DiffStage {
        const NAME: &'static ::core::primitive::str = "DiffStage";
        const STAGES: &'static [_st::Stage] = &[
            _st::Stage::new(&STAGE_0),
            _st::Stage::new(&STAGE_1),
            _st::Stage::new(&STAGE_2),
        ];
    }
    #[_st::linkme::distributed_slice(_st::STAGE_SETS)]
    #[linkme(crate = _st::linkme)]
    static STAGES: &'static [_st::Stage] = <DiffStage as _st::StageSet>::STAGES;
};
