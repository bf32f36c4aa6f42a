//! The field for the trace is something else.

use stagetrace::Traced;

#[derive(Traced)]
struct Request {
    #[traced(state)]
    trace: u32,
}

fn main() {}
