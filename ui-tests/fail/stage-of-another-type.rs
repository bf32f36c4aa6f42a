//! What stands first is a stage.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

const NAME: &str = "name";

enum NotASet {
    One,
}

#[stage(NAME)]
fn text() {}

#[stage(NotASet::One)]
fn variant() {}

#[stage(3)]
fn number() {}

#[stage(pick(3))]
fn call() {}

fn main() {}
