//! The log of anchors: reads the clocks now and then and fixes the line from ticks to time.

use crate::chunk::Pool;
use stagetrace_wire::recording::layout::header;
use stagetrace_wire::recording::time::{Anchor, Reading, Timeline};
use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// An anchor is only added if the line misses the clock by more than this, in nanoseconds, or the last is old.
const TOLERANCE: u64 = 1_000;
/// The oldest that the last anchor may be, so that suspends and steps of the wall clock are seen.
const OLD: Duration = Duration::from_secs(60);

/// Seconds over which the rate is taken.
const RECENT: usize = 32;
/// Anchors that are kept here; beyond that old ones are thinned out.
const KEPT: usize = 8 * 1024;

/// The log, and when the clocks are read next.
#[derive(Debug)]
pub(crate) struct Anchors {
    pool: &'static Pool,
    /// The readings of the last seconds, oldest first: the rate is that since the oldest.
    recent: VecDeque<Reading>,
    timeline: Timeline,
    start: Instant,
    next: Duration,
    added: Instant,
}

impl Anchors {
    /// A log that begins with the line through two readings at init.
    pub(crate) fn new(pool: &'static Pool, origin: Reading, now: Reading) -> Anchors {
        let start = Instant::now();
        let mut anchors = Anchors {
            pool,
            recent: VecDeque::from([origin]),
            timeline: Timeline::default(),
            start,
            next: Duration::from_millis(1),
            added: start,
        };
        anchors.add(Anchor::first(origin, now));
        anchors
    }

    /// Reads the clocks if it is time: after 1, 10 and 100 ms, then each second.
    pub(crate) fn refresh(&mut self) {
        let age = self.start.elapsed();
        self.pool.header(header::SEEN).store(self.pool.clock().ticks(), Ordering::Relaxed);
        if age < self.next {
            return;
        }
        let second = Duration::from_secs(1);
        self.next = if self.next < second { self.next * 10 } else { age + second };
        let now = self.pool.clock().read();
        let (Some(last), Some(origin)) = (self.timeline.last(), self.recent.front()) else {
            return;
        };
        let next = last.next(*origin, now);
        let stepped = next.wall != last.wall;
        if age < second || stepped || last.miss(now) > TOLERANCE || self.added.elapsed() > OLD {
            self.add(next);
            self.added = Instant::now();
        }
        if age >= second {
            self.recent.push_back(now);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
    }

    /// The line.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn add(&mut self, anchor: Anchor) {
        let count = self.pool.header(header::ANCHOR_COUNT).load(Ordering::Relaxed);
        // Whoever reads what this overwrites must see the count that says so.
        fence(Ordering::Release);
        let at = header::ANCHOR_RING + (count as usize % header::ANCHORS) * header::ANCHOR;
        for (word, value) in anchor.to_words().into_iter().enumerate() {
            self.pool.header(at / 8 + word).store(value, Ordering::Relaxed);
        }
        self.pool.header(header::ANCHOR_COUNT).store(count + 1, Ordering::Release);
        self.timeline.push(anchor);
        if self.timeline.len() > KEPT {
            self.timeline.thin_out();
        }
    }
}
