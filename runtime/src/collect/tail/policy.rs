//! Whether a trace is wanted, now that it is known how it went.

use super::quantile::Quantile;
use crate::config::{TailSampling, within};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How a trace went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) trace_id: u128,
    /// Number of the site where it began; `None` if it has not ended.
    pub(super) site: Option<u32>,
    pub(super) took: Duration,
    /// Whether anything in it failed.
    pub(super) failed: bool,
}

/// The rules, and what they remember.
#[derive(Debug)]
pub(super) struct Policy {
    rules: TailSampling,
    /// How long traces took of late, by the site where they began.
    times: HashMap<u32, Quantile>,
    /// Traces that may still be taken this second, and when that was counted.
    tokens: f64,
    counted: Instant,
}

impl Policy {
    pub(super) fn new(rules: TailSampling, now: Instant) -> Policy {
        Policy { rules, times: HashMap::new(), tokens: rules.per_second.max(1.0), counted: now }
    }

    /// Whether the trace is wanted.
    pub(super) fn wants(&mut self, course: &Course, now: Instant) -> bool {
        let TailSampling { errors, slower_than, slowest, fraction, .. } = self.rules;
        // Each trace counts, whichever rule takes it.
        let is_slowest = slowest && self.is_among_slowest(course);
        errors && course.failed
            || slower_than.is_some_and(|limit| course.took >= limit)
            || is_slowest
            || within(course.trace_id, fraction)
            || self.has_token(now)
    }

    fn is_among_slowest(&mut self, course: &Course) -> bool {
        let Some(site) = course.site else { return false };
        let ns = u64::try_from(course.took.as_nanos()).unwrap_or(u64::MAX);
        self.times.entry(site).or_default().add(ns)
    }

    fn has_token(&mut self, now: Instant) -> bool {
        let rate = self.rules.per_second;
        if rate == 0.0 {
            return false;
        }
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.counted = now;
        self.tokens = (self.tokens + passed * rate).min(rate.max(1.0));
        let has_one = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(has_one));
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(took: Duration, failed: bool) -> Course {
        Course { trace_id: 7, site: Some(1), took, failed }
    }

    /// Rules that want nothing, changed.
    fn rules(change: impl FnOnce(&mut TailSampling)) -> TailSampling {
        let mut rules = TailSampling {
            errors: false,
            slowest: false,
            per_second: 0.0,
            ..TailSampling::default()
        };
        change(&mut rules);
        rules
    }

    #[test]
    fn each_rule_wants_its_traces_and_no_others() {
        let now = Instant::now();
        let wants = |change: fn(&mut TailSampling), course: Course| {
            Policy::new(rules(change), now).wants(&course, now)
        };
        let (short, long) = (Duration::from_millis(1), Duration::from_secs(2));
        assert!(!wants(|_| (), course(long, true)));
        assert!(wants(|rules| rules.errors = true, course(short, true)));
        assert!(!wants(|rules| rules.errors = true, course(long, false)));
        let slow = |rules: &mut TailSampling| rules.slower_than = Some(Duration::from_secs(2));
        assert!(wants(slow, course(long, false)));
        assert!(!wants(slow, course(short, true)));
        assert!(wants(|rules| rules.fraction = 1.0, course(short, false)));
        assert!(wants(|rules| rules.per_second = 0.1, course(short, false)), "the first");
    }

    #[test]
    fn so_many_in_a_second_are_wanted_whatever_they_are() {
        let begin = Instant::now();
        let mut policy = Policy::new(rules(|rules| rules.per_second = 3.0), begin);
        let mut in_second = |second: u64| {
            let at = |tenth: u64| begin + Duration::from_millis(1000 * second + 100 * tenth);
            (0..10).filter(|tenth| policy.wants(&course(Duration::ZERO, false), at(*tenth))).count()
        };
        // What was not used is not saved beyond a second's worth.
        assert_eq!(in_second(0), 5);
        assert_eq!((1..10).map(&mut in_second).sum::<usize>(), 27);
        assert_eq!(in_second(100), 5);
    }

    #[test]
    fn the_slowest_of_each_kind_are_wanted() {
        let now = Instant::now();
        let mut policy = Policy::new(rules(|rules| rules.slowest = true), now);
        let mut wanted = |site: u32, ms: u64| {
            let course = Course { site: Some(site), ..course(Duration::from_millis(ms), false) };
            policy.wants(&course, now)
        };
        // Between 100 and 199 ms; nothing is known of the first ones.
        let times = |n: u64| 100 + n * 37 % 100;
        let most = (0..5000).filter(|n| wanted(1, times(*n))).count();
        assert!((35..=65).contains(&most), "{most} of 5000");
        assert!(wanted(1, 500) && !wanted(1, 120));
        assert!((0..99).all(|_| !wanted(2, 500)), "another kind is not judged by the first");
    }
}
