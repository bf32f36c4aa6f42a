//! Where a GPU's time stamps lie on the host's timeline.
//!
//! A GPU counts ticks of its own, from an instant of its own. Two facts tie them to the host: work
//! begins after it was submitted and ends before its end was seen. Each submission therefore bounds
//! the offset between the clocks from both sides, and the bounds of all submissions together are
//! narrower than those of one. This works on every backend, costs nothing, and says how wrong it may
//! be: the [uncertainty](PassTimes::uncertainty_ns).
//!
//! Everything here is pure: no GPU, no thread, no clock is read.

use super::stamps::{InvalidStamps, PassTime, PassTimes, RawStamps};

/// Two oscillators drift apart by less than this: 50 millionths.
const DRIFT: f64 = 50e-6;

/// Maps the ticks of one device to the host's nanoseconds.
///
/// Keep one for each device, for as long as the device: every submission that it
/// [maps](Self::map) makes it more certain. It survives steps of either clock, suspends and
/// counters that wrap; what it learnt before is then forgotten, and counted as a
/// [reset](Self::resets).
#[derive(Clone, Debug)]
pub struct GpuClock {
    /// Nanoseconds of a tick.
    period: f64,
    /// Valid bits of a stamp.
    bits: u32,
    bounds: Option<Bounds>,
    resets: u64,
}

/// The instant of `tick` lies between `lo` and `hi` nanoseconds after the host's `host`.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    tick: u64,
    host: u64,
    lo: f64,
    hi: f64,
}

impl GpuClock {
    /// `period_ns` is the length of a tick in nanoseconds, as the device tells it. If that is not a
    /// positive number, every submission is [invalid](InvalidStamps::Period).
    #[must_use]
    pub fn new(period_ns: f32) -> Self {
        GpuClock { period: f64::from(period_ns), bits: 64, bounds: None, resets: 0 }
    }

    /// The number of bits that a stamp's counter has, where it is known: 1 to 64 (others count as
    /// the nearest). Without it 64 are assumed, and a counter that wraps shows as invalid stamps or
    /// as a reset.
    #[must_use]
    pub fn with_valid_bits(self, bits: u32) -> Self {
        GpuClock { bits: bits.clamp(1, 64), ..self }
    }

    /// How often the clocks contradicted what was known of them, so that it was forgotten.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Length of an interval in nanoseconds; negative if the stamps are out of order.
    #[must_use]
    pub fn duration_ns(&self, begin: u64, end: u64) -> f64 {
        let unused = 64 - self.bits;
        // As integers, and sign-extended: the difference is exact, and a wrapped counter goes on.
        let ticks = (end.wrapping_sub(begin) << unused) as i64 >> unused;
        ticks as f64 * self.period
    }

    /// The passes of one submission on the host's timeline, and how sure that is.
    ///
    /// # Errors
    ///
    /// Stamps that cannot be true: see [`InvalidStamps`]. Nothing is learnt from them.
    pub fn map(&mut self, stamps: &RawStamps<'_>) -> Result<PassTimes, InvalidStamps> {
        if !(self.period.is_finite() && self.period > 0.0) {
            return Err(InvalidStamps::Period);
        }
        stamps.check(|begin, end| self.duration_ns(begin, end))?;
        let Some(&[reference, _]) = stamps.passes.first() else {
            return Ok(PassTimes { passes: Vec::new(), uncertainty_ns: 0 });
        };
        let ticks = || stamps.passes.as_flattened().iter().copied();
        let earlier = |a, b| if self.duration_ns(a, b) < 0.0 { b } else { a };
        let first = ticks().fold(reference, earlier);
        let length = ticks().map(|tick| self.duration_ns(first, tick)).fold(0.0, f64::max);
        if ticks().any(|tick| self.duration_ns(first, tick) < 0.0) {
            // They lie on more than half of the counter's circle.
            return Err(InvalidStamps::TooLong);
        }
        let Bounds { host, lo, hi, .. } = self.observe(first, length, stamps)?;

        // The bounds keep every pass within its submission, up to the uncertainty.
        let on_host = |tick| {
            let after = self.duration_ns(first, tick) + (lo + hi) / 2.0;
            host.saturating_add_signed(after.round() as i64).clamp(stamps.submit_ns, stamps.done_ns)
        };
        let pass =
            |&[begin, end]: &[u64; 2]| PassTime { begin_ns: on_host(begin), end_ns: on_host(end) };
        let uncertainty = (hi - lo) / 2.0 + DRIFT * length + self.period + 1.0;
        Ok(PassTimes {
            passes: stamps.passes.iter().map(pass).collect(),
            uncertainty_ns: uncertainty.ceil() as u64,
        })
    }

    /// Learns from a submission whose earliest stamp is `first` and whose latest comes `length`
    /// nanoseconds later.
    fn observe(
        &mut self,
        first: u64,
        length: f64,
        stamps: &RawStamps<'_>,
    ) -> Result<Bounds, InvalidStamps> {
        let RawStamps { submit_ns, done_ns, .. } = *stamps;
        let available = done_ns.checked_sub(submit_ns).ok_or(InvalidStamps::TooLong)?;
        // A stamp may be up to a tick older than its event.
        let (lo, hi) = (-self.period, available as f64 - length * (1.0 - DRIFT));
        if lo > hi {
            return Err(InvalidStamps::TooLong);
        }
        let seen = Bounds { tick: first, host: submit_ns, lo, hi };
        let bounds = match self.bounds {
            None => seen,
            Some(known) => {
                // Both seen from the new reference, which keeps it recent: counters wrap.
                let ticked = self.duration_ns(known.tick, first);
                let passed = submit_ns.wrapping_sub(known.host) as i64 as f64;
                let slack = DRIFT * ticked.abs().max(passed.abs());
                let lo = seen.lo.max(known.lo + ticked - passed - slack);
                let hi = seen.hi.min(known.hi + ticked - passed + slack);
                if lo > hi {
                    self.resets += 1;
                    seen
                } else {
                    Bounds { lo, hi, ..seen }
                }
            }
        };
        self.bounds = Some(bounds);
        Ok(bounds)
    }
}
