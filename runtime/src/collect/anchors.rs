//! The log of anchors: reads the clocks now and then and fixes the line from ticks to time.
//!
//! Ordinarily the line is bent a little so that it meets the monotonic clock again. Three things are no drift of an
//! oscillator, and are said aloud: the wall clock was set; ticks and monotonic clock have *parted* (a machine was
//! suspended while its counter ran on, or was moved to another with its clocks); the counter *fell*. Whatever happens, no
//! tick gets another time than it had.

#[cfg(test)]
mod tests;

use crate::chunk::Pool;
use crate::clock::{Clock, Clocks};
use crate::complain;
use crate::stats::ClockStats;
use stagetrace_wire::recording::layout::header;
use stagetrace_wire::recording::time::{Anchor, Reading, Timeline, WALL_JUMP};
use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// An anchor is only added if the line misses the clock by more than this, in nanoseconds, or the last is old.
const TOLERANCE: u64 = 1_000;
/// The tolerance doubles after every so many anchors, so that a recording's ring holds the log of a very long run.
const DOUBLES_AFTER: usize = 128;
/// The oldest that the last anchor may be: this, or that part of the log's age.
const OLD: u64 = 60 * SECOND;
const OLD_OF_AGE: u64 = 64;
/// Ticks and clock have parted if they differ by more than this and one part in a thousand of the time since the last
/// look; the kernel corrects its clock by at most one in two thousand.
const PARTED: u64 = 10 * MS;
const PARTED_OF_TIME: u64 = 1_000;
/// The most seconds that the line takes to meet the clock.
const SLOWEST: u64 = 1_000;

/// Seconds over which the rate is taken.
const RECENT: usize = 32;
/// A reading with a greater error, in nanoseconds, does not go into the rate.
const CLEAR: u64 = 10_000;
/// Anchors that are kept here at most. Only a clock that jumps every second for a day gets there.
const KEPT: usize = 64 * 1024;

/// The log, and when the clocks are read next.
#[derive(Debug)]
pub(crate) struct Anchors<C = Clock> {
    clocks: C,
    pool: &'static Pool,
    timeline: Timeline,
    /// The readings of the last seconds, oldest first: the rate is that since the oldest.
    recent: VecDeque<Reading>,
    rate: u64,
    last: Reading,
    /// How far the line was from the clock at the last reading.
    missed: u64,
    /// The greatest ticks seen since the counter began: they have their time.
    peak: u64,
    /// The counter fell, and shows ticks that have their time already.
    fallen: bool,
    /// Ticks and clock had parted at the last look.
    has_parted: bool,
    /// The wall clock's own offset, as far as it was told of.
    wall: i64,
    /// Monotonic times: of the first anchor, the last one, and when the clocks are read next.
    start: u64,
    added: u64,
    next: u64,
    /// How long after that they are read again.
    pace: u64,
    stats: ClockStats,
    change: Option<Change>,
}

/// What happened to the clocks between two looks; nanoseconds, 0 for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Unix times of the looks.
    pub(crate) between: (u64, u64),
    /// The wall clock's step forward, which is followed, and backward, which is not.
    pub(crate) forward: u64,
    pub(crate) backward: u64,
    /// How far the counter ran ahead of the monotonic clock; negative if it fell behind.
    pub(crate) counter: i64,
}

impl<C: Clocks> Anchors<C> {
    /// A log that begins with the line through two readings at init.
    pub(crate) fn new(clocks: C, pool: &'static Pool, origin: Reading, now: Reading) -> Anchors<C> {
        let first = Anchor::first(origin, now);
        let mut anchors = Anchors {
            clocks,
            pool,
            timeline: Timeline::default(),
            recent: VecDeque::from([origin]),
            rate: first.rate,
            last: now,
            missed: 0,
            peak: now.ticks,
            fallen: false,
            has_parted: false,
            wall: first.wall,
            start: now.monotonic,
            added: now.monotonic,
            next: now.monotonic + MS,
            pace: 10 * MS,
            stats: ClockStats::default(),
            change: None,
        };
        anchors.add(first, MS, now);
        anchors
    }

