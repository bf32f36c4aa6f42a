//! Variants whose constants would have one name.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    All,
    #[stage(name = "first")]
    GpuForward,
    #[stage(name = "second")]
    GPUForward,
    #[stage(name = "third")]
    Vae,
    VAE,
}

fn main() {}
