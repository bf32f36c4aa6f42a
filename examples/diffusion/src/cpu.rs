//! The engine without a GPU: the reference model on one thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use stagetrace::stage;

use crate::engine::{Engine, EngineError};
use crate::model::{NO_LABEL, PIXELS};
use crate::progress::Progress;
use crate::request::DiffStage;
use crate::sampler::{self, Job};
use crate::weights::Weights;

/// Runs jobs on the processor.
pub struct Cpu {
    weights: Arc<Weights>,
}

/// What is the same for all images of a step: the conditioning of each label that occurs.
type Conditionings = BTreeMap<usize, Vec<f32>>;

impl Cpu {
    pub fn new(weights: Arc<Weights>) -> Self {
        Cpu { weights }
    }

    /// The conditionings of all steps.
    #[stage(DiffStage::GpuEncode)]
    fn encode(&self, job: &Job) -> Vec<Conditionings> {
        let labels = || job.labels.iter().copied().chain([NO_LABEL]);
        let at = |t| labels().map(|label| (label, self.weights.conditioning(t, label))).collect();
        (0..job.steps).map(|step| at(sampler::time(step, job.steps))).collect()
    }

    #[stage(DiffStage::GpuForward)]
    fn forward(&self, job: &Job, conditionings: &[Conditionings], progress: &Progress) -> Vec<f32> {
        let mut digits = job.noise.clone();
        for step in 0..job.steps {
            self.denoise_step(job, conditionings, step, &mut digits);
            progress.advance(1);
        }
        digits
    }

    #[stage(
        DiffStage::DenoiseStep,
        attrs("diffusion.step" = step, "diffusion.t" = sampler::time(step, job.steps))
    )]
    fn denoise_step(
        &self,
        job: &Job,
        conditionings: &[Conditionings],
        step: u32,
        digits: &mut [f32],
    ) {
        let conditionings = &conditionings[step as usize];
        for (digit, label) in digits.chunks_exact_mut(PIXELS).zip(&job.labels) {
            let with = self.weights.velocity(digit, &conditionings[label]);
            let without = self.weights.velocity(digit, &conditionings[&NO_LABEL]);
            for ((x, with), without) in digit.iter_mut().zip(with).zip(without) {
                *x -= (without + job.guidance * (with - without)) / job.steps as f32;
            }
        }
    }
}

impl Engine for Cpu {
    fn run(&mut self, job: &Job, progress: &Progress) -> Result<Vec<f32>, EngineError> {
        job.check()?;
        let conditionings = self.encode(job);
        Ok(self.forward(job, &conditionings, progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn the_reference_model_draws_the_golden_sample() {
        let mut cpu = Cpu::new(Arc::new(Weights::bundled().unwrap()));
        let digits = cpu.run(&golden::job(), &Progress::hidden()).unwrap();
        golden::assert_sample(&digits);
    }

    #[test]
    fn equal_jobs_give_equal_digits_to_the_bit() {
        let mut cpu = Cpu::new(Arc::new(Weights::bundled().unwrap()));
        let job = Job { steps: 2, ..golden::job() };
        let [a, b] = [(); 2].map(|()| cpu.run(&job, &Progress::hidden()).unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn a_malformed_job_is_refused() {
        let mut cpu = Cpu::new(Arc::new(Weights::bundled().unwrap()));
        let good = golden::job();
        let bad = [
            Job { steps: 0, ..good.clone() },
            Job { labels: vec![], ..good.clone() },
            Job { labels: vec![11; 10], ..good.clone() },
            Job { noise: vec![0.0; 3], ..good },
        ];
        for job in bad {
            let refused = cpu.run(&job, &Progress::hidden());
            assert!(matches!(refused, Err(EngineError::Malformed(_))));
        }
    }
}
