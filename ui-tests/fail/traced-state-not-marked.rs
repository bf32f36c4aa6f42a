//! The field for the trace is not marked.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
struct Request {
    id: String,
    trace: TraceState,
}

fn main() {}
