//! A level is a number.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    #[stage(level = "high")]
    One,
    #[stage(level)]
    Two,
    #[stage(level = )]
    Three,
    #[stage]
    Four,
    #[stage = 3]
    Five,
}

fn main() {}
