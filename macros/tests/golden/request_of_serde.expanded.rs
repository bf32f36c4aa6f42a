#[derive(facade::stagetrace::__private0::Traced)]
#[traced(crate = facade::stagetrace)]
#[derive(Serialize, Deserialize)]
pub(crate) struct Always {
    id: String,
    /// The trace of this request.
    #[traced(state)]
    #[serde(
        default,
        rename = "_trace_state",
        skip_serializing_if = "facade::stagetrace::__private0::TraceState::is_null"
    )]
    pub(crate) trace: facade::stagetrace::__private0::TraceState,
}

#[derive(::stagetrace::__private0::Traced)]
#[cfg_attr(feature = "serde", derive(Serialize))]
struct Conditional {
    id: String,
    /// The trace of this request.
    #[traced(state)]
    #[cfg_attr(any(feature = "serde"), serde(default, rename = "_trace_state"))]
    trace: ::stagetrace::__private0::TraceState,
}
