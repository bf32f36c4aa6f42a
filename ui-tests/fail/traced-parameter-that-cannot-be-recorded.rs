//! The bound is on what is recorded.

use stagetrace::{Stages, TraceState, Traced, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

struct Latents;

#[derive(Traced)]
struct Request<T> {
    #[traced(attr = "value")]
    value: T,
    #[traced(state)]
    trace: TraceState,
}

// Carrying a trace asks nothing of it.
#[stage(Steps::GpuForward, _request)]
fn forward(_request: &Request<Latents>) {}

fn is_traced(_request: &impl Traced) {}

fn uses(request: &Request<Latents>) {
    is_traced(request);
}

fn main() {}
