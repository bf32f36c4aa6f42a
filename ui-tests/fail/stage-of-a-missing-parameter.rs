//! The request is no parameter.

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

#[stage(Steps::GpuForward, reqest)]
fn misspelt(request: &Request) {}

#[stage(Steps::GpuForward, job.request)]
fn missing() {}

#[stage(Steps::GpuForward, self.request)]
fn no_receiver(request: &Request) {}

#[stage(Steps::GpuForward, request.trase)]
fn field(request: &Request) {}

fn main() {}
