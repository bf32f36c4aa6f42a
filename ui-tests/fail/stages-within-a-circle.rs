//! Stages that lie within each other.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    #[stage(within = Two)]
    One,
    #[stage(within = Three)]
    Two,
    #[stage(within = One)]
    Three,
    #[stage(within = Four)]
    Four,
    #[stage(within = Four)]
    Five,
}

fn main() {}
