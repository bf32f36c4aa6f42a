//! One option, two values.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    #[stage(level = 1, level = 2)]
    One,
    #[stage(name = "a")]
    #[stage(name = "b")]
    Two,
}

fn main() {}
