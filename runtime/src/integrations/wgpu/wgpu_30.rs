//! The types of wgpu 30: pooled query sets, and the passes that write into them.

use std::sync::Arc;

use super::{GpuClock, InvalidStamps, PassTimes, RawStamps};

/// Query sets of one device, used again and again, and the device's clock.
///
/// It lives beside the device's queue, on the thread that submits and polls. It owns no thread, and
/// neither submits nor polls itself:
///
/// ```no_run
/// # use stagetrace::wgpu::{monotonic_ns, wgpu_30::StampPool, InvalidStamps};
/// # fn work(_: &wgpu::Device, _: Option<wgpu::ComputePassTimestampWrites>) -> wgpu::CommandBuffer { loop {} }
/// # fn run(device: &wgpu::Device, queue: &wgpu::Queue) -> Result<(), Box<dyn std::error::Error>> {
/// let mut pool = StampPool::new(device, queue).ok_or("no time stamps on this device")?;
///
/// let stamps = pool.take(1).ok_or("all query sets are in use")?;
/// let work = work(device, stamps.compute_pass(0));         // `timestamp_writes` of its pass
/// let submit_ns = monotonic_ns();
/// queue.submit([work, stamps.resolve(device)]);
/// device.poll(wgpu::PollType::wait_indefinitely())?;
/// let done_ns = monotonic_ns();
/// let times = pool.finish(stamps, submit_ns, done_ns)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct StampPool {
    device: wgpu::Device,
    clock: GpuClock,
    resolves_after_completion: bool,
    free: Vec<Stamps>,
    /// One handle here and one in each set of stamps, wherever it is: they count the live ones.
    live: Arc<()>,
}

/// Room for the stamps of one submission: begin and end of each of its passes.
#[derive(Debug)]
pub struct Stamps {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    readable: wgpu::Buffer,
    /// How many passes fit.
    room: u32,
    /// How many were asked for.
    passes: u32,
    _live: Arc<()>,
}

/// Bytes of the two stamps of a pass.
const PASS_BYTES: u64 = 2 * size_of::<u64>() as u64;

impl StampPool {
    /// The most passes that one submission can have stamps for.
    pub const MAX_PASSES: u32 = wgpu::QUERY_SET_MAX_QUERIES / 2;

    /// The most query sets alive at a time. Metal allows about 32 to a process.
    pub const MAX_SETS: usize = 8;

    /// A pool for this device, or `None` if the device was made without `TIMESTAMP_QUERY`.
    #[must_use]
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Option<Self> {
        // The period says 1 even where the feature is missing.
        device.features().contains(wgpu::Features::TIMESTAMP_QUERY).then(|| StampPool {
            device: device.clone(),
            clock: GpuClock::new(queue.get_timestamp_period()),
            resolves_after_completion: device.adapter_info().backend == wgpu::Backend::Metal,
            free: Vec::new(),
            live: Arc::new(()),
        })
    }

    /// Stamps for so many passes; every one of them must then be written. `None` if they are none
    /// or more than [`MAX_PASSES`](Self::MAX_PASSES), or if [`MAX_SETS`](Self::MAX_SETS) are in use.
    pub fn take(&mut self, passes: u32) -> Option<Stamps> {
        if passes == 0 || passes > Self::MAX_PASSES {
            return None;
        }
        if let Some(fits) = self.free.iter().position(|stamps| stamps.room >= passes) {
            return Some(Stamps { passes, ..self.free.swap_remove(fits) });
        }
        if self.live() >= Self::MAX_SETS {
            self.free.pop()?;
        }
        let room = passes.next_power_of_two().min(Self::MAX_PASSES);
        Some(Stamps::new(&self.device, room, passes, Arc::clone(&self.live)))
    }

    /// The passes on the host's timeline, once the submission is known to be complete. `submit_ns`
    /// and `done_ns` are those of [`RawStamps`].
    ///
    /// # Errors
    ///
    /// Stamps that could not be read or cannot be true.
    pub fn finish(
        &mut self,
        stamps: Stamps,
        submit_ns: u64,
        done_ns: u64,
    ) -> Result<PassTimes, InvalidStamps> {
        let passes = stamps.read().ok_or(InvalidStamps::Unreadable)?;
        stamps.readable.unmap();
        self.free.push(stamps);
        self.clock.map(&RawStamps { passes: &passes, submit_ns, done_ns })
    }

    /// What is known of the device's clock.
    #[must_use]
    pub fn clock(&self) -> &GpuClock {
        &self.clock
    }

    /// Whether [`Stamps::resolve`] belongs into a submission of its own, after the work has
    /// completed: resolved any earlier, stamps read as zero on Metal (gfx-rs/wgpu#9414).
    #[must_use]
    pub fn resolves_after_completion(&self) -> bool {
        self.resolves_after_completion
    }

    fn live(&self) -> usize {
        Arc::strong_count(&self.live) - 1
    }
}

impl Stamps {
    fn new(device: &wgpu::Device, room: u32, passes: u32, live: Arc<()>) -> Self {
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("stamps"),
                size: u64::from(room) * PASS_BYTES,
                usage,
                mapped_at_creation: false,
            })
        };
        Stamps {
            set: device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("stamps"),
                ty: wgpu::QueryType::Timestamp,
                count: 2 * room,
            }),
            resolved: buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            readable: buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
            room,
            passes,
            _live: live,
        }
    }

    /// Where compute pass number `pass` leaves its begin and end; `None` if there is no room for it.
    #[must_use]
    pub fn compute_pass(&self, pass: u32) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let [begin, end] = self.queries(pass)?;
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(begin),
            end_of_pass_write_index: Some(end),
        })
    }

    /// The same for a render pass.
    #[must_use]
    pub fn render_pass(&self, pass: u32) -> Option<wgpu::RenderPassTimestampWrites<'_>> {
        let [begin, end] = self.queries(pass)?;
        Some(wgpu::RenderPassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(begin),
            end_of_pass_write_index: Some(end),
        })
    }

    /// The commands that make the stamps readable. Submit them behind the work, in the same
    /// submission or as [`StampPool::resolves_after_completion`] says.
    ///
    /// They are a command buffer of their own, since some drivers give zeros when resolving in that
    /// of the passes (gfx-rs/wgpu#6406).
    #[must_use]
    pub fn resolve(&self, device: &wgpu::Device) -> wgpu::CommandBuffer {
        let mut encoder = device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("stamps") });
        encoder.resolve_query_set(&self.set, 0..2 * self.passes, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readable, 0, self.bytes());
        encoder.map_buffer_on_submit(&self.readable, wgpu::MapMode::Read, ..self.bytes(), |_| ());
        encoder.finish()
    }

    /// The raw ticks of each pass's begin and end, between the submission's completion and
    /// [`StampPool::finish`]; else `None`.
    #[must_use]
    pub fn read(&self) -> Option<Vec<[u64; 2]>> {
        let bytes = self.readable.get_mapped_range(..self.bytes()).ok()?;
        let (stamps, _) = bytes.as_chunks::<8>();
        let (passes, _) = stamps.as_chunks::<2>();
        Some(passes.iter().map(|pass| pass.map(u64::from_ne_bytes)).collect())
    }

    fn queries(&self, pass: u32) -> Option<[u32; 2]> {
        (pass < self.passes).then(|| [2 * pass, 2 * pass + 1])
    }

    fn bytes(&self) -> u64 {
        u64::from(self.passes) * PASS_BYTES
    }
}
