//! All mistakes are reported at once, each on its own token.

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

#[stage(Steps::GpuForward, reqest, nmae = "x", kind = sever, attrs("a b" = 1), batch = request)]
const fn forward(request: &Request) {}

// It is still there.
const ONE: fn(&Request) = forward;

fn main() {}
