//! Options that belong elsewhere.

use stagetrace::Stages;

#[derive(Stages)]
#[stages(level = 1)]
enum Steps {
    #[stage(crate = stagetrace)]
    One,
    #[stage("two")]
    Two,
}

fn main() {}
