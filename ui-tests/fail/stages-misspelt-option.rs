//! Options that do not exist.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    #[stage(levle = 1)]
    One,
    #[stage(parent = One)]
    Two,
}

fn main() {}
