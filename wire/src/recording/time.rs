//! From ticks to time: a line fixed by a log of anchors.
//!
//! The writer reads its clocks together now and then and fixes, each time, the line that holds *from there on*. A line
//! begins where the one before ends and never falls, so one tick has one time for ever, whoever asks and whenever.

/// One reading of the clocks, and the line that holds from it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Ticks at the reading.
    pub ticks: u64,
    /// Nanoseconds of the monotonic clock that the line gives these ticks.
    pub monotonic: u64,
    /// Nanoseconds per tick, as a fixed-point number with 32 bits after the point.
    pub rate: u64,
    /// Unix time minus monotonic time, in nanoseconds.
    pub wall: i64,
    /// How far the reading may be wrong, in nanoseconds.
    pub error: u64,
}

/// Forward jumps of the wall clock up to this, in nanoseconds, are not followed.
const WALL_JUMP: i64 = 1_000_000_000;
/// How long the line takes to meet a new reading, in nanoseconds.
const CATCH_UP: i128 = 1_000_000_000;

impl Anchor {
    /// The first anchor: the line through one reading with the rate between two.
    pub fn first(earlier: Reading, now: Reading) -> Anchor {
        Anchor {
            ticks: now.ticks,
            monotonic: now.monotonic,
            rate: rate_between(earlier, now),
            wall: now.realtime.wrapping_sub(now.monotonic) as i64,
            error: now.error,
        }
    }

    /// The anchor after this one. The line goes on without a step and bends so that it meets the clock, at the rate
    /// seen since `origin`, within a second; it never falls.
    pub fn next(&self, origin: Reading, now: Reading) -> Anchor {
        let monotonic = self.monotonic(now.ticks);
        let rate = rate_between(origin, now);
        let behind = i128::from(now.monotonic) - i128::from(monotonic);
        let bent = i128::from(rate) * (CATCH_UP + behind).max(CATCH_UP / 2) / CATCH_UP;
        let wall = now.realtime.wrapping_sub(now.monotonic) as i64;
        Anchor {
            ticks: now.ticks,
            monotonic,
            rate: u64::try_from(bent).unwrap_or(rate).max(1),
            wall: if wall.saturating_sub(self.wall) > WALL_JUMP { wall } else { self.wall },
            error: now.error,
        }
    }

    /// How far this anchor's line is from a reading, in nanoseconds.
    pub fn miss(&self, now: Reading) -> u64 {
        self.monotonic(now.ticks).abs_diff(now.monotonic)
    }

    /// Nanoseconds of the monotonic clock at `ticks`, by this anchor's line.
    pub fn monotonic(&self, ticks: u64) -> u64 {
        let away = i128::from(ticks) - i128::from(self.ticks);
        let ns = i128::from(self.monotonic) + ((away * i128::from(self.rate)) >> 32);
        ns.clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The anchor's words in a recording.
    pub fn to_words(&self) -> [u64; 6] {
        [self.ticks, self.monotonic, self.rate, self.wall as u64, self.error, 0]
    }

    /// The anchor of these words.
    pub fn from_words(words: [u64; 6]) -> Anchor {
        let [ticks, monotonic, rate, wall, error, _] = words;
        Anchor { ticks, monotonic, rate, wall: wall as i64, error }
    }
}

/// The clocks read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Ticks.
    pub ticks: u64,
    /// Monotonic clock, in nanoseconds.
    pub monotonic: u64,
    /// Unix time in nanoseconds.
    pub realtime: u64,
    /// How far apart the readings may be, in nanoseconds.
    pub error: u64,
}

fn rate_between(earlier: Reading, now: Reading) -> u64 {
    let ticks = now.ticks.saturating_sub(earlier.ticks);
    let ns = now.monotonic.saturating_sub(earlier.monotonic);
    match u64::try_from((u128::from(ns) << 32) / u128::from(ticks.max(1))) {
        Ok(rate) if rate > 0 => rate,
        _ => 1 << 32,
    }
}

/// The log of anchors, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    anchors: Vec<Anchor>,
}

impl Timeline {
    /// A timeline of these anchors, which must be in order of their ticks; those that are not are left out.
    pub fn new(anchors: impl IntoIterator<Item = Anchor>) -> Timeline {
        let mut timeline = Timeline::default();
        for anchor in anchors {
            timeline.push(anchor);
        }
        timeline
    }

