//! How an attribute is recorded.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
struct Request {
    #[traced(display)]
    alone: String,
    #[traced(attr = "x", debug, len)]
    two: Vec<u32>,
    #[traced(attr)]
    no_key: u32,
    #[traced(attr = "y", with)]
    no_function: u32,
    #[traced(attr = "z", display = true)]
    with_value: u32,
    #[traced(state, attr = "state")]
    trace: TraceState,
}

fn main() {}
