//! What the GPU does for jobs of one shape: buffers, the dispatches of a step, and their recording.
//!
//! `images` digits with guidance are a batch of `2 * images`: first each with its label, then all
//! without. Residuals alternate between two buffers, since no kernel may read and write the same one.

use crate::gpu::kernels::Kernels;
use crate::gpu::memory::{filled, readable, storage};
use crate::gpu::step::{Activation, Residual, Step, StepBuilder};
use crate::gpu::weights::GpuWeights;
use crate::model::{CHANNELS, HIDDEN, PIXELS, TOKENS, WIDTH, time_features};
use crate::sampler::{self, Job};

/// What a plan depends on. Jobs of one shape share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub images: usize,
    pub steps: u32,
    pub guidance: f32,
}

impl Shape {
    pub fn of(job: &Job) -> Self {
        Shape { images: job.images(), steps: job.steps, guidance: job.guidance }
    }
}

/// Buffers and dispatches for jobs of one shape.
pub struct Plan {
    pub shape: Shape,
    /// The finished digits, readable by the host.
    pub result: wgpu::Buffer,
    /// The digits, twice.
    x: wgpu::Buffer,
    /// The label's vector of each image of the batch.
    labels: wgpu::Buffer,
    /// The time features of every step, for each image of the batch.
    times: wgpu::Buffer,
    /// Those of the current step.
    time: wgpu::Buffer,
    step: Step,
}

impl Plan {
    pub fn new(
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        kernels: &mut Kernels,
        weights: &GpuWeights,
        shape: Shape,
    ) -> Self {
        let batch = 2 * shape.images;
        let features = |step| time_features(sampler::time(step, shape.steps)).repeat(batch);
        let times: Vec<f32> = (0..shape.steps).flat_map(features).collect();
        let x = storage(device, batch * PIXELS);
        let labels = storage(device, batch * WIDTH);
        let time = storage(device, batch * WIDTH);
        let places = filled(device, queue, &weights.places.repeat(batch));
        let builder = StepBuilder::new(device, kernels, batch);
        Plan {
            shape,
            step: step(builder, device, weights, shape, [&x, &labels, &time, &places]),
            result: readable(device, shape.images * PIXELS),
            times: filled(device, queue, &times),
            x,
            labels,
            time,
        }
    }

    /// All steps of a job, one compute pass each. `stamps(i)` says where pass `i` leaves its times.
    pub fn encode<'a>(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        weights: &GpuWeights,
        job: &Job,
        stamps: impl Fn(u32) -> Option<wgpu::ComputePassTimestampWrites<'a>>,
    ) -> wgpu::CommandBuffer {
        let labels = weights.label_rows(&job.labels);
        queue.write_buffer(&self.labels, 0, bytemuck::cast_slice(&labels));
        queue.write_buffer(&self.x, 0, bytemuck::cast_slice(&job.noise.repeat(2)));

        let mut encoder = device.create_command_encoder(&Default::default());
        let size = self.time.size();
        for step in 0..self.shape.steps {
            let offset = u64::from(step) * size;
            encoder.copy_buffer_to_buffer(&self.times, offset, &self.time, 0, size);
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("denoise_step"),
                timestamp_writes: stamps(step),
            });
            self.step.record(&mut pass);
        }
        encoder.copy_buffer_to_buffer(&self.x, 0, &self.result, 0, self.result.size());
        encoder.map_buffer_on_submit(&self.result, wgpu::MapMode::Read, .., |_| ());
        encoder.finish()
    }
}

/// The network and the sampler's step as dispatches: compare `Weights::velocity`.
fn step(
    mut step: StepBuilder<'_>,
    device: &wgpu::Device,
    weights: &GpuWeights,
    shape: Shape,
    [x, labels, time, places]: [&wgpu::Buffer; 4],
) -> Step {
    const NONE: Activation = Activation::None;
    let batch = 2 * shape.images;
    let per_image = |numbers: usize| storage(device, batch * numbers);
    let per_token = |numbers: usize| storage(device, batch * TOKENS * numbers);

    let (c1, c2, c) = (per_image(WIDTH), per_image(WIDTH), per_image(WIDTH));
    step.linear(time, &weights.time1, &c1, Activation::Silu, Residual::None);
    step.linear(&c1, &weights.time2, &c2, NONE, Residual::Add(labels));
    step.silu(&c2, &c);

    let (h, h2, normal) = (per_token(WIDTH), per_token(WIDTH), per_token(WIDTH));
    let (qkv, attended, hidden) = (per_token(3 * WIDTH), per_token(WIDTH), per_token(HIDDEN));
    let modulation = per_image(6 * WIDTH);
    step.linear(x, &weights.input, &h, NONE, Residual::Add(places));
    for block in &weights.blocks {
        let gated = |base, column| Residual::Gated { base, gates: &modulation, column };
        step.linear(&c, &block.modulation, &modulation, NONE, Residual::None);

        step.norm(&h, &modulation, 0, &normal);
        step.linear(&normal, &block.qkv, &qkv, NONE, Residual::None);
        step.attention(&qkv, &attended);
        step.linear(&attended, &block.projection, &h2, NONE, gated(&h, 2 * WIDTH));

        step.norm(&h2, &modulation, 3 * WIDTH, &normal);
        step.linear(&normal, &block.up, &hidden, Activation::Gelu, Residual::None);
        step.linear(&hidden, &block.down, &h, NONE, gated(&h2, 5 * WIDTH));
    }

    let out_modulation = per_image(2 * WIDTH);
    let velocity = per_token(CHANNELS);
    step.linear(&c, &weights.out_modulation, &out_modulation, NONE, Residual::None);
    step.norm(&h, &out_modulation, 0, &normal);
    step.linear(&normal, &weights.out, &velocity, NONE, Residual::None);
    step.euler(&velocity, x, shape);
    step.finish()
}
