const _: () = {
    use ::stagetrace::__private0 as _st;
    #[automatically_derived]
    impl<T> _st::Traced for Either<T>
    where
        T: _st::Traced,
    {
        fn site(&self) -> &'static _st::Site {
            match self {
                Self::Generate { 0: inner } => _st::Traced::site(inner),
                Self::Other { request: inner } => _st::Traced::site(inner),
            }
        }
        fn trace_state(&self) -> &_st::TraceState {
            match self {
                Self::Generate { 0: inner } => _st::Traced::trace_state(inner),
                Self::Other { request: inner } => _st::Traced::trace_state(inner),
            }
        }
        fn trace_state_mut(&mut self) -> &mut _st::TraceState {
            match self {
                Self::Generate { 0: inner } => _st::Traced::trace_state_mut(inner),
                Self::Other { request: inner } => _st::Traced::trace_state_mut(inner),
            }
        }
        fn record(&self, out: &mut _st::RequestRecorder<'_>) {
            match self {
                Self::Generate { 0: inner } => _st::Traced::record(inner, out),
                Self::Other { request: inner } => _st::Traced::record(inner, out),
            }
        }
    }
    #[automatically_derived]
    impl<T> _st::Carrier for Either<T>
    where
        T: _st::Traced,
    {
        type Request = Self;
        fn position(&self) -> _st::Position {
            _st::Carrier::position(_st::Traced::trace_state(self))
        }
    }
    #[automatically_derived]
    impl<T, __Set: ?::core::marker::Sized> _st::Accepts<__Set> for Either<T>
    where
        Box<Request>: _st::Accepts<__Set>,
        T: _st::Accepts<__Set>,
    {}
};
