//! The recorder's GPU time stamps on real devices: one that does nothing, and one whose truth is known.

mod common;

use common::has_gpu;
use stagetrace::testing::capture;
use stagetrace::wgpu::wgpu_30::StampPool;
use stagetrace::wgpu::{InvalidStamps, PassTimes, gpu_passes, monotonic_ns};
use stagetrace::{Stages, span};

#[derive(Stages, Clone, Copy)]
enum Gpu {
    #[stage(level = 3)]
    Pass,
}

struct Device {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    bindings: wgpu::BindGroup,
}

/// Long enough to be seen, short enough to be run often.
const SHADER: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        var v = x[id.x];
        for (var i = 0u; i < 2000u; i++) { v = v * 1.0001 + 0.5; }
        x[id.x] = v;
    }
";

impl Device {
    /// A device that accepts everything, runs nothing, and writes no stamps.
    fn idle(features: wgpu::Features) -> Self {
        let desc = wgpu::DeviceDescriptor { required_features: features, ..Default::default() };
        Self::new(wgpu::Device::noop(&desc))
    }

    /// The machine's GPU, and its name.
    fn real() -> (Self, String) {
        let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
        desc.flags = wgpu::InstanceFlags::empty();
        let adapter = wgpu::Instance::new(desc).request_adapter(&Default::default());
        let adapter = pollster::block_on(adapter).unwrap();
        let desc = wgpu::DeviceDescriptor {
            required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
            ..Default::default()
        };
        let device = pollster::block_on(adapter.request_device(&desc)).unwrap();
        (Self::new(device), adapter.get_info().name)
    }

    fn new((device, queue): (wgpu::Device, wgpu::Queue)) -> Self {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(SHADER.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 64 * 64 * 4,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        });
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
        });
        Device { device, queue, pipeline, bindings }
    }

    fn pool(&self) -> StampPool {
        StampPool::new(&self.device, &self.queue).unwrap()
    }

    /// Runs so many passes; gives the raw ticks, and what the pool made of them.
    fn run(
        &self,
        pool: &mut StampPool,
        passes: u32,
    ) -> (Vec<[u64; 2]>, Result<PassTimes, InvalidStamps>) {
        let stamps = pool.take(passes).unwrap();
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for index in 0..passes {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: stamps.compute_pass(index),
            });
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.bindings, &[]);
            pass.dispatch_workgroups(64, 1, 1);
        }
        let submit_ns = monotonic_ns();
        if pool.resolves_after_completion() {
            self.submit_and_wait([encoder.finish()]);
            let done_ns = monotonic_ns();
            self.submit_and_wait([stamps.resolve(&self.device)]);
            return (stamps.read().unwrap(), pool.finish(stamps, submit_ns, done_ns));
        }
        self.submit_and_wait([encoder.finish(), stamps.resolve(&self.device)]);
        let done_ns = monotonic_ns();
        (stamps.read().unwrap(), pool.finish(stamps, submit_ns, done_ns))
    }

    fn submit_and_wait<const N: usize>(&self, work: [wgpu::CommandBuffer; N]) {
        self.queue.submit(work);
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    }
}

#[test]
fn stamps_that_were_never_written_are_a_mark_and_no_spans() {
    let device = Device::idle(wgpu::Features::TIMESTAMP_QUERY);
    let mut pool = device.pool();
    let captured = capture(|| {
        span!("gpu_forward").in_scope(|| {
            let (ticks, times) = device.run(&mut pool, 3);
            assert_eq!(ticks, [[0, 0]; 3]);
            gpu_passes!(Gpu::Pass, Some(&times));
        });
    });
    let tree = captured.tree(&["gpu.timestamps", "gpu.clock.source"]);
    assert_eq!(tree, "gpu_forward gpu.timestamps=invalid\n");
}

