#[derive(::stagetrace::__private0::Traced)]
#[traced(name = "generate", stages = DiffStage)]
#[derive(Clone)]
pub struct Request {
    #[traced(id)]
    pub id: String,
    /// The trace of this request.
    #[traced(state)]
    pub trace: ::stagetrace::__private0::TraceState,
}
