::core::compile_error! {
    "unknown option `nmae`; did you mean `name`?"
}
::core::compile_error! {
    "no parameter `reqest`; did you mean `request`?"
}
::core::compile_error! {
    "a `const fn` can run at compile time, where nothing is recorded: remove `const` or `#[stage]`"
}
#[allow(unused_variables)]
const fn forward(request: &Request) {}

::core::compile_error! {
    "a stage is a constant and holds nothing: remove the fields"
}
::core::compile_error! {
    "a level is 1 (important), 2 (normal, the default) or 3 (detail)"
}
const _: () = {
    use ::stagetrace::__private0 as _st;
    static STAGE_0: _st::StageInfo = _st::StageInfo::new(
            "Stages",
            "decode",
            2u8,
            ::core::option::Option::None,
        )
        .at({
            static SITE: _st::StageSite = _st::StageSite::new();
            &SITE
        });
    #[automatically_derived]
    #[allow(dead_code, deprecated, unreachable_patterns)]
    impl Stages {
        /// Stage `decode`, level 2.
        const DECODE: _st::Stage = _st::Stage::new(&STAGE_0);
        /// All stages of this set, in order of declaration.
        const ALL: [Self; 0usize] = [];
        /// The handle of this stage, which the recorder takes.
        #[must_use]
        const fn stage(self) -> _st::Stage {
            let stage = match &self {
                Self::Decode { .. } => _st::Stage::new(&STAGE_0),
            };
            ::core::mem::forget(self);
            stage
        }
        /// The stage that is exported under `name`, if this set has it.
        #[must_use]
        fn from_name(name: &::core::primitive::str) -> ::core::option::Option<Self> {
            match name {
                _ => ::core::option::Option::None,
            }
        }
    }
    #[automatically_derived]
    impl _st::StageSet for Stages {
        const NAME: &'static ::core::primitive::str = "Stages";
        const STAGES: &'static [_st::Stage] = &[_st::Stage::new(&STAGE_0)];
    }
    #[_st::linkme::distributed_slice(_st::STAGE_SETS)]
    #[linkme(crate = _st::linkme)]
    static STAGES: &'static [_st::Stage] = <Stages as _st::StageSet>::STAGES;
};

::core::compile_error! {
    "a request needs a field for its trace: add `#[traced(state)] trace: TraceState`, or write `#[stagetrace::request]` above the derives, which adds it"
}
const _: () = {
    use ::stagetrace::__private0 as _st;
    impl<T> _st::Traced for Untraced<T> {
        fn site(&self) -> &'static _st::Site {
            ::core::unreachable!()
        }
        fn trace_state(&self) -> &_st::TraceState {
            ::core::unreachable!()
        }
        fn trace_state_mut(&mut self) -> &mut _st::TraceState {
            ::core::unreachable!()
        }
        fn record(&self, _: &mut _st::RequestRecorder<'_>) {}
    }
    impl<T> _st::Carrier for Untraced<T> {
        type Request = Self;
        fn position(&self) -> _st::Position {
            ::core::unreachable!()
        }
    }
    #[automatically_derived]
    impl<T, __Set: ?::core::marker::Sized> _st::Accepts<__Set> for Untraced<T> {}
};
