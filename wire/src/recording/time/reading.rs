//! The clocks read together.

/// How often the clocks are read at least for one reading, and at most.
const TRIES: (u32, u32) = (3, 12);
/// A reading with an error up to this, in nanoseconds, needs no further try.
const GOOD: u64 = 500;

/// The clocks read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Ticks.
    pub ticks: u64,
    /// Monotonic clock, in nanoseconds.
    pub monotonic: u64,
    /// Unix time in nanoseconds.
    pub realtime: u64,
    /// How far ticks and monotonic clock may be apart, in nanoseconds.
    pub error: u64,
}

impl Reading {
    /// Reads the clocks several times and keeps what lies closest together, since whoever reads may lose the processor
    /// between two of them. `ticks` is `None` if ticks are nanoseconds of the monotonic clock.
    pub fn take(
        mut ticks: Option<impl FnMut() -> u64>,
        mut monotonic: impl FnMut() -> u64,
        mut realtime: impl FnMut() -> u64,
    ) -> Reading {
        let mut best: Option<Pairs> = None;
        for done in 1..=TRIES.1 {
            // Each clock between two readings of the monotonic one: whatever comes between shows in their distance.
            let first = monotonic();
            let ticks = ticks.as_mut().map(|ticks| ticks());
            let second = if ticks.is_some() { monotonic() } else { first };
            let realtime = realtime();
            let third = monotonic();
            let tick = Pair::new(ticks.unwrap_or(first), first, second);
            let wall = Pair::new(realtime, second, third);
            let kept = best.get_or_insert(Pairs { tick, wall });
            kept.tick = kept.tick.closer(tick);
            kept.wall = kept.wall.closer(wall);
            if done >= TRIES.0 && kept.tick.error <= GOOD && kept.wall.error <= GOOD {
                break;
            }
        }
        match best {
            Some(Pairs { tick, wall }) => Reading {
                ticks: tick.value,
                monotonic: tick.monotonic,
                // As it was at the ticks, wherever the two were read.
                realtime: wall.value.wrapping_add(tick.monotonic).wrapping_sub(wall.monotonic),
                error: tick.error,
            },
            None => Reading { ticks: 0, monotonic: 0, realtime: 0, error: u64::MAX },
        }
    }

    /// Nanoseconds per tick since an earlier reading, with 32 bits after the point; `None` if either clock stood still.
    pub fn rate_since(&self, earlier: Reading) -> Option<u64> {
        let ticks = self.ticks.checked_sub(earlier.ticks)?;
        let ns = self.monotonic.checked_sub(earlier.monotonic)?;
        let rate = (u128::from(ns) << 32).checked_div(u128::from(ticks))?;
        u64::try_from(rate).ok().filter(|rate| *rate > 0)
    }

    /// Unix time minus monotonic time, in nanoseconds.
    pub fn wall(&self) -> i64 {
        self.realtime.wrapping_sub(self.monotonic) as i64
    }
}

struct Pairs {
    tick: Pair,
    wall: Pair,
}

/// A clock's value, and the monotonic time in the middle of the bracket in which it was read.
#[derive(Clone, Copy)]
struct Pair {
    value: u64,
    monotonic: u64,
    error: u64,
}

impl Pair {
    fn new(value: u64, before: u64, after: u64) -> Pair {
        let width = after.saturating_sub(before);
        Pair { value, monotonic: before + width / 2, error: width.div_ceil(2) }
    }

    fn closer(self, other: Pair) -> Pair {
        if other.error < self.error { other } else { self }
    }
}
