//! Without a stage.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage]
fn bare() {}

#[stage()]
fn empty() {}

#[stage(err)]
fn only_options() -> Result<(), ()> {
    Ok(())
}

fn main() {}
