//! A `const fn` is still there, and the only mistake.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward)]
const fn forward() -> u32 {
    1
}

const ONE: u32 = forward();

fn main() {}
