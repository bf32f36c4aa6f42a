//! Which finished requests are exported.

use super::TraceConfig;
use crate::error::InitError;
use std::time::Duration;

/// Tail sampling: what of a request is exported is decided when it is finished. Given to
/// [`TraceConfig::tail_sampling`].
///
/// The spans of a trace wait, in memory, until the span that began it in this process has ended, a request's root mostly.
/// They are exported if any of the rules below wants them; a span that ends later follows what was decided. So a trace
/// leaves this process whole or not at all, as long as there is room for what waits: beyond
/// [`max_bytes`](Self::max_bytes) or [`max_age`](Self::max_age) the oldest traces are decided early, as they stand.
///
/// What is sent onward says that it is sampled while it is undecided: the processes behind decide for themselves. A
/// [`fraction`](Self::fraction) is that of the same traces everywhere.
///
/// A trace that is [forced](crate::TraceState::force) is exported whatever the rules say.
///
/// It stands between the recorder and the exporters; the local `.jsonl` file gets all that is recorded, unless
/// [`jsonl`](Self::jsonl) says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TailSampling {
    /// Traces in which something failed, panicked or was cancelled: true.
    pub errors: bool,
    /// Traces that took as long: by default no time is long.
    pub slower_than: Option<Duration>,
    /// The slowest hundredth of the traces that begin alike, as they were of late: true.
    pub slowest: bool,
    /// So many traces in a second, whatever they are: 1.
    pub per_second: f64,
    /// This share of the others, 0 to 1, chosen by trace id: 0.
    pub fraction: f64,
    /// Bytes that wait at most: 64 MiB.
    pub max_bytes: usize,
    /// Longest time that a trace waits: 60 s.
    pub max_age: Duration,
    /// Whether the local `.jsonl` gets only what is exported, too: false. What waits is then in the recording alone, and
    /// in the process's spool when that has no more room for it: a kill loses none of it, but after one recovery finds
    /// spans that nobody wanted as well.
    pub jsonl: bool,
}

impl Default for TailSampling {
    fn default() -> Self {
        Self {
            errors: true,
            slower_than: None,
            slowest: true,
            per_second: 1.0,
            fraction: 0.0,
            max_bytes: 64 << 20,
            max_age: Duration::from_secs(60),
            jsonl: false,
        }
    }
}

impl TraceConfig {
    /// Exports only the requests that [`TailSampling`] wants, which `change` may change. By default all are exported.
    ///
    /// ```
    /// # use stagetrace::TraceConfig;
    /// use std::time::Duration;
    ///
    /// let config = TraceConfig::new().tail_sampling(|tail| {
    ///     tail.slower_than = Some(Duration::from_secs(2));
    ///     tail.fraction = 0.01;
    /// });
    /// ```
    pub fn tail_sampling(mut self, change: impl FnOnce(&mut TailSampling)) -> Self {
        change(self.tail.get_or_insert_default());
        self
    }
}

impl TailSampling {
    /// Says what makes no sense.
    pub(super) fn check(&self) -> Result<(), InitError> {
        if !(0.0..=1.0).contains(&self.fraction) {
            return Err(InitError::SamplingRatio(self.fraction));
        }
        if !(self.per_second >= 0.0 && self.per_second.is_finite()) {
            return Err(InitError::SamplingRate(self.per_second));
        }
        Ok(())
    }
}
