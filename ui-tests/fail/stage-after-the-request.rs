//! The stage comes first.

use stagetrace::{Stages, TraceState, Traced, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
    Decode,
}

#[derive(Traced)]
#[traced(stages = Steps)]
struct Request {
    #[traced(state)]
    trace: TraceState,
}

#[stage(request, Steps::GpuForward)]
fn forward(request: &Request) {}

fn main() {}
