//! Stages that no set has.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForwrad)]
fn sync() {}

#[stage(Steps::GPU_FORWRAD)]
async fn later() {}

#[stage(Stpes::GpuForward)]
fn other_set() {}

fn main() {}
