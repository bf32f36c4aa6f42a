//! A stage of a pipeline that the request does not go through.

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

#[derive(Stages)]
enum RolloutStage {
    Judge,
}

#[stage(RolloutStage::Judge, request)]
fn sync(request: &Request) {}

#[stage(RolloutStage::Judge, job.0)]
async fn later(job: (Box<Request>, u32)) {}

fn main() {}
