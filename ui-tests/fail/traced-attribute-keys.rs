//! Keys are literals or constants.

use stagetrace::{TraceState, Traced};

const NUMBER: u32 = 3;

#[derive(Traced)]
struct Request {
    #[traced(attr = "same")]
    one: u32,
    #[traced(attr = "same")]
    two: u32,
    #[traced(attr = "a key")]
    spaced: u32,
    #[traced(attr = 3)]
    number: u32,
    #[traced(attr = format!("x"))]
    call: u32,
    #[traced(state)]
    trace: TraceState,
}

#[derive(Traced)]
struct Other {
    #[traced(attr = NUMBER)]
    number: u32,
    #[traced(state)]
    trace: TraceState,
}

fn main() {}
