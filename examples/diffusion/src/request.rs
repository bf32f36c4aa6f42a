//! What a request is, and the stages of its life.

use stagetrace::{Stages, TraceState, Traced};

/// The stages of the diffusion server; the request itself is the root above them.
#[derive(Stages, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffStage {
    /// Accepted, waiting for its turn.
    #[stage(level = 1)]
    QueueWait,
    /// Prompt and seed become label and noise.
    #[stage(level = 2)]
    EncodePrompt,
    /// In the hands of the device, from its channel to its reply.
    #[stage(level = 1)]
    SchedulerDispatch,
    /// In the device's channel.
    #[stage(level = 2, within = SchedulerDispatch)]
    GpuQueueWait,
    /// Commands are recorded.
    #[stage(level = 2, within = SchedulerDispatch)]
    GpuEncode,
    /// From just before the submission to when its completion was seen.
    #[stage(level = 1, within = SchedulerDispatch)]
    GpuForward,
    /// One step of the sampler: a compute pass, timed by the GPU's own clock.
    #[stage(level = 3, within = GpuForward)]
    DenoiseStep,
    /// Numbers become a PNG.
    #[stage(level = 2)]
    Decode,
}

/// A request for pictures of one digit.
#[derive(Traced, Debug)]
#[traced(name = "generate", stages = DiffStage)]
pub struct GenerateRequest {
    #[traced(id)]
    pub id: String,
    #[traced(attr = "gen_ai.request.model")]
    pub model: String,
    #[traced(attr = "gen_ai.request.choice.count")]
    pub images: u32,
    #[traced(attr = "gen_ai.request.seed")]
    pub seed: u64,
    #[traced(attr = "diffusion.steps")]
    pub steps: u32,
    #[traced(attr = "diffusion.guidance")]
    pub guidance: f32,
    #[traced(attr = "gpu.available")]
    pub gpu_available: bool,
    /// Not recorded: recording is opt-in, and prompts are private.
    pub prompt: String,
    #[traced(state)]
    pub trace: TraceState,
}
