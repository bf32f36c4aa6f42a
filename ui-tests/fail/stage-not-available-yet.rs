//! Options that are not built yet.

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

#[stage(Steps::GpuForward, batch = requests)]
fn batch(requests: &[Request]) {}

#[stage(Steps::GpuForward, batch = requests, share = request.steps)]
fn share(requests: &[Request]) {}

#[stage(Steps::GpuForward, stream)]
fn stream() -> impl Iterator<Item = u32> {
    std::iter::empty()
}

fn main() {}
