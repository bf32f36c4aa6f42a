//! From ticks to time on the line that holds now: one multiplication.

use super::view::Record;
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::Timeline;

/// A timeline and its last line, on which nearly all that is collected lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) timeline: &'a Timeline,
    /// From these ticks on it holds, and what time that was; for so many ticks nothing overflows.
    from: u64,
    unix: u64,
    rate: u64,
    ticks: u64,
}

impl<'a> Line<'a> {
    /// The line that holds now.
    pub(super) fn new(timeline: &'a Timeline) -> Line<'a> {
        let line = timeline.last().and_then(|last| {
            let unix = last.monotonic.checked_add_signed(last.wall)?;
            let left = u128::from(u64::MAX - unix) << 32;
            let ticks = left.checked_div(last.rate.into())?;
            // Ticks before the line are more away than this, for they wrap.
            let ticks = ticks.min(u128::from(u64::MAX - last.ticks)) as u64;
            Some(Line { timeline, from: last.ticks, unix, rate: last.rate, ticks })
        });
        line.unwrap_or(Line { timeline, from: 0, unix: 0, rate: 0, ticks: 0 })
    }

    /// What the timeline says of these ticks.
    #[inline]
    fn unix(&self, ticks: u64) -> u64 {
        let away = ticks.wrapping_sub(self.from);
        if away >= self.ticks {
            return self.elsewhere(ticks);
        }
        self.unix + ((u128::from(away) * u128::from(self.rate)) >> 32) as u64
    }

    #[cold]
    fn elsewhere(&self, ticks: u64) -> u64 {
        self.timeline.unix(ticks)
    }

    /// Begin and end in Unix nanoseconds; an end before its begin is its begin.
    #[inline]
    pub(super) fn times(&self, record: &Record<'_>) -> (u64, u64) {
        let (begin, end) = (record.word(slot::BEGIN), record.word(slot::END));
        if !record.flag(slot::NANOSECONDS) {
            return self.of_ticks(begin, end);
        }
        let begin = self.timeline.unix_of_monotonic(begin);
        (begin, self.timeline.unix_of_monotonic(end).max(begin))
    }

    /// The same of a span whose times are ticks.
    #[inline]
    pub(super) fn of_ticks(&self, begin: u64, end: u64) -> (u64, u64) {
        let begin = self.unix(begin);
        (begin, self.unix(end).max(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stagetrace_wire::recording::time::Anchor;

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
