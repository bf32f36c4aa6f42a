//! The weights in the memory of the GPU, uploaded once.

use crate::gpu::memory::filled;
use crate::model::{NO_LABEL, WIDTH};
use crate::weights::{Linear, Weights};

/// All layers as buffers.
pub struct GpuWeights {
    pub input: GpuLinear,
    pub time1: GpuLinear,
    pub time2: GpuLinear,
    pub blocks: Vec<GpuBlock>,
    pub out_modulation: GpuLinear,
    pub out: GpuLinear,
    /// Stays on the host: a plan repeats it for each image of its batch.
    pub places: Vec<f32>,
    /// Stays on the host: a job gathers the rows of its labels.
    labels: Vec<f32>,
}

pub struct GpuBlock {
    pub modulation: GpuLinear,
    pub qkv: GpuLinear,
    pub projection: GpuLinear,
    pub up: GpuLinear,
    pub down: GpuLinear,
}

pub struct GpuLinear {
    pub inputs: usize,
    pub outputs: usize,
    pub w: wgpu::Buffer,
    pub b: wgpu::Buffer,
}

impl GpuWeights {
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue, weights: &Weights) -> Self {
        let linear = |layer: &Linear| GpuLinear {
            inputs: layer.inputs,
            outputs: layer.outputs,
            w: filled(device, queue, &layer.w),
            b: filled(device, queue, &layer.b),
        };
        let blocks = weights.blocks.iter().map(|block| GpuBlock {
            modulation: linear(&block.modulation),
            qkv: linear(&block.qkv),
            projection: linear(&block.projection),
            up: linear(&block.up),
            down: linear(&block.down),
        });
        GpuWeights {
            input: linear(&weights.input),
            time1: linear(&weights.time1),
            time2: linear(&weights.time2),
            blocks: blocks.collect(),
            out_modulation: linear(&weights.out_modulation),
            out: linear(&weights.out),
            places: weights.places.clone(),
            labels: weights.labels.clone(),
        }
    }

    /// The label's vector for each image of a batch: first the labels given, then "no label".
    pub fn label_rows(&self, labels: &[usize]) -> Vec<f32> {
        let none = std::iter::repeat_n(&NO_LABEL, labels.len());
        let vector = |&label: &usize| &self.labels[label * WIDTH..][..WIDTH];
        labels.iter().chain(none).flat_map(vector).copied().collect()
    }
}
