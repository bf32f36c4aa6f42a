//! From noise to digits: the job, and the times at which the network is asked.

use std::fmt;

use crate::model::{LABELS, PIXELS};

/// Digits to be drawn in one go.
#[derive(Clone, Debug)]
pub struct Job {
    /// Which digit each image shows: 0 to 9.
    pub labels: Vec<usize>,
    /// The noise to begin with, [`PIXELS`] numbers for each image.
    pub noise: Vec<f32>,
    /// How many steps from noise to image; at least 1.
    pub steps: u32,
    /// Weight of the label: 0 ignores it, 1 follows the network, more exaggerates.
    pub guidance: f32,
}

impl Job {
    pub fn images(&self) -> usize {
        self.labels.len()
    }

    /// Whether an engine may run it. A job that is refused here is a mistake of the program.
    pub fn check(&self) -> Result<(), MalformedJob> {
        let well_formed = self.steps > 0
            && !self.labels.is_empty()
            && self.labels.iter().all(|&label| label < LABELS)
            && self.noise.len() == self.images() * PIXELS;
        if well_formed { Ok(()) } else { Err(MalformedJob) }
    }
}

/// The time at the begin of a step: 1 (all noise), then down in equal steps.
pub fn time(step: u32, steps: u32) -> f32 {
    1.0 - step as f32 / steps as f32
}

/// A job whose labels, noise and steps do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedJob;

impl fmt::Display for MalformedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a job needs a step, an image, labels below 11 and 64 numbers of noise an image",
        )
    }
}

impl std::error::Error for MalformedJob {}
