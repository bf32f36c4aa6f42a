//! What a submission leaves behind, and what it means.

use thiserror::Error;

/// The time stamps of one submission, as the device wrote them, and the host's times around it.
///
/// Host times are nanoseconds of [`monotonic_ns`](super::monotonic_ns), the recorder's own clock.
#[derive(Clone, Copy, Debug)]
pub struct RawStamps<'a> {
    /// Begin and end of each pass, in ticks.
    pub passes: &'a [[u64; 2]],
    /// Read just before the work was submitted.
    pub submit_ns: u64,
    /// Read just after its completion was seen.
    pub done_ns: u64,
}

/// Begin and end of a pass on the host's timeline, in nanoseconds of
/// [`monotonic_ns`](super::monotonic_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassTime {
    /// When everything before the pass had finished.
    pub begin_ns: u64,
    /// When the pass had finished; never before `begin_ns`.
    pub end_ns: u64,
}

/// The passes of one submission on the host's timeline. None leaves the submission's host times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassTimes {
    /// In the order of the stamps.
    pub passes: Vec<PassTime>,
    /// All of them together may be earlier or later by at most this, in nanoseconds. Their distances
    /// from each other are exact to the tick and the drift of the clocks.
    pub uncertainty_ns: u64,
}

/// Why stamps cannot be true. There are then no spans of the GPU's time: a wrong one is worse than
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidStamps {
    /// A stamp that was never written, as by an empty pass or a driver that resolves too soon.
    #[error("pass {pass} has no stamp")]
    Missing {
        /// Index of the pass.
        pass: usize,
    },
    /// A pass that ends before it begins.
    #[error("pass {pass} ends before it begins")]
    Reversed {
        /// Index of the pass.
        pass: usize,
    },
    /// The passes together took longer than the host waited for them, or the host's times are
    /// reversed.
    #[error("the passes took longer than the host saw")]
    TooLong,
    /// The device's memory could not be read: the work has not completed, or the device is lost.
    #[error("the stamps cannot be read")]
    Unreadable,
    /// The length of a tick is not a positive number.
    #[error("the device tells no length of its ticks")]
    Period,
}

impl RawStamps<'_> {
    /// Whether each pass has its stamps, in order, by a measure of the distance between two.
    pub(super) fn check(&self, distance: impl Fn(u64, u64) -> f64) -> Result<(), InvalidStamps> {
        for (pass, &[begin, end]) in self.passes.iter().enumerate() {
            if begin == 0 || end == 0 {
                return Err(InvalidStamps::Missing { pass });
            }
            if distance(begin, end) < 0.0 {
                return Err(InvalidStamps::Reversed { pass });
            }
        }
        Ok(())
    }
}
