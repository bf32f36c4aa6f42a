//! Finding a GPU, and opening it with what it can do.

use std::fmt;

use thiserror::Error;

use crate::gpu::one_line;

/// What an adapter says about itself.
#[derive(Clone, Debug)]
pub struct AdapterFacts {
    pub name: String,
    /// `vulkan`, `metal`, `dx12`.
    pub backend: String,
    /// `discrete`, `integrated`, `virtual`, `cpu` or `other`.
    pub device_type: &'static str,
}

/// Why no GPU could be opened.
#[derive(Debug, Error)]
pub enum NoGpu {
    #[error("no GPU adapter found")]
    NotFound,
    #[error("the GPU adapter {adapter} cannot be opened: {reason}")]
    Closed { adapter: String, reason: String },
}

impl AdapterFacts {
    fn of(adapter: &wgpu::Adapter) -> Self {
        let info = adapter.get_info();
        let device_type = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "discrete",
            wgpu::DeviceType::IntegratedGpu => "integrated",
            wgpu::DeviceType::VirtualGpu => "virtual",
            wgpu::DeviceType::Cpu => "cpu",
            wgpu::DeviceType::Other => "other",
        };
        AdapterFacts { name: info.name, backend: info.backend.to_string(), device_type }
    }

    /// Whether the "GPU" is this machine's processor.
    pub fn is_software(&self) -> bool {
        self.device_type == "cpu"
    }
}

impl fmt::Display for AdapterFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.backend)
    }
}

/// The adapter that is most of a GPU, opened.
pub async fn open() -> Result<(AdapterFacts, wgpu::Device, wgpu::Queue), NoGpu> {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    // Debug builds would ask for a validation layer, and warn if there is none.
    desc.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(desc);
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    };
    let adapter = instance.request_adapter(&options).await.map_err(|_| NoGpu::NotFound)?;
    let facts = AdapterFacts::of(&adapter);
    let desc = wgpu::DeviceDescriptor {
        label: Some("diffusion"),
        required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
        required_limits: adapter.limits(),
        ..Default::default()
    };
    match adapter.request_device(&desc).await {
        Ok((device, queue)) => Ok((facts, device, queue)),
        Err(error) => Err(NoGpu::Closed { adapter: facts.name, reason: one_line(&error) }),
    }
}
