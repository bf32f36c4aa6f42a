//! `ret` and `future` are about what is returned.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward, ret)]
fn unit() {}

#[stage(Steps::GpuForward, ret)]
fn never() -> ! {
    panic!()
}

#[stage(Steps::GpuForward, future)]
async fn is_async() -> u32 {
    1
}

#[stage(Steps::GpuForward, future)]
fn is_known() -> impl Future<Output = ()> {
    std::future::ready(())
}

fn main() {}
