//! What is no function stays as it is.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward)]
struct Request {
    n: u32,
}

#[stage(Steps::GpuForward)]
impl Request {
    fn n(&self) -> u32 {
        self.n
    }
}

#[stage(Steps::GpuForward)]
const N: u32 = 3;

fn used(request: &Request) -> u32 {
    request.n() + N
}

fn main() {}
