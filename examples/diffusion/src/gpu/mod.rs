//! The engine on a GPU: the whole sample of a job is one submission, one compute pass a step.

mod adapter;
mod faults;
mod kernels;
mod memory;
mod plan;
mod step;
#[cfg(test)]
mod tests;
mod weights;

use std::time::Duration;

use stagetrace::wgpu::monotonic_ns;
use stagetrace::wgpu::wgpu_30::{StampPool, Stamps};
use stagetrace::{gpu_passes, stage};

pub use adapter::{AdapterFacts, NoGpu};

use crate::engine::{Engine, EngineError};
use crate::gpu::faults::Faults;
use crate::gpu::kernels::Kernels;
use crate::gpu::plan::{Plan, Shape};
use crate::gpu::weights::GpuWeights;
use crate::progress::Progress;
use crate::request::DiffStage;
use crate::sampler::{self, Job};
use crate::weights::Weights;

/// A device and everything that lives on it. One thread owns it: it alone submits and polls.
pub struct Gpu {
    pub facts: AdapterFacts,
    device: wgpu::Device,
    queue: wgpu::Queue,
    weights: GpuWeights,
    kernels: Kernels,
    /// That of the last job; the next one is most often of the same shape.
    plan: Option<Plan>,
    /// `None` if the device knows no time stamps.
    stamps: Option<StampPool>,
    faults: Faults,
}

/// A job whose commands are recorded.
struct Encoded {
    work: wgpu::CommandBuffer,
    /// The work's time stamps, and the commands that make them readable.
    stamps: Option<(Stamps, wgpu::CommandBuffer)>,
    /// Whether its pipelines are new: the driver may compile them at their first dispatch.
    warmup: bool,
}

/// How long a submission may take, without regard to its size.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is added for each step of each image: enough for a software rasteriser.
const PATIENCE_PER_STEP: Duration = Duration::from_millis(50);

impl Gpu {
    /// Opens the best adapter there is.
    pub fn open(weights: &Weights) -> Result<Self, NoGpu> {
        let (facts, device, queue) = pollster::block_on(adapter::open())?;
        let faults = Faults::of(&device);
        Ok(Gpu {
            facts,
            weights: GpuWeights::new(&device, &queue, weights),
            kernels: Kernels::new(&device),
            plan: None,
            stamps: StampPool::new(&device, &queue),
            faults,
            device,
            queue,
        })
    }

    #[stage(DiffStage::GpuEncode)]
    fn encode(&mut self, job: &Job) -> Result<Encoded, EngineError> {
        let Gpu { device, queue, weights, kernels, .. } = self;
        let shape = Shape::of(job);
        let known = self.plan.take().filter(|plan| plan.shape == shape);
        let warmup = known.is_none();
        let plan = known.unwrap_or_else(|| Plan::new(device, queue, kernels, weights, shape));
        let stamps = self.stamps.as_mut().and_then(|pool| pool.take(job.steps));
        let work = plan.encode(device, queue, weights, job, |step| {
            stamps.as_ref().and_then(|stamps| stamps.compute_pass(step))
        });
        let stamps = stamps.map(|stamps| {
            let resolve = stamps.resolve(device);
            (stamps, resolve)
        });
        self.plan = Some(plan);
        self.faults.check()?;
        Ok(Encoded { work, stamps, warmup })
    }

    #[stage(
        DiffStage::GpuForward,
        attrs(
            "gpu.adapter" = self.facts.name.as_str(),
            "gpu.backend" = self.facts.backend.as_str(),
            "gpu.device_type" = self.facts.device_type,
            "warmup" = encoded.warmup.then_some(true),
        )
    )]
    fn forward(&mut self, job: &Job, encoded: Encoded) -> Result<Vec<f32>, EngineError> {
        let Encoded { work, stamps, .. } = encoded;
        let (stamps, resolve) = stamps.unzip();
        let late = self.stamps.as_ref().is_some_and(StampPool::resolves_after_completion);
        let (resolve, resolve_late) = if late { (None, resolve) } else { (resolve, None) };

        let submit_ns = monotonic_ns();
        self.submit_and_wait([work].into_iter().chain(resolve), job)?;
        let done_ns = monotonic_ns();
        if resolve_late.is_some() {
            self.submit_and_wait(resolve_late, job)?;
        }

        let pool = self.stamps.as_mut();
        let times = pool.zip(stamps).map(|(pool, stamps)| pool.finish(stamps, submit_ns, done_ns));
        gpu_passes!(DiffStage::DenoiseStep, times.as_ref(), |step| {
            "diffusion.step" = step,
            "diffusion.t" = sampler::time(step as u32, job.steps),
        });
        self.result()
    }

    fn submit_and_wait(
        &self,
        commands: impl IntoIterator<Item = wgpu::CommandBuffer>,
        job: &Job,
    ) -> Result<(), EngineError> {
        let submission = self.queue.submit(commands);
        let timeout = PATIENCE + PATIENCE_PER_STEP * job.steps * job.images() as u32;
        let wait =
            wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(timeout) };
        self.device.poll(wait).map_err(|error| self.faults.lose(one_line(&error)))?;
        self.faults.check()
    }

    /// The digits of the job that has just completed.
    fn result(&self) -> Result<Vec<f32>, EngineError> {
        let Some(plan) = &self.plan else { return Err(EngineError::Lost("no result".into())) };
        let bytes = plan
            .result
            .get_mapped_range(..)
            .map_err(|error| EngineError::Lost(one_line(&error)))?;
        let digits = bytemuck::pod_collect_to_vec(&bytes);
        drop(bytes);
        plan.result.unmap();
        Ok(digits)
    }
}

impl Engine for Gpu {
    fn run(&mut self, job: &Job, progress: &Progress) -> Result<Vec<f32>, EngineError> {
        job.check()?;
        self.faults.check()?;
        let digits = self.encode(job).and_then(|encoded| self.forward(job, encoded));
        if digits.is_err() {
            self.plan = None; // its buffers may still be mapped, or in use for ever
        }
        progress.advance(u64::from(job.steps));
        digits
    }
}

/// An error's text, which for wgpu's may have several lines, on one.
fn one_line(error: &impl ToString) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
