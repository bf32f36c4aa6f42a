//! What turns jobs into digits: a GPU, or the processor where there is none.

use thiserror::Error;

use crate::progress::Progress;
use crate::sampler::{Job, MalformedJob};

/// Runs jobs, one after the other, on the one thread that owns it.
pub trait Engine {
    /// The digits of a job: `model::PIXELS` numbers for each of its labels.
    fn run(&mut self, job: &Job, progress: &Progress) -> Result<Vec<f32>, EngineError>;
}

/// Why a job failed.
#[derive(Debug, Error)]
pub enum EngineError {
    #[error(transparent)]
    Malformed(#[from] MalformedJob),
    #[error("the GPU refused the work: {0}")]
    Refused(String),
    #[error("the GPU is lost: {0}")]
    Lost(String),
}
