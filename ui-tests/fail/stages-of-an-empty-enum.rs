//! A set without stages.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {}

fn main() {}
