//! The request and the stages that most tests use: a picture is made in steps.

use serde::{Deserialize, Serialize};
use stagetrace::{Stages, TraceState, Traced, stage};

/// The stages of the picture server.
#[derive(Stages, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// Waits for its turn and gets it.
    #[stage(level = 1)]
    SchedulerDispatch,
    /// All steps.
    #[stage(level = 1, within = SchedulerDispatch)]
    GpuForward,
    /// One step.
    #[stage(level = 3, within = GpuForward)]
    DenoiseStep,
    /// From latents to a picture.
    #[stage(within = SchedulerDispatch)]
    Decode,
}

/// A picture that somebody wants.
#[derive(Clone, Debug, Default, Serialize, Deserialize, Traced)]
#[traced(name = "generate", stages = Pipeline)]
pub struct Generate {
    /// Names the request.
    #[traced(id)]
    pub id: String,
    /// Which model is to make it.
    #[traced(attr = "gen_ai.request.model")]
    pub model: String,
    /// In how many steps.
    #[traced(attr = "diffusion.steps")]
    pub steps: u32,
    /// Of what. Not recorded.
    pub prompt: String,
    /// The trace.
    #[traced(state)]
    #[serde(default, rename = "_trace_state")]
    pub trace: TraceState,
}

impl Generate {
    /// A request that has not begun.
    pub fn new(id: &str, steps: u32) -> Generate {
        let (id, model) = (id.to_owned(), "digits".to_owned());
        Generate {
            id,
            model,
            steps,
            prompt: "a secret seven".to_owned(),
            trace: TraceState::null(),
        }
    }

    /// A request whose root is open.
    pub fn begun(id: &str) -> Generate {
        let mut request = Generate::new(id, 2);
        request.begin(None);
        request
    }
}

/// Runs `body` inside the first stage.
#[stage(Pipeline::SchedulerDispatch, _request)]
pub fn dispatch<R>(_request: &Generate, body: impl FnOnce() -> R) -> R {
    body()
}

/// All steps, one after the other.
#[stage(Pipeline::GpuForward, request)]
pub fn forward(request: &Generate) {
    for step in 0..request.steps {
        denoise_step(step);
    }
}

/// One step.
#[stage(Pipeline::DenoiseStep, attrs("diffusion.step" = step))]
pub fn denoise_step(step: u32) {
    std::hint::black_box(step);
}

/// Makes the picture.
#[stage(Pipeline::Decode, _request)]
pub fn decode(_request: &Generate) -> usize {
    28 * 28
}

/// Begins a request, runs it through all stages, and finishes it.
pub fn serve(id: &str, steps: u32) {
    let mut request = Generate::new(id, steps);
    request.begin(None);
    dispatch(&request, || {
        forward(&request);
        decode(&request);
    });
    request.finish(stagetrace::Outcome::Ok);
}
