//! What a tick is, and how to read one.
//!
//! On x86-64 Linux, where the kernel itself trusts the time stamp counter, a tick is one of that counter; everywhere
//! else it is a nanosecond of the monotonic clock. A thread keeps the choice beside its cursor, so that reading a tick
//! is a predictable branch and, in the first case, one instruction.

use stagetrace_wire::recording::layout::header;
use stagetrace_wire::recording::time::Reading;
use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local!(static STEPS: Cell<u64> = const { Cell::new(0) });

/// Where ticks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Clock {
    /// The monotonic clock, in nanoseconds.
    Monotonic = 0,
    /// The x86-64 time stamp counter.
    Counter = 1,
    /// A clock for tests: every reading is a microsecond after the one before, on this thread.
    Steps = 2,
}

impl Clock {
    /// The best clock of this machine.
    pub(crate) fn best() -> Clock {
        if counter_is_trusted() { Clock::Counter } else { Clock::Monotonic }
    }

    /// The code of this clock in a recording's header.
    pub(crate) fn code(self) -> u64 {
        match self {
            Clock::Counter => header::CLOCK_TSC,
            Clock::Monotonic | Clock::Steps => header::CLOCK_MONOTONIC,
        }
    }

    /// A tick; never 0.
    #[inline(always)]
    pub(crate) fn ticks(self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Clock::Counter = self {
            // SAFETY: every x86-64 processor has the instruction.
            return unsafe { core::arch::x86_64::_rdtsc() };
        }
        self.ticks_by_call()
    }

    /// A tick of [`Clock::Counter`], for whoever knows that this is the clock.
    #[inline(always)]
    pub(crate) fn counter() -> u64 {
        Clock::Counter.ticks()
    }

    #[inline(never)]
    fn ticks_by_call(self) -> u64 {
        match self {
            Clock::Steps => STEPS.with(|steps| {
                steps.set(steps.get() + 1_000);
                steps.get()
            }),
            Clock::Counter | Clock::Monotonic => monotonic_ns().max(1),
        }
    }

    /// Reads all clocks together, three times, and keeps the closest reading.
    pub(crate) fn read(self) -> Reading {
        let once = || {
            let before = self.ticks();
            let monotonic = monotonic_ns();
            let realtime = unix_ns();
            let again = monotonic_ns();
            let after = self.ticks();
            let ticks = before + after.saturating_sub(before) / 2;
            let middle = monotonic + again.saturating_sub(monotonic) / 2;
            Reading { ticks, monotonic: middle, realtime, error: again.saturating_sub(monotonic) }
        };
        let (a, b, c) = (once(), once(), once());
        [a, b, c].into_iter().min_by_key(|reading| reading.error).unwrap_or(a)
    }
}

/// Has this thread's clock for tests begin anew.
pub(crate) fn restart_steps() {
    STEPS.with(|steps| steps.set(0));
}

/// Nanoseconds of the clock that never steps: `CLOCK_MONOTONIC` on Unix.
pub fn monotonic_ns() -> u64 {
    #[cfg(unix)]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64 + 1
    }
}

/// Nanoseconds since 1970 by the wall clock; 0 before.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos() as u64)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn counter_is_trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
        && counter_is_invariant()
}

/// Whether the counter runs at one rate in every power state.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn counter_is_invariant() -> bool {
    // A safe function in newer releases of Rust than the oldest supported one.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |leaf| unsafe { core::arch::x86_64::__cpuid(leaf) };
    leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn counter_is_trusted() -> bool {
    false
}
