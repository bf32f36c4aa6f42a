//! Requests to a model, with stages that end in every way.

use super::support::steps;
use stagetrace::{
    Failure, Judged, Outcome, StageOutcome, Stages, TraceState, Traced, event, span, stage,
};
use std::time::Duration;

#[derive(Stages, Clone, Copy)]
pub(crate) enum Pipeline {
    Prefill,
    #[stage(within = Prefill)]
    Attention,
    Decode,
}

#[derive(Traced)]
#[traced(name = "generate", stages = Pipeline)]
pub(crate) struct Generate {
    #[traced(id)]
    id: String,
    #[traced(attr = "gen_ai.operation.name")]
    operation: Option<&'static str>,
    #[traced(attr = "gen_ai.provider.name")]
    provider: &'static str,
    #[traced(attr = "gen_ai.request.model")]
    model: &'static str,
    #[traced(attr = "user.id")]
    user: String,
    #[traced(attr = "gen_ai.response.time_to_first_chunk")]
    pub(crate) first_chunk: Option<f64>,
    #[traced(attr = "gen_ai.usage.output_tokens")]
    pub(crate) tokens: u64,
    #[traced(state)]
    trace: TraceState,
}

impl Generate {
    pub(crate) fn new(number: usize) -> Generate {
        Generate {
            id: format!("request-{number}"),
            operation: None,
            provider: "stagetrace",
            model: "tiny",
            user: format!("user-{number}"),
            first_chunk: None,
            tokens: 0,
            trace: TraceState::default(),
        }
    }

    pub(crate) fn chat(number: usize) -> Generate {
        Generate { operation: Some("chat"), ..Generate::new(number) }
    }
}

#[stage(Pipeline::Prefill, request)]
fn prefill(request: &Generate, takes: Duration) {
    std::thread::sleep(takes);
    let _ = (attention(request, 1), attention(request, 2));
}

#[stage(Pipeline::Attention, _request, attrs("head" = head), err)]
pub(crate) fn attention(_request: &Generate, head: u8) -> Result<u8, std::num::ParseIntError> {
    event!("kernel");
    if head == 1 { Ok(head) } else { "two".parse() }
}

#[stage(Pipeline::Decode, _request)]
pub(crate) fn decode(_request: &Generate, panics: bool) {
    assert!(!panics, "as it should");
}

/// A failure of this kind.
pub(crate) struct Named(&'static str);

impl StageOutcome for Named {
    type Error = std::convert::Infallible;

    fn failure(&self, _: bool) -> Option<Failure<'_, Self::Error>> {
        Some(Failure::Named(self.0))
    }
}

#[stage("failing")]
pub(crate) fn failing(kind: &'static str) -> Named {
    Named(kind)
}

/// Requests with stages that end in every way, and spans of no request.
pub(crate) fn work() {
    for number in 0..20 {
        let mut request = Generate::new(number);
        request.begin(None);
        prefill(&request, Duration::from_millis(number as u64));
        let panics = number % 5 == 0;
        let decoded = std::panic::catch_unwind(|| decode(&request, panics));
        match (number % 4, decoded) {
            (0, _) => {} // dropped
            (1, _) => request.finish(Judged::error("overloaded")),
            (_, Err(_)) => request.finish(Outcome::Panic),
            (_, Ok(())) => request.finish(Outcome::Ok),
        }
    }
    steps(0, 500);
    drop(span!("alone", "n" = 1));
}
