//! Each field names the type that is wrong.

use stagetrace::{TraceState, Traced};

struct Latents;

#[derive(Traced)]
struct Request {
    #[traced(id)]
    id: Latents,
    #[traced(attr = "latents")]
    latents: Vec<Latents>,
    #[traced(attr = "shown", display)]
    shown: Latents,
    #[traced(attr = "debugged", debug)]
    debugged: Latents,
    #[traced(attr = "length", len)]
    length: Latents,
    #[traced(attr = "with", with = shorten)]
    with: Latents,
    #[traced(state)]
    trace: TraceState,
}

fn shorten(latents: &u32) -> u32 {
    *latents
}

fn main() {}
