//! Keys and values of attributes.

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

const KEY: &str = "the.key";
const NUMBER: u32 = 3;

#[stage(Steps::GpuForward, attrs("n"))]
fn without_value(n: u32) {}

#[stage(Steps::GpuForward, attrs(n))]
fn shorthand(n: u32) {}

#[stage(Steps::GpuForward, attrs(n = n))]
fn lower_case_key(n: u32) {}

#[stage(Steps::GpuForward, attrs("a key" = n, "" = n, 3 = n, "same" = n, "same" = n, KEY = n, KEY = n))]
fn keys(n: u32) {}

#[stage(Steps::GpuForward, attrs(NUMBER = _n))]
fn key_of_another_type(_n: u32) {}

#[stage(Steps::GpuForward, attrs("n" = ))]
fn no_value(n: u32) {}

fn main() {}
