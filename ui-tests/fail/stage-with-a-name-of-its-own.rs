//! A declared stage has its name.

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

const NAME: &str = "x";

#[stage(Steps::GpuForward, name = "other")]
fn named(request: &Request) {}

#[stage("name", name = NAME)]
fn twice() {}

#[stage(name = 3)]
fn number() {}

#[stage("")]
fn empty() {}

#[stage(" padded")]
fn padded() {}

fn main() {}
