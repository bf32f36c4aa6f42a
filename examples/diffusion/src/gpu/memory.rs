//! Buffers of numbers.

/// Written and read by kernels and copies; zero at first.
pub fn storage(device: &wgpu::Device, numbers: usize) -> wgpu::Buffer {
    let usage =
        wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    buffer(device, numbers, usage)
}

/// Storage with these numbers in it; they arrive with the next submit.
pub fn filled(device: &wgpu::Device, queue: &wgpu::Queue, numbers: &[f32]) -> wgpu::Buffer {
    let buffer = storage(device, numbers.len());
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(numbers));
    buffer
}

/// What a copy fills and the host reads.
pub fn readable(device: &wgpu::Device, numbers: usize) -> wgpu::Buffer {
    buffer(device, numbers, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)
}

fn buffer(device: &wgpu::Device, numbers: usize, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: numbers as u64 * 4,
        usage,
        mapped_at_creation: false,
    })
}
