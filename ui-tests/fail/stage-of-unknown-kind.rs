//! Kinds of spans.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward, kind = sever)]
fn misspelt() {}

#[stage(Steps::GpuForward, kind = "server")]
fn text() {}

fn main() {}
