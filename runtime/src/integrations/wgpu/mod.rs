//! GPU passes as spans on the host's timeline (feature `wgpu`).
//!
//! A GPU writes time stamps at the begin and end of a pass. [`GpuClock`] tells where they lie on the
//! host's timeline, and how uncertain that is; [`gpu_passes!`](crate::gpu_passes) records each pass as
//! a span below the current one. The types of wgpu itself stand apart, in a module for each of its
//! versions ([`wgpu_30`]), so that everything else here serves any API that has raw stamps and the
//! length of a tick.
//!
//! Nothing here owns a thread, polls a device or submits to it.
//!
//! ```
//! use stagetrace::Stages;
//! use stagetrace::wgpu::{GpuClock, RawStamps, monotonic_ns};
//!
//! #[derive(Stages, Clone, Copy)]
//! enum Gpu {
//!     #[stage(level = 3)]
//!     Step,
//! }
//!
//! let mut clock = GpuClock::new(1.0);                       // one for the life of the device
//!
//! let submit_ns = monotonic_ns();
//! let passes = [[7_000, 7_400], [7_400, 7_900]];            // submit, wait, read the stamps
//! # std::thread::sleep(std::time::Duration::from_millis(1));
//! let done_ns = monotonic_ns();
//!
//! let times = clock.map(&RawStamps { passes: &passes, submit_ns, done_ns });
//! stagetrace::gpu_passes!(Gpu::Step, Some(&times), |pass| { "step" = pass });
//! assert!(times.is_ok());
//! ```
//!
//! The current span gets these attributes:
//!
//! | key | value |
//! |---|---|
//! | `gpu.timestamps` | `ok`, `unsupported` (the device has none) or `invalid` (they cannot be true) |
//! | `gpu.clock.source` | `bracketed`: from the host's times before and after each submission |
//! | `gpu.clock.uncertainty_ns` | by how many nanoseconds the passes may be off, all alike |
//!
//! Where stamps are invalid there are no spans of them: a wrong time is worse than none.

mod clock;
mod stamps;
#[cfg(test)]
mod tests;
pub mod wgpu_30;

use crate::record::{Attributes, current, record_interval, set_attribute};
use crate::stage::Site;

pub use crate::clock::monotonic_ns;
pub use crate::gpu_passes;
pub use clock::GpuClock;
pub use stamps::{InvalidStamps, PassTime, PassTimes, RawStamps};

/// Records the passes of a submission as spans of a stage, children of the current span, and marks
/// that with how certain they are: see [the module](crate::wgpu).
///
/// `gpu_passes!(STAGE, times)` or `gpu_passes!(STAGE, times, |pass| { "key" = value, .. })`: `times`
/// is an `Option<&Result<PassTimes, InvalidStamps>>`, `None` where the device has no time stamps;
/// `pass` is the index of the pass.
///
/// Each span costs what a host's span costs; nothing is evaluated where the stage is not recorded.
#[macro_export]
macro_rules! gpu_passes {
    ($stage:expr, $times:expr $(,)?) => {
        $crate::gpu_passes!($stage, $times, |_pass| {})
    };
    ($stage:expr, $times:expr, |$pass:pat_param| { $($key:literal = $value:expr),* $(,)? }) => {{
        static SITE: $crate::__private0::Site = $crate::__private0::Site::new(
            $stage.stage(),
            $crate::__private0::SpanKind::Internal,
            &[$($key),*],
            ::core::module_path!(),
            ::core::file!(),
            ::core::line!(),
        );
        $crate::wgpu::__record(&SITE, $times, |$pass: usize| ($($value,)*))
    }};
}

/// What [`gpu_passes!`](crate::gpu_passes) calls.
#[doc(hidden)]
pub fn __record<A: Attributes>(
    site: &'static Site,
    times: Option<&Result<PassTimes, InvalidStamps>>,
    mut attributes: impl FnMut(usize) -> A,
) {
    let parent = current();
    if parent.is_null() {
        return;
    }
    let times = match times {
        None => return set_attribute("gpu.timestamps", "unsupported"),
        Some(Err(_)) => return set_attribute("gpu.timestamps", "invalid"),
        Some(Ok(times)) => times,
    };
    set_attribute("gpu.timestamps", "ok");
    set_attribute("gpu.clock.source", "bracketed");
    set_attribute("gpu.clock.uncertainty_ns", times.uncertainty_ns);
    if parent.level() < site.stage().level() {
        return;
    }
    for (index, pass) in times.passes.iter().enumerate() {
        record_interval(site, parent, pass.begin_ns, pass.end_ns, attributes(index));
    }
}
