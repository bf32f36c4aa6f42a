//! Lints stay on the user's tokens.

#![deny(unused_variables, unused_mut, unused_must_use, unreachable_code, dead_code, unused_assignments)]

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward)]
fn sync(unused: u32, mut unmutated: u32) -> u32 {
    let unused_local = 1;
    unmutated
}

#[stage(Steps::GpuForward)]
async fn later((unused, used): (u32, u32), mut unmutated: u32) -> u32 {
    sync(used, 1);
    return unmutated;
    drop(later);
}

#[stage(Steps::GpuForward)]
fn never_called() {}

fn main() {
    later((1, 2), 3);
    sync(1, 2);
}
