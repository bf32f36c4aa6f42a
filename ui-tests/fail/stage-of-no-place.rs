//! The request is a place, not an expression.

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

#[stage(Steps::GpuForward, &request)]
fn reference(request: Request) {}

#[stage(Steps::GpuForward, request.clone())]
fn call(request: &Request) {}

#[stage(Steps::GpuForward, "request")]
fn text(request: &Request) {}

#[stage(Steps::GpuForward, request, request)]
fn twice(request: &Request) {}

#[stage(Steps::GpuForward, request, request.trace)]
fn too_many(request: &Request) {}

fn main() {}
