const _: () = {
    use ::stagetrace::__private0 as _st;
    const __STAGETRACE_KEYS: [&::core::primitive::str; 4usize] = [
        "diffusion.steps",
        keys::PROMPT,
        "shape",
        "seconds",
    ];
    #[automatically_derived]
    impl<'a, T: Clone> _st::Traced for Request<'a, T>
    where
        Option<T>: _st::Value,
    {
        fn site(&self) -> &'static _st::Site {
            static __STAGETRACE_INFO: _st::StageInfo = _st::StageInfo::new(
                "",
                "generate",
                1u8,
                ::core::option::Option::None,
            );
            static __STAGETRACE_SITE: _st::Site = _st::Site::new(
                _st::Stage::new(&__STAGETRACE_INFO),
                _st::SpanKind::Server,
                &__STAGETRACE_KEYS,
                "",
                ::core::file!(),
                ::core::line!(),
            );
            &__STAGETRACE_SITE
        }
        fn trace_state(&self) -> &_st::TraceState {
            _st::StateField::shared(&self.trace)
        }
        fn trace_state_mut(&mut self) -> &mut _st::TraceState {
            _st::StateField::exclusive(&mut self.trace)
        }
        fn record(&self, out: &mut _st::RequestRecorder<'_>) {
            {
                use _st::OtherId as _;
                out.id(&self.id, _st::PlainId(&self.id).known());
            }
            out.attribute(__STAGETRACE_KEYS[0usize], &self.steps);
            out.attribute(__STAGETRACE_KEYS[1usize], &self.prompt.len());
            out.debug(__STAGETRACE_KEYS[2usize], &self.shape);
            out.attribute(__STAGETRACE_KEYS[3usize], &Duration::as_secs_f64(&self.time));
        }
    }
    #[automatically_derived]
    impl<'a, T: Clone> _st::Carrier for Request<'a, T> {
        type Request = Self;
        fn position(&self) -> _st::Position {
            _st::Carrier::position(_st::StateField::shared(&self.trace))
        }
    }
    #[automatically_derived]
    impl<'a, T: Clone> _st::Accepts<Prefill> for Request<'a, T> {}
    #[automatically_derived]
    impl<'a, T: Clone> _st::Accepts<Decode> for Request<'a, T> {}
    #[automatically_derived]
    impl<'a, T: Clone> _st::Accepts<_st::Stage> for Request<'a, T> {}
};