    /// Adds an anchor; one that is not later than the last is ignored.
    pub fn push(&mut self, anchor: Anchor) {
        if self.anchors.last().is_none_or(|last| last.ticks < anchor.ticks) {
            self.anchors.push(anchor);
        }
    }

    /// How many anchors there are.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// Leaves out every second anchor of the older half. Times in that half move by as much as its anchors differ from
    /// the lines before them.
    pub fn thin_out(&mut self) {
        let half = self.anchors.len() / 2;
        let mut at = 0;
        self.anchors.retain(|_| {
            at += 1;
            at > half || at % 2 == 1
        });
    }

    /// The newest anchor.
    pub fn last(&self) -> Option<&Anchor> {
        self.anchors.last()
    }

    /// Unix nanoseconds of `ticks`. 0 without any anchor.
    pub fn unix(&self, ticks: u64) -> u64 {
        let anchor = self.at(|a| a.ticks <= ticks);
        anchor.map_or(0, |a| a.monotonic(ticks).saturating_add_signed(a.wall))
    }

    /// Unix nanoseconds of an instant of the monotonic clock. 0 without any anchor.
    pub fn unix_of_monotonic(&self, ns: u64) -> u64 {
        let anchor = self.at(|a| a.monotonic <= ns);
        anchor.map_or(0, |a| ns.saturating_add_signed(a.wall))
    }

    /// The last anchor for which `reached` holds; the first if there is none.
    fn at(&self, reached: impl Fn(&Anchor) -> bool) -> Option<&Anchor> {
        match self.anchors.last() {
            Some(last) if reached(last) => Some(last),
            _ => {
                let after = self.anchors.partition_point(|a| reached(a));
                self.anchors.get(after.saturating_sub(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks of a machine whose counter runs at 2.1 GHz and drifts by 30 millionths.
    fn at(second: f64) -> Reading {
        let ns = (second * 1e9) as u64;
        Reading {
            ticks: (ns as f64 * 2.1 * 1.000_03) as u64 + 1_000,
            monotonic: ns + 5,
            realtime: 1_700_000_000_000_000_000 + ns,
            error: 20,
        }
    }

    fn log(seconds: &[f64]) -> Timeline {
        let first = Anchor::first(at(0.0), at(0.001));
        let mut timeline = Timeline::new([first]);
        for &second in seconds {
            let next = timeline.last().unwrap().next(at(0.0), at(second));
            timeline.push(next);
        }
        timeline
    }

    #[test]
    fn a_tick_has_one_time_whatever_is_learned_later() {
        let early = log(&[0.01, 0.1]);
        let late = log(&[0.01, 0.1, 1.0, 2.0]);
        for ms in 0..150 {
            let ticks = at(f64::from(ms) / 1e3).ticks;
            if ticks < at(0.1).ticks {
                assert_eq!(early.unix(ticks), late.unix(ticks), "at {ms} ms");
            }
        }
    }

    #[test]
    fn the_line_never_falls_and_has_no_step() {
        let timeline = log(&[0.01, 0.1, 1.0, 2.0, 3.0]);
        let mut before = 0;
        for us in (0..4_000_000).step_by(997) {
            let now = timeline.unix(at(f64::from(us) / 1e6).ticks);
            assert!(now >= before, "falls at {us} us");
            before = now;
        }
    }

    #[test]
    fn the_line_stays_near_the_clock() {
        let timeline = log(&[0.01, 0.1, 1.0, 2.0]);
        let reading = at(2.5);
        assert!(timeline.unix(reading.ticks).abs_diff(reading.realtime) < 2_000);
    }

    #[test]
    fn a_backward_step_of_the_wall_clock_is_not_followed_a_forward_jump_is() {
        let mut timeline = log(&[0.01, 0.1]);
        let mut back = at(1.0);
        back.realtime -= 5_000_000_000;
        timeline.push(timeline.last().unwrap().next(at(0.0), back));
        assert!(timeline.unix(at(1.5).ticks).abs_diff(at(1.5).realtime) < 2_000);
        let mut forward = at(2.0);
        forward.realtime += 5_000_000_000;
        timeline.push(timeline.last().unwrap().next(at(0.0), forward));
        let after = timeline.unix(at(2.5).ticks);
        assert!(after.abs_diff(at(2.5).realtime + 5_000_000_000) < 2_000);
    }
}