    /// Reads the clocks if it is time: after 1, 10 and 100 ms, then each second; at once if the counter fell.
    pub(crate) fn refresh(&mut self) {
        let ticks = self.clocks.ticks();
        self.pool.header(header::SEEN).store(ticks, Ordering::Relaxed);
        let fell = ticks < self.peak && !self.fallen;
        if fell || self.clocks.monotonic() >= self.next {
            self.look();
        }
        self.peak = self.peak.max(ticks);
    }

    /// The line.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// What happened to the clocks so far.
    pub(crate) fn stats(&self) -> ClockStats {
        self.stats
    }

    /// What happened to the clocks since the last call.
    pub(crate) fn take_change(&mut self) -> Option<Change> {
        self.change.take()
    }

    fn look(&mut self) {
        let now = self.clocks.read();
        let Some(line) = self.timeline.last().copied() else { return };
        let ahead = i128::from(line.monotonic(now.ticks)) - i128::from(now.monotonic);
        let miss = line.miss(now);
        let silence = now.monotonic.saturating_sub(self.last.monotonic);
        let drift = PARTED + silence / PARTED_OF_TIME + self.missed + now.error;
        let mut change = Change::default();
        let fell = now.ticks < self.peak;
        if fell || self.fallen || miss > drift {
            if !self.fallen {
                let ahead = if fell { i128::from(self.since_last(now)) } else { ahead };
                change.counter = ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            }
            self.part(line, now, fell);
        } else {
            self.go_on(line, now, miss, ahead);
        }
        self.next = now.monotonic + self.pace;
        self.pace = (self.pace * 10).min(SECOND);
        if !self.fallen {
            self.peak = self.peak.max(now.ticks);
        }
        self.note(line, now, change);
        self.last = now;
    }

