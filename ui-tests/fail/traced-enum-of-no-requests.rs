//! Each variant holds one request.

use stagetrace::{TraceState, Traced};

#[derive(Traced)]
#[traced(name = "any")]
enum Request {
    Nothing,
    Two(u32, u32),
    Marked(#[traced(state)] TraceState),
}

#[derive(Traced)]
enum Empty {}

#[derive(Traced)]
union Bits {
    a: u32,
}

fn main() {}
