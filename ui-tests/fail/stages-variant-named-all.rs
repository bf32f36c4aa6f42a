//! `ALL` lists all stages.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    ALL,
    One,
}

fn main() {}
