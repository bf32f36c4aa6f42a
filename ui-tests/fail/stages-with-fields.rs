//! Stages that hold something.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    One(u32),
    Two { steps: u32 },
    Three,
}

fn main() {}
