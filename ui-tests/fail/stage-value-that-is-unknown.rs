//! A value that names nothing.

use stagetrace::stage;

#[stage("forward", attrs("steps" = stesp))]
fn sync(steps: u32) -> u32 {
    steps
}

#[stage("forward", attrs("steps" = stesp))]
async fn later(steps: u32) -> u32 {
    steps
}

fn main() {}