#[test]
fn a_device_without_stamps_is_a_mark_and_no_spans() {
    let device = Device::idle(wgpu::Features::empty());
    assert!(StampPool::new(&device.device, &device.queue).is_none());
    let captured = capture(|| {
        span!("gpu_forward").in_scope(|| gpu_passes!(Gpu::Pass, None));
    });
    let tree = captured.tree(&["gpu.timestamps", "gpu.clock.source"]);
    assert_eq!(tree, "gpu_forward gpu.timestamps=unsupported\n");
}

#[test]
fn passes_are_spans_below_the_current_one_with_their_attributes() {
    if !has_gpu() {
        return;
    }
    let (device, _) = Device::real();
    let mut pool = device.pool();
    let captured = capture(|| {
        span!("gpu_forward").in_scope(|| {
            let (_, times) = device.run(&mut pool, 2);
            gpu_passes!(Gpu::Pass, Some(&times), |pass| { "step" = pass, "half" = pass as f64 / 2.0 });
        });
    });
    assert_eq!(
        captured.tree(&["gpu.timestamps", "gpu.clock.source", "step", "half"]),
        "gpu_forward gpu.timestamps=ok gpu.clock.source=bracketed\n  \
           pass step=0 half=0\n  \
           pass step=1 half=0.5\n"
    );
}

#[test]
fn the_mapped_times_are_the_true_ones_within_the_stated_uncertainty() {
    if !has_gpu() {
        return;
    }
    let (device, name) = Device::real();
    if !name.contains("llvmpipe") {
        println!(
            "skipped: only the clock of lavapipe is known to be CLOCK_MONOTONIC, not of {name}"
        );
        return;
    }
    let mut pool = device.pool();
    let mut uncertainties = Vec::new();
    for submission in 0..60 {
        let (ticks, times) = device.run(&mut pool, 1 + submission % 5);
        let times = times.unwrap();
        for (truth, pass) in ticks.as_flattened().chunks_exact(2).zip(&times.passes) {
            for (truth, mapped) in [(truth[0], pass.begin_ns), (truth[1], pass.end_ns)] {
                let error = truth.abs_diff(mapped);
                assert!(error <= times.uncertainty_ns, "{error} > {}", times.uncertainty_ns);
            }
        }
        uncertainties.push(times.uncertainty_ns);
    }
    assert_eq!(pool.clock().resets(), 0);
    assert!(uncertainties[59] < 1_000_000, "{uncertainties:?}");
}

#[test]
fn sets_are_used_again_and_never_more_than_the_pool_may_have() {
    let device = Device::idle(wgpu::Features::TIMESTAMP_QUERY);
    let mut pool = device.pool();
    let mut taken: Vec<_> = (0..StampPool::MAX_SETS).map(|_| pool.take(20).unwrap()).collect();
    assert!(pool.take(1).is_none(), "all are in use");
    drop(taken.pop());
    assert!(pool.take(1).is_some(), "one was given up");
    drop(taken);
    for passes in [1, 2, 500, 3, StampPool::MAX_PASSES, 1] {
        for _ in 0..10 {
            let (ticks, _) = device.run(&mut pool, passes);
            assert_eq!(ticks.len(), passes as usize);
        }
    }
    assert!(pool.take(StampPool::MAX_PASSES + 1).is_none());
    assert!(pool.take(0).is_none());
}

#[test]
fn stamps_of_work_that_has_not_completed_cannot_be_read() {
    let device = Device::idle(wgpu::Features::TIMESTAMP_QUERY);
    let mut pool = device.pool();
    let stamps = pool.take(1).unwrap();
    assert_eq!(stamps.read(), None);
    assert_eq!(pool.finish(stamps, 1, 2), Err(InvalidStamps::Unreadable));
}

#[test]
fn a_pass_for_which_there_is_no_room_has_no_stamps() {
    let device = Device::idle(wgpu::Features::TIMESTAMP_QUERY);
    let stamps = device.pool().take(2).unwrap();
    assert!(stamps.compute_pass(1).is_some() && stamps.render_pass(1).is_some());
    assert!(stamps.compute_pass(2).is_none() && stamps.render_pass(2).is_none());
}
