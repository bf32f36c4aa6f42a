//! Clocks: the processor's counter, the process's CPU time, and F.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The counter that is read fastest. [`TickRate`] says how long a tick is.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    stagetrace::monotonic_ns()
}

/// How long a tick is, learned from what passes between its making and its use.
pub(crate) struct TickRate {
    ticks: u64,
    instant: Instant,
}

impl TickRate {
    pub(crate) fn start() -> TickRate {
        TickRate { ticks: ticks(), instant: Instant::now() }
    }

    /// Nanoseconds per tick. At least some milliseconds should have passed.
    pub(crate) fn ns_per_tick(&self) -> f64 {
        let passed = ticks() - self.ticks;
        self.instant.elapsed().as_nanos() as f64 / passed.max(1) as f64
    }
}

/// F, in nanoseconds: two clock reads and a 16-byte store, which no recorder of spans can do without.
pub(crate) fn floor() -> f64 {
    const TIMES: usize = 20_000;
    let mut ring = [[0u64; 2]; 4096];
    let start = Instant::now();
    for i in 0..TIMES {
        let begin = ticks();
        black_box(i);
        ring[i & 4095] = [begin, ticks()];
    }
    black_box(&ring);
    start.elapsed().as_nanos() as f64 / TIMES as f64
}

/// CPU time of the whole process so far, background threads included.
pub(crate) fn process_cpu() -> Duration {
    // SAFETY: all zeros is a valid time.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a time that may be written.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The most memory that was ever resident, in MiB; `None` where there is no `/proc`.
pub(crate) fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
