//! From ticks to time: a line fixed by a log of anchors.
//!
//! The writer reads its clocks together now and then and fixes, each time, the line that holds *from there on*. A line
//! begins where the one before ends and never falls, so one tick has one time for ever, whoever asks and whenever. Where
//! the clocks have parted (a suspended machine, a moved one) the next line begins later instead, never earlier.

mod reading;
#[cfg(test)]
mod tests;
mod timeline;

pub use reading::Reading;
pub use timeline::Timeline;

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
    /// How far the line may be from the monotonic clock, in nanoseconds.
    pub error: u64,
}

/// The wall clock is followed forward if it is ahead by more than this, in nanoseconds.
pub const WALL_JUMP: i64 = 1_000_000_000;
/// How long the line takes to meet a new reading, in nanoseconds.
const CATCH_UP: i128 = 1_000_000_000;
/// The line is bent by at most one part in so many meanwhile: durations stay right to that.
const MAX_BEND: i128 = 16;

impl Anchor {
    /// The first anchor: the line through one reading with the rate between two.
    pub fn first(earlier: Reading, now: Reading) -> Anchor {
        Anchor {
            ticks: now.ticks,
            monotonic: now.monotonic,
            rate: now.rate_since(earlier).unwrap_or(1 << 32),
            wall: now.wall(),
            error: now.error,
        }
    }

    /// The anchor after this one. The line goes on without a step and bends so that it meets the clock, which runs at
    /// `rate`, within a second, or as soon as a bend of one part in 16 allows; it never falls.
    pub fn next(&self, rate: u64, now: Reading) -> Anchor {
        let monotonic = self.monotonic(now.ticks);
        let behind = i128::from(now.monotonic) - i128::from(monotonic);
        let most = CATCH_UP / MAX_BEND;
        let bent = i128::from(rate) * (CATCH_UP + behind.clamp(-most, most)) / CATCH_UP;
        Anchor {
            ticks: now.ticks,
            monotonic,
            rate: u64::try_from(bent).unwrap_or(rate).max(1),
            wall: self.followed(now.wall()),
            error: now.error,
        }
    }

    /// The anchor after this one where ticks and monotonic clock have parted: the line begins anew at the reading. Unix
    /// time does not fall: if the line was ahead, the offset takes over what it was ahead.
    pub fn after_jump(&self, rate: u64, now: Reading) -> Anchor {
        let monotonic = now.monotonic.max(self.monotonic);
        let given = i128::from(self.monotonic(now.ticks)) + i128::from(self.wall);
        let not_before = (given - i128::from(monotonic)).try_into().unwrap_or(self.wall);
        let wall = self.followed(now.wall()).max(not_before);
        Anchor { ticks: now.ticks, monotonic, rate: rate.max(1), wall, error: now.error }
    }

    /// The anchor after this one where the counter has begun anew, below all ticks of this line.
    pub fn after_reset(&self, rate: u64, now: Reading) -> Anchor {
        let monotonic = now.monotonic.max(self.monotonic);
        let wall = self.followed(now.wall());
        Anchor { ticks: now.ticks, monotonic, rate: rate.max(1), wall, error: now.error }
    }

    /// The offset when the clocks say `wall`: jumps forward are followed, nothing else.
    fn followed(&self, wall: i64) -> i64 {
        if wall.saturating_sub(self.wall) > WALL_JUMP { wall } else { self.wall }
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

    /// Unix nanoseconds at `ticks`, by this anchor's line.
    pub fn unix(&self, ticks: u64) -> u64 {
        self.monotonic(ticks).saturating_add_signed(self.wall)
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
