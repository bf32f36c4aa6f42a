//! Which stages a request accepts.

use stagetrace::{Stages, TraceState, Traced};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[derive(Traced)]
#[traced(stages = [Steps, Steps])]
struct Twice {
    #[traced(state)]
    trace: TraceState,
}

#[derive(Traced)]
#[traced(stages = [])]
struct Empty {
    #[traced(state)]
    trace: TraceState,
}

#[derive(Traced)]
#[traced(stages = "Steps", name = "", kind = sever, bound = "T Display")]
struct Text {
    #[traced(state)]
    trace: TraceState,
}

fn main() {}
