//! A request, or a trace of its own.

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

#[stage(Steps::GpuForward, request, detached)]
fn forward(request: &Request) {}

fn main() {}
