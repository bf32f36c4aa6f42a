//! Two stages on one function.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward)]
#[stage("again")]
fn short() {}

#[stage(Steps::GpuForward)]
#[inline]
#[stagetrace::stage("again")]
async fn by_path() {}

fn main() {}
