//! A method without a body.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

trait Engine {
    #[stage(Steps::GpuForward)]
    fn sync(&self);

    #[stage(Steps::GpuForward)]
    async fn later(&self) -> u32;
}

struct Cpu;

impl Engine for Cpu {
    fn sync(&self) {}

    async fn later(&self) -> u32 {
        1
    }
}

fn main() {}
