//! Levels are 1 to 3.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    #[stage(level = 0)]
    One,
    #[stage(level = 4)]
    Two,
    #[stage(level = 300)]
    Three,
    #[stage(level = -1)]
    Four,
}

fn main() {}
