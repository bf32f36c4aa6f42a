//! Options that do not exist.

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

#[stage(Steps::GpuForward, request, nmae = "x")]
fn key(request: &Request) {}

#[stage(Steps::GpuForward, request, detatched)]
fn word(request: &Request) {}

#[stage(Steps::GpuForward, errr)]
fn word_in_the_place_of_a_request(request: &Request) {}

#[stage(Steps::GpuForward, atrs("n" = 1))]
fn list() {}

#[stage(Steps::GpuForward, fields("n" = 1))]
fn of_another_framework() {}

#[stage(Steps::GpuForward, err = true, kind, crate, attrs = 3)]
fn wrong_form() {}

fn main() {}
