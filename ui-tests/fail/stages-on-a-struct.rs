//! Stages are the variants of an enum.

use stagetrace::Stages;

#[derive(Stages)]
struct Steps {
    gpu_forward: u32,
}

fn main() {}
