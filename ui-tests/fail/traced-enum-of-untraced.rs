//! What a variant holds must be traced.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
struct Good {
    #[traced(state)]
    trace: TraceState,
}

struct Untraced;

#[derive(Traced)]
enum Request {
    Good(Good),
    Bad(Untraced),
}

fn main() {}
