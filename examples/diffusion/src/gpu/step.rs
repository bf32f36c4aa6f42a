//! The dispatches of one denoise step: each layer as a kernel, its constants and its buffers.

use crate::gpu::kernels::{Constants, Kernel, Kernels};
use crate::gpu::memory::storage;
use crate::gpu::plan::Shape;
use crate::gpu::weights::GpuLinear;
use crate::model::{HEADS, PIXELS, TOKENS, WIDTH};

/// What a compute pass does.
pub struct Step {
    dispatches: Vec<Dispatch>,
}

struct Dispatch {
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
    groups: [u32; 2],
}

/// Collects the dispatches of a step.
pub struct StepBuilder<'a> {
    device: &'a wgpu::Device,
    kernels: &'a mut Kernels,
    /// Images of the batch.
    batch: usize,
    /// Bound where a kernel has a binding that it does not read.
    unused: wgpu::Buffer,
    dispatches: Vec<Dispatch>,
}

/// What a linear layer does to its result. The numbers are those of the shader.
#[derive(Clone, Copy)]
pub enum Activation {
    None = 0,
    Gelu = 1,
    Silu = 2,
}

/// What a linear layer adds to its result.
pub enum Residual<'a> {
    None,
    Add(&'a wgpu::Buffer),
    /// `base + gate * result`; an image's gates begin at `column` of its row.
    Gated {
        base: &'a wgpu::Buffer,
        gates: &'a wgpu::Buffer,
        column: usize,
    },
}

impl Step {
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        for Dispatch { pipeline, bindings, groups: [x, y] } in &self.dispatches {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, bindings, &[]);
            pass.dispatch_workgroups(*x, *y, 1);
        }
    }
}

impl<'a> StepBuilder<'a> {
    pub fn new(device: &'a wgpu::Device, kernels: &'a mut Kernels, batch: usize) -> Self {
        StepBuilder { device, kernels, batch, unused: storage(device, 4), dispatches: Vec::new() }
    }

    pub fn finish(self) -> Step {
        Step { dispatches: self.dispatches }
    }

    /// `y = residual(activation(x @ w + b))`, as many rows as `y` holds.
    pub fn linear(
        &mut self,
        x: &wgpu::Buffer,
        layer: &GpuLinear,
        y: &wgpu::Buffer,
        activation: Activation,
        residual: Residual<'_>,
    ) {
        let rows = numbers(y) / layer.outputs;
        let unused = self.unused.clone();
        let (kind, base, gates, column) = match residual {
            Residual::None => (0.0, &unused, &unused, 0),
            Residual::Add(base) => (1.0, base, &unused, 0),
            Residual::Gated { base, gates, column } => (2.0, base, gates, column),
        };
        let constants = [
            ("M", rows as f64),
            ("N", layer.outputs as f64),
            ("K", layer.inputs as f64),
            ("ACTIVATION", f64::from(activation as u8)),
            ("RESIDUAL", kind),
            ("ROWS", TOKENS as f64),
            ("GATE_COLUMN", column as f64),
            ("GATE_STRIDE", (numbers(gates) / self.batch) as f64),
        ];
        let groups = [(layer.outputs / 4).div_ceil(16), rows.div_ceil(4)];
        self.dispatch(Kernel::Linear, &constants, &[x, &layer.w, &layer.b, base, gates, y], groups);
    }

    /// Normalises the rows of `x`; an image's scale and shift begin at `column` of its row.
    pub fn norm(
        &mut self,
        x: &wgpu::Buffer,
        modulation: &wgpu::Buffer,
        column: usize,
        y: &wgpu::Buffer,
    ) {
        let rows = self.batch * TOKENS;
        let constants = [
            ("M", rows as f64),
            ("N", WIDTH as f64),
            ("ROWS", TOKENS as f64),
            ("COLUMN", column as f64),
            ("STRIDE", (numbers(modulation) / self.batch) as f64),
        ];
        self.dispatch(Kernel::Norm, &constants, &[x, modulation, y], [rows.div_ceil(64), 1]);
    }

    pub fn attention(&mut self, qkv: &wgpu::Buffer, y: &wgpu::Buffer) {
        let constants =
            [("BATCH", self.batch as f64), ("TOKENS", TOKENS as f64), ("HEADS", HEADS as f64)];
        let queries = self.batch * HEADS * TOKENS;
        self.dispatch(Kernel::Attention, &constants, &[qkv, y], [queries.div_ceil(64), 1]);
    }

    pub fn silu(&mut self, x: &wgpu::Buffer, y: &wgpu::Buffer) {
        let groups = [numbers(y).div_ceil(64), 1];
        self.dispatch(Kernel::Silu, &[("N", numbers(y) as f64)], &[x, y], groups);
    }

    /// Guidance, and the sampler's step of both copies of `x`.
    pub fn euler(&mut self, velocity: &wgpu::Buffer, x: &wgpu::Buffer, shape: Shape) {
        let numbers = shape.images * PIXELS;
        let constants = [
            ("N", numbers as f64),
            ("STEP", 1.0 / f64::from(shape.steps)),
            ("GUIDANCE", f64::from(shape.guidance)),
        ];
        self.dispatch(Kernel::Euler, &constants, &[velocity, x], [numbers.div_ceil(64), 1]);
    }

    fn dispatch(
        &mut self,
        kernel: Kernel,
        constants: Constants<'_>,
        buffers: &[&wgpu::Buffer],
        groups: [usize; 2],
    ) {
        let pipeline = self.kernels.pipeline(self.device, kernel, constants);
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let bindings = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let groups = groups.map(|count| count as u32);
        self.dispatches.push(Dispatch { pipeline, bindings, groups });
    }
}

fn numbers(buffer: &wgpu::Buffer) -> usize {
    buffer.size() as usize / size_of::<f32>()
}
