//! All mistakes are reported at once, and no other one for them.

use stagetrace::{Stages, stage};

#[derive(Stages)]
enum Steps {
    #[stage(level = 9, within = Nowhere)]
    GpuForward,
    #[stage(nmae = "x")]
    Decode(u32),
    GPUForward,
}

// What was declared can be used, so that these lines add nothing.
#[stage(Steps::GpuForward)]
fn forward() {
    let _ = (Steps::GPU_FORWARD, Steps::DECODE, Steps::ALL, Steps::from_name("decode"));
}

fn main() {}
