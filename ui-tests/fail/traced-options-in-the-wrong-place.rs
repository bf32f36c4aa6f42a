//! Options that belong elsewhere.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
#[traced(id, stages)]
struct Request {
    #[traced(name = "x")]
    id: String,
    #[traced("text")]
    other: String,
    #[traced]
    nothing: String,
    #[traced(state)]
    trace: TraceState,
}

fn main() {}
