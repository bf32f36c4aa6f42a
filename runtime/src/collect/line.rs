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
            let left = u128::from(u64::MAX - unix.max(last.monotonic)) << 32;
            let ticks = left.checked_div(last.rate.into())?;
            // From there on they are those of an epoch before the line's. Those before the line are more away, for they
            // wrap.
            let end = timeline.ceiling().unwrap_or(u64::MAX);
            let ticks = ticks.min(u128::from(end.saturating_sub(last.ticks))) as u64;
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
        // Up to two nanoseconds per tick, so that times stay in range, and any number of them.
        let rate = prop_oneof![0_u64..1 << 33, 0_u64..1 << 40];
        let words = (any::<u64>(), any::<u64>(), rate, any::<i64>());
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
            let timeline = Timeline::new(anchors.clone());
            let line = Line::new(&timeline);
            prop_assert_eq!(line.unix(ticks), timeline.unix(ticks));
            for anchor in &anchors {
                for ticks in [anchor.ticks.saturating_add(away), anchor.ticks.saturating_sub(away)] {
                    prop_assert_eq!(line.unix(ticks), timeline.unix(ticks));
                }
            }
        }
    }

    #[test]
    fn a_tick_from_before_the_counter_began_anew_keeps_its_time() {
        let anchor =
            |ticks, monotonic| Anchor { ticks, monotonic, rate: 1 << 32, wall: 7, error: 0 };
        let timeline = Timeline::new([anchor(1_000_000, 1_000), anchor(50, 9_000)]);
        let line = Line::new(&timeline);
        assert_eq!([line.unix(1_000_400), line.unix(90)], [1_407, 9_047]);
    }
}
