//! A set that does not exist.

use stagetrace::{Stages, TraceState, Traced};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[derive(Traced)]
#[traced(stages = Stpes)]
struct Unknown {
    #[traced(state)]
    trace: TraceState,
}

fn main() {}
