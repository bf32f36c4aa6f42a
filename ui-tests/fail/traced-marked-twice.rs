//! One id, one state.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
struct Request {
    #[traced(id)]
    id: String,
    #[traced(id, id)]
    other: String,
    #[traced(state)]
    trace: TraceState,
    #[traced(state)]
    other_trace: TraceState,
}

fn main() {}
