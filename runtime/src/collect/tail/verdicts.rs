//! What was decided, for what ends later.
//!
//! Two generations: the older one is forgotten as a whole when the younger one is full or old. So what was decided is
//! known for a while, in bounded memory.

use super::super::hash::IdMap;
use std::time::{Duration, Instant};

/// In place of a root: any. No root's number has all bits.
const ANY: u64 = u64::MAX;
/// Decisions in a generation.
const MOST: usize = 32 * 1024;

/// Which traces are exported, and of which requests nothing is.
#[derive(Debug)]
pub(super) struct Verdicts {
    young: Generation,
    old: Generation,
    since: Instant,
    /// How long a generation is young.
    span: Duration,
}

#[derive(Debug, Default)]
struct Generation {
    kept: IdMap<[u64; 2], ()>,
    dropped: IdMap<Part, ()>,
}

/// A request's part of its trace: root, or 0 for what belongs to none, and trace.
pub(super) type Part = (u64, [u64; 2]);

impl Verdicts {
    /// Nothing decided. What is decided is known for at least `span`, if it is not too much.
    pub(super) fn new(span: Duration, now: Instant) -> Verdicts {
        let (young, old) = Default::default();
        Verdicts { young, old, since: now, span }
    }

    /// All of the trace is exported, whatever was decided of parts of it.
    pub(super) fn keep(&mut self, trace: [u64; 2], now: Instant) {
        self.turn(now);
        self.young.kept.insert(trace, ());
    }

    /// Nothing of the part is.
    pub(super) fn drop(&mut self, part: Part, now: Instant) {
        self.turn(now);
        self.young.dropped.insert(part, ());
        self.young.dropped.insert((ANY, part.1), ());
    }

    /// Whether all of the trace is exported.
    pub(super) fn keeps(&self, trace: &[u64; 2]) -> bool {
        self.young.kept.contains_key(trace) || self.old.kept.contains_key(trace)
    }

    /// Whether nothing of the part is.
    pub(super) fn drops(&self, part: &Part) -> bool {
        self.young.dropped.contains_key(part) || self.old.dropped.contains_key(part)
    }

    /// Whether nothing is of some part of the trace.
    pub(super) fn drops_part_of(&self, trace: &[u64; 2]) -> bool {
        self.drops(&(ANY, *trace))
    }

    fn turn(&mut self, now: Instant) {
        let is_full = self.young.kept.len() + self.young.dropped.len() >= MOST;
        if is_full || now.saturating_duration_since(self.since) >= self.span {
            self.old = std::mem::take(&mut self.young);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_decided_is_known_for_a_while() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut verdicts = Verdicts::new(second, begin);
        verdicts.keep([1, 1], begin);
        verdicts.drop((7, [2, 2]), begin);
        let knows = |verdicts: &Verdicts| (verdicts.keeps(&[1, 1]), verdicts.drops(&(7, [2, 2])));
        assert_eq!(knows(&verdicts), (true, true));
        assert!(!verdicts.drops(&(8, [2, 2])) && !verdicts.keeps(&[2, 2]));
        verdicts.keep([3, 3], begin + second);
        assert_eq!(knows(&verdicts), (true, true));
        verdicts.keep([4, 4], begin + 2 * second);
        assert_eq!(knows(&verdicts), (false, false));
    }

    #[test]
    fn decisions_take_bounded_memory() {
        let now = Instant::now();
        let mut verdicts = Verdicts::new(Duration::from_secs(3600), now);
        for n in 0..4 * MOST as u64 {
            verdicts.drop((n, [n, n]), now);
        }
        assert!(verdicts.young.dropped.len() + verdicts.old.dropped.len() <= 2 * MOST);
        assert!(verdicts.drops(&(4 * MOST as u64 - 1, [4 * MOST as u64 - 1; 2])));
    }
}
