//! Attributes are numbers, texts and the like.

use stagetrace::{Stages, TraceState, Traced, stage};

#[derive(Stages)]
enum Steps {
    GpuForward,
    Decode,
}

#[derive(Traced)]
#[traced(stages = Steps)]
struct Request {
    #[traced(state)]
    trace: TraceState,
}

struct Latents;

#[stage(Steps::GpuForward, attrs("latents" = latents))]
fn sync(latents: &Latents) {}

#[stage(Steps::GpuForward, attrs("n" = 1, "latents" = (latents, 3)))]
async fn later(latents: Latents) {}

#[stage(Steps::GpuForward, ret)]
fn returned() -> Latents {
    Latents
}

fn main() {}
