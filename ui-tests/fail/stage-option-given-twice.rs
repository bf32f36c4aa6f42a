//! One option twice, and two that contradict each other.

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

#[stage(Steps::GpuForward, err, err)]
fn word() -> Result<(), ()> {
    Ok(())
}

#[stage(Steps::GpuForward, kind = client, kind = server)]
fn key() {}

#[stage(Steps::GpuForward, err, no_err)]
fn contradiction() -> Result<(), ()> {
    Ok(())
}

fn main() {}
