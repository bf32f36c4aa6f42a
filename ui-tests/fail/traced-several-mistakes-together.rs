//! All mistakes are reported at once, and no other one for them.

use stagetrace::{Stages, TraceState, Traced, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[derive(Traced)]
#[traced(nmae = "x")]
struct Request {
    #[traced(id)]
    #[traced(attr = "a b")]
    id: String,
    #[traced(id, display)]
    other: String,
    trace: TraceState,
}

// It counts as traced, so that these lines add nothing.
#[stage(Steps::GpuForward, request)]
fn forward(request: &Request) -> &TraceState {
    request.trace_state()
}

fn main() {}
