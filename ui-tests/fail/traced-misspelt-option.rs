//! Options that do not exist.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
#[traced(nmae = "x", service = "y")]
struct Request {
    #[traced(skpi)]
    id: String,
    #[traced(atrt = "x")]
    other: String,
    #[traced(state)]
    trace: TraceState,
}

fn main() {}
