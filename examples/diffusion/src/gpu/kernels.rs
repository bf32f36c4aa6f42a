//! The shaders as pipelines, one for each set of constants that was asked for.

use std::collections::HashMap;

/// One of the files in `shaders/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    Linear,
    Norm,
    Attention,
    Silu,
    Euler,
}

/// The values of a kernel's `override` declarations, by name.
pub type Constants<'a> = &'a [(&'static str, f64)];

/// Compiled pipelines, kept for as long as the device.
pub struct Kernels {
    modules: HashMap<Kernel, wgpu::ShaderModule>,
    pipelines: HashMap<Key, wgpu::ComputePipeline>,
}

/// A kernel and the bits of its constants.
type Key = (Kernel, Vec<(&'static str, u64)>);

impl Kernel {
    const ALL: [Kernel; 5] =
        [Kernel::Linear, Kernel::Norm, Kernel::Attention, Kernel::Silu, Kernel::Euler];

    fn name(self) -> &'static str {
        match self {
            Kernel::Linear => "linear",
            Kernel::Norm => "norm",
            Kernel::Attention => "attention",
            Kernel::Silu => "silu",
            Kernel::Euler => "euler",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Kernel::Linear => include_str!("../../shaders/linear.wgsl"),
            Kernel::Norm => include_str!("../../shaders/norm.wgsl"),
            Kernel::Attention => include_str!("../../shaders/attention.wgsl"),
            Kernel::Silu => include_str!("../../shaders/silu.wgsl"),
            Kernel::Euler => include_str!("../../shaders/euler.wgsl"),
        }
    }
}

impl Kernels {
    pub fn new(device: &wgpu::Device) -> Self {
        let compile = |kernel: Kernel| {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(kernel.name()),
                source: wgpu::ShaderSource::Wgsl(kernel.source().into()),
            });
            (kernel, module)
        };
        Kernels { modules: Kernel::ALL.map(compile).into(), pipelines: HashMap::new() }
    }

    /// The pipeline of `kernel` with these constants, built at the first call.
    pub fn pipeline(
        &mut self,
        device: &wgpu::Device,
        kernel: Kernel,
        constants: Constants<'_>,
    ) -> wgpu::ComputePipeline {
        let bits = constants.iter().map(|&(name, value)| (name, value.to_bits())).collect();
        let build = || {
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(kernel.name()),
                layout: None,
                module: &self.modules[&kernel],
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    constants,
                    ..Default::default()
                },
                cache: None,
            })
        };
        self.pipelines.entry((kernel, bits)).or_insert_with(build).clone()
    }
}
