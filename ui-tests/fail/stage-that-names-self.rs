//! A stage is a constant outside of the function.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

impl Steps {
    const KEY: &'static str = "key";

    #[stage(Self::GpuForward)]
    fn of_self(self) {}

    #[stage(Steps::GpuForward, attrs(Self::KEY = 1))]
    fn key_of_self(self) {}
}

fn main() {}
