//! The recording's log of anchors, and the clocks of this machine.

use super::view::View;
use crate::recording::layout::header;
use crate::recording::time::{Anchor, Reading, Timeline};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most nanoseconds per tick that an anchor is believed, with 32 bits after the point.
const MAX_RATE: u64 = 1 << 42;
/// How far a reading may be from the first anchor's line, in nanoseconds, to be of the same clock.
const MAX_MISS: u64 = 60_000_000_000;

/// The longest time between two anchors of a young recording, in nanoseconds, with room for a sleeping machine.
const MAX_SILENCE: u64 = 600_000_000_000;
/// Of an old one, anchors are at most this part of its age apart.
const SILENCE_OF_AGE: u64 = 16;

/// Times of ticks.
#[derive(Debug)]
pub(super) struct Times {
    timeline: Timeline,
    /// Ticks before this are before all anchors that are left.
    from: u64,
    /// There are too few anchors for any time to be certain.
    uncertain: bool,
    /// Ticks when the writer last looked after its spans, 0 if unknown.
    seen: u64,
}

impl Times {
    /// Reads the log. `is_here` says that the writer runs on this machine, in this boot, so that a
    /// reading of its clocks can stand in for an anchor that is not there yet.
    pub(super) fn read(words: View<'_>, is_here: bool) -> Times {
        let (anchors, count) = anchors(words);
        let has_all = count <= header::ANCHORS as u64;
        let from = anchors.first().filter(|_| !has_all).map_or(0, |anchor| anchor.ticks);
        let mut timeline = Timeline::new(anchors);
        let mut uncertain = count < 2;
        if let (1, true, Some(first)) = (count, is_here, timeline.last().copied())
            && let Some(now) = reading(words.load(header::CLOCK))
            && let Some(next) = after(first, now)
        {
            timeline.push(next);
            uncertain = false;
        }
        Times { timeline, from, uncertain, seen: words.load(header::SEEN) }
    }

    /// Unix nanoseconds of ticks.
    pub(super) fn unix(&self, ticks: u64) -> u64 {
        self.timeline.unix(ticks)
    }

    /// Unix nanoseconds of an instant of the monotonic clock.
    pub(super) fn unix_of_monotonic(&self, ns: u64) -> u64 {
        self.timeline.unix_of_monotonic(ns)
    }

    /// Whether the time of these ticks is only an estimate.
    pub(super) fn is_uncertain(&self, ticks: u64) -> bool {
        self.uncertain || ticks < self.from
    }

    /// Unix nanoseconds of the last anchor, or of when the writer was last seen after it; 0 without any anchor.
    pub(super) fn last(&self) -> u64 {
        let Some(anchor) = self.timeline.last() else { return 0 };
        // A time long after the last anchor is no sign of life but damage: the writer never lets so much time pass.
        let seen = anchor.unix(self.seen.max(anchor.ticks));
        let last = anchor.unix(anchor.ticks);
        let first = self.timeline.first().map_or(0, |first| first.monotonic);
        let silence = MAX_SILENCE.max(anchor.monotonic.saturating_sub(first) / SILENCE_OF_AGE);
        if seen.saturating_sub(last) < silence { seen } else { last }
    }

    /// Unix nanoseconds now, by the recording's own clock if that is ours.
    pub(super) fn now(&self, is_here: bool) -> u64 {
        match monotonic() {
            Some(ns) if is_here && self.timeline.last().is_some() => self.unix_of_monotonic(ns),
            _ => realtime(),
        }
    }
}

/// The anchors that are there whole, oldest first, and how many there ever were.
fn anchors(words: View<'_>) -> (Vec<Anchor>, u64) {
    let ring = header::ANCHORS as u64;
    let count = words.load_first(header::ANCHOR_COUNT);
    let mut found = Vec::new();
    for index in count.saturating_sub(ring)..count {
        let at = (header::ANCHOR_RING + (index % ring) as usize * header::ANCHOR) / 8;
        found.push((index, [0, 1, 2, 3, 4, 5].map(|word| words.load(at + word))));
    }
    // The writer may be writing one or, as others see it, two that are not counted yet.
    let written = words.load_last(header::ANCHOR_COUNT).saturating_add(2);
    let is_whole = |index: u64| written <= ring || written.saturating_sub(index) <= ring;
    found.retain(|(index, _)| is_whole(*index));
    let anchors = found.into_iter().map(|(_, words)| Anchor::from_words(words));
    (anchors.filter(|anchor| (1..=MAX_RATE).contains(&anchor.rate)).collect(), count)
}

/// The anchor that a reading makes after the first one; `None` if they are not of the same clock.
fn after(first: Anchor, now: Reading) -> Option<Anchor> {
    let Anchor { ticks, monotonic, error, .. } = first;
    let origin = Reading { ticks, monotonic, realtime: 0, error };
    let rate = now.rate_since(origin).filter(|_| first.miss(now) <= MAX_MISS)?;
    Some(first.next(rate, now)).filter(|next| next.rate <= MAX_RATE)
}

/// Reads the clocks of this machine together, for ticks of the clock with this code. `None` if it
/// has no such clock.
fn reading(clock: u64) -> Option<Reading> {
    monotonic()?;
    let counter = match clock {
        header::CLOCK_MONOTONIC => None,
        header::CLOCK_TSC if counter().is_some() => Some(|| counter().unwrap_or(0)),
        _ => return None,
    };
    Some(Reading::take(counter, || monotonic().unwrap_or(0), realtime))
}

fn realtime() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos() as u64)
}

/// Nanoseconds of the clock that never steps.
fn monotonic() -> Option<u64> {
    #[cfg(unix)]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        u64::try_from(i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)).ok()
    }
    #[cfg(not(unix))]
    {
        None
    }
}

/// The time stamp counter.
fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}
