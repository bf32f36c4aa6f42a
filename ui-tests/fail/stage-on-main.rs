//! `main` begins before the recorder.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
}

#[stage(Steps::GpuForward)]
fn main() {
    other::main(3);
}

mod other {
    #[stagetrace::stage("no entry point")]
    pub fn main(_: u32) {}
}
