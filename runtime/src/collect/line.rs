//! From ticks to time on the line that holds now: one multiplication.

use super::view::Record;
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::{Anchor, Timeline};

/// A timeline and its last line, on which nearly all that is collected lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) timeline: &'a Timeline,
    last: Option<Anchor>,
}

impl<'a> Line<'a> {
    /// The line that holds now.
    pub(super) fn new(timeline: &'a Timeline) -> Line<'a> {
        Line { timeline, last: timeline.last().copied() }
    }

    /// What the timeline says of these ticks.
    #[inline]
    fn unix(&self, ticks: u64) -> u64 {
        if let Some(last) = &self.last
            && let Some(away) = ticks.checked_sub(last.ticks)
            && let Ok(ns) = u64::try_from((u128::from(away) * u128::from(last.rate)) >> 32)
        {
            return last.monotonic.saturating_add(ns).saturating_add_signed(last.wall);
        }
        self.timeline.unix(ticks)
    }

    /// Begin and end in Unix nanoseconds; an end before its begin is its begin.
    #[inline]
    pub(super) fn times(&self, record: &Record<'_>) -> (u64, u64) {
        let (begin, end) = (record.word(slot::BEGIN), record.word(slot::END));
        let (begin, end) = match record.flag(slot::NANOSECONDS) {
            true => (self.timeline.unix_of_monotonic(begin), self.timeline.unix_of_monotonic(end)),
            false => (self.unix(begin), self.unix(end)),
        };
        (begin, end.max(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn anchor() -> impl Strategy<Value = Anchor> {
        let words = (any::<u64>(), any::<u64>(), 0_u64..1 << 40, any::<i64>());
        words.prop_map(|(ticks, monotonic, rate, wall)| Anchor {
            ticks,
            monotonic,
            rate,
            wall,
            error: 0,
        })
    }

    proptest! {
        #[test]
        fn a_tick_has_the_time_that_the_timeline_gives_it(
            anchors in proptest::collection::vec(anchor(), 0..3),
            ticks: u64,
            away in 0_u64..1 << 40,
        ) {
            let timeline = Timeline::new(anchors);
            let line = Line::new(&timeline);
            prop_assert_eq!(line.unix(ticks), timeline.unix(ticks));
            let last = timeline.last().map_or(0, |last| last.ticks);
            for ticks in [last.saturating_add(away), last.saturating_sub(away)] {
                prop_assert_eq!(line.unix(ticks), timeline.unix(ticks));
            }
        }
    }
}
