//! What a tick is, and how to read one.
//!
//! On x86-64 Linux, where the kernel itself trusts the time stamp counter, a tick is one of that counter; everywhere
//! else it is a nanosecond of the monotonic clock. A thread keeps the choice beside its cursor, so that reading a tick
//! is a predictable branch and, in the first case, one instruction.
//!
//! That instruction waits for nothing: the processor may read the counter before it has loaded what another thread
//! handed over, and so date a child before its parent. Hence [`arrive`], where a thread takes up another's context.

mod source;

pub use source::ClockSource;

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

/// The clocks that anchors are read from: those of the machine, or of a test.
pub(crate) trait Clocks {
    /// A tick; never 0.
    fn ticks(&self) -> u64;
    /// Whether ticks are nanoseconds of the monotonic clock.
    fn ticks_are_ns(&self) -> bool;
    /// Nanoseconds of the clock that never steps.
    fn monotonic(&self) -> u64;
    /// Nanoseconds since 1970 by the wall clock.
    fn realtime(&self) -> u64;

    /// Reads all of them together.
    fn read(&self) -> Reading {
        let ticks = (!self.ticks_are_ns()).then_some(|| self.ticks());
        Reading::take(ticks, || self.monotonic(), || self.realtime())
    }
}

impl Clocks for Clock {
    fn ticks(&self) -> u64 {
        Clock::ticks(*self)
    }
    fn ticks_are_ns(&self) -> bool {
        *self != Clock::Counter
    }
    fn monotonic(&self) -> u64 {
        monotonic_ns()
    }
    fn realtime(&self) -> u64 {
        unix_ns()
    }
}

impl Clock {
    /// The clock of this source.
    pub(crate) fn of(source: &ClockSource) -> Clock {
        if source.is_counter { Clock::Counter } else { Clock::Monotonic }
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
}

/// Dates whatever this thread begins from now on behind what it has got from other threads so far.
#[inline(always)]
pub(crate) fn arrive() {
    // Miri does not know the instruction, and has no counter either.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // A safe function in newer releases of Rust than the oldest supported one.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        core::arch::x86_64::_mm_lfence();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    fn best() -> Clock {
        Clock::of(&ClockSource::of_this_machine())
    }

    /// Waits without a call, so that what follows follows at once; but not for long, since whoever is waited for may
    /// need this processor.
    fn spin_until(condition: impl Fn() -> bool) {
        for spins in 0_u32.. {
            if condition() {
                return;
            }
            if spins < 10_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    #[test]
    fn ticks_of_one_thread_are_in_the_order_of_the_program() {
        let clock = best();
        let mut last = clock.ticks();
        for _ in 0..5_000_000 {
            let now = clock.ticks();
            assert!(last <= now, "{last} before {now}");
            last = now;
        }
    }

    #[test]
    fn who_arrives_is_never_before_what_was_handed_over() {
        let clock = best();
        let (handed, sent, taken) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let end = Instant::now() + Duration::from_secs(2);
        std::thread::scope(|scope| {
            let child = scope.spawn(|| {
                for number in 1.. {
                    spin_until(|| sent.load(Ordering::Acquire) >= number);
                    arrive();
                    let child = clock.ticks();
                    let parent = handed.load(Ordering::Relaxed);
                    if parent == u64::MAX {
                        return number - 1;
                    }
                    assert!(parent <= child, "hand-over {number}: {child} before {parent}");
                    taken.store(number, Ordering::Release);
                }
                0
            });
            // On a busy machine as many hand-overs as it takes, too.
            for number in 1.. {
                let is_over = Instant::now() > end && number > 100 || child.is_finished();
                handed.store(if is_over { u64::MAX } else { clock.ticks() }, Ordering::Relaxed);
                sent.store(number, Ordering::Release);
                if is_over {
                    break;
                }
                spin_until(|| taken.load(Ordering::Acquire) >= number || child.is_finished());
            }
            assert!(child.join().unwrap() >= 100, "the two hardly met");
        });
    }
}
