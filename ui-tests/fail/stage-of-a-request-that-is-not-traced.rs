//! The request does not derive `Traced`.

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

struct Untraced;

#[stage(Steps::GpuForward, request)]
fn sync(request: &Untraced) {}

#[stage(Steps::GpuForward, job.1)]
async fn later(job: (Request, Untraced)) {}

#[stage("free", request)]
fn free(request: Option<Untraced>) {}

fn main() {}