    /// Nanoseconds that the counter is ahead of where it should be since the last reading.
    fn since_last(&self, now: Reading) -> i64 {
        let ticks = i128::from(now.ticks) - i128::from(self.last.ticks);
        let ns = (ticks * i128::from(self.rate)) >> 32;
        let passed = i128::from(now.monotonic) - i128::from(self.last.monotonic);
        (ns - passed).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Ticks and clock have parted: the line begins anew, where no tick has its time yet.
    fn part(&mut self, line: Anchor, now: Reading, fell: bool) {
        // Twice in a row is no jump: the counter has another frequency.
        let rate = now.rate_since(self.last).filter(|_| self.has_parted && !fell);
        let most = self.rate.saturating_mul(4);
        self.rate = rate.filter(|rate| (self.rate / 4..=most).contains(rate)).unwrap_or(self.rate);
        self.recent.clear();
        self.recent.push_back(now);
        self.missed = 0;
        if !self.fallen {
            self.pace = 10 * MS;
        }
        self.has_parted = true;
        let begins_anew = fell && self.timeline.begins_epoch(now.ticks);
        if fell && !begins_anew {
            self.fallen = true;
            return;
        }
        let anchor = match begins_anew {
            true => line.after_reset(self.rate, now),
            false => line.after_jump(self.rate, now),
        };
        self.fallen = !self.add(anchor, self.pace, now);
        if begins_anew {
            self.peak = now.ticks;
        }
    }

    /// Adds an anchor if the line needs one.
    fn go_on(&mut self, line: Anchor, now: Reading, miss: u64, ahead: i128) {
        if let Some(rate) = self.recent.front().and_then(|origin| now.rate_since(*origin)) {
            self.rate = rate;
        }
        self.has_parted = false;
        let pace = (self.pace * 10).min(SECOND);
        let bend = i128::from(line.rate) - i128::from(self.rate);
        let later = ahead + bend * i128::from(pace) / i128::from(self.rate.max(1));
        let most = tolerance(self.timeline.len()).max(now.error);
        let is_off = miss > most || later.unsigned_abs() > u128::from(most);
        let age = now.monotonic.saturating_sub(self.start);
        let is_old = now.monotonic.saturating_sub(self.added) > OLD.max(age / OLD_OF_AGE);
        let mut anchor = line.next(self.rate, now);
        // To meet the clock within a second would need another anchor a second later, to straighten the line: a small
        // miss is made up for in the time that it took to arise.
        let since = now.monotonic.saturating_sub(self.added) / SECOND;
        let seconds = if miss > 8 * most { 1 } else { since.clamp(1, SLOWEST) };
        let bend = if miss > most { anchor.rate as i64 - self.rate as i64 } else { 0 };
        anchor.rate = self.rate.saturating_add_signed(bend / seconds as i64).max(1);
        // The second anchor says that the line is right, and is added however late: a reader believes no single one.
        let is_new = age < SECOND || self.timeline.len() < 2;
        if is_off || is_old || is_new || anchor.wall != line.wall {
            self.add(anchor, pace, now);
        }
        self.missed = miss;
        if age >= SECOND && now.error <= CLEAR {
            self.recent.push_back(now);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
    }

    /// Adds an anchor that shall hold for so long. `false` if its ticks have their time already.
    fn add(&mut self, mut anchor: Anchor, pace: u64, now: Reading) -> bool {
        let origin = self.recent.front().copied().unwrap_or(now);
        let base = now.monotonic.saturating_sub(origin.monotonic).max(1);
        let wrong_rate = (origin.error + now.error).saturating_mul(pace) / base;
        let tolerance = tolerance(self.timeline.len() + 1);
        anchor.error = now.error + anchor.miss(now) + tolerance + wrong_rate;
        if !self.timeline.push(anchor) {
            return false;
        }
        self.stats.error = anchor.error;
        self.added = now.monotonic;
        if self.timeline.len() > KEPT {
            self.timeline.forget(KEPT / 4);
        }
        let count = self.pool.header(header::ANCHOR_COUNT).load(Ordering::Relaxed);
        // Whoever reads what this overwrites must see the count that says so.
        fence(Ordering::Release);
        let at = header::ANCHOR_RING + (count as usize % header::ANCHORS) * header::ANCHOR;
        for (word, value) in anchor.to_words().into_iter().enumerate() {
            self.pool.header(at / 8 + word).store(value, Ordering::Relaxed);
        }
        self.pool.header(header::ANCHOR_COUNT).store(count + 1, Ordering::Release);
        true
    }

    /// Counts what happened since the look before, and says it.
    fn note(&mut self, line: Anchor, now: Reading, mut change: Change) {
        let wall = now.wall();
        let offset = self.timeline.last().map_or(line.wall, |anchor| anchor.wall);
        if offset != line.wall && wall.saturating_sub(line.wall) > WALL_JUMP {
            change.forward = wall.abs_diff(line.wall);
            self.wall = wall;
        } else if self.wall.saturating_sub(wall) > WALL_JUMP {
            change.backward = wall.abs_diff(self.wall);
            self.wall = wall;
        }
        self.wall = self.wall.max(wall);
        self.stats.ahead = offset.saturating_sub(wall);
        if change == Change::default() {
            return;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        if change.forward > 0 {
            self.stats.wall_forward += 1;
            let by = seconds(change.forward);
            let what = "the wall clock jumped forward; times follow it from here on";
            complain::warn("clock forward", format_args!("{what}: {by:.3} s"));
        }
        if change.backward > 0 {
            self.stats.wall_backward += 1;
            let by = seconds(change.backward);
            let what = "the wall clock was set back; times do not follow it";
            complain::warn("clock backward", format_args!("{what}: {by:.3} s"));
        }
        if change.counter != 0 {
            self.stats.counter_jumps += 1;
            let by = change.counter as f64 / 1e9;
            let what = "the time stamp counter and the monotonic clock have parted";
            let more = if self.fallen { "; times are too early until it catches up" } else { "" };
            complain::warn("clock counter", format_args!("{what}: {by:.3} s{more}"));
        }
        let since = line.unix(self.last.ticks);
        let until = self.timeline.unix(now.ticks).max(since);
        change.between = (since, until);
        self.change = Some(change);
    }
}

/// How far the line may be from the clock before it is bent, once there are so many anchors.
fn tolerance(anchors: usize) -> u64 {
    TOLERANCE << (anchors / DOUBLES_AFTER).min(20)
}
