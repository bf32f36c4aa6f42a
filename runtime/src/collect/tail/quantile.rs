//! The time that one in a hundred exceeds, as of late, in two kilobytes.
//!
//! Times fall into classes that grow with them, eight to each power of two: a class is at most an eighth wide. Of the
//! class in which the limit lies, so many are taken that it makes one in a hundred with those above. From time to time
//! all counts are halved, so that the past fades.

/// Classes: eight for each power of two of nanoseconds.
const CLASSES: usize = 64 * 8;
/// Times below this many tell nothing of the slowest hundredth.
const FEW: u32 = 100;
/// At so many all counts are halved.
const MANY: u32 = 8192;
/// The limit is worked out anew after so many.
const AGAIN: u32 = 64;

/// How long things took.
#[derive(Debug)]
pub(super) struct Quantile {
    counts: Box<[u32; CLASSES]>,
    total: u32,
    /// The class above which less than one in a hundred lies, which part of it is to be taken, and what of that is due.
    limit: usize,
    share: f32,
    due: f32,
    since: u32,
}

impl Default for Quantile {
    fn default() -> Quantile {
        let counts = Box::new([0; CLASSES]);
        Quantile { counts, total: 0, limit: CLASSES, share: 0.0, due: 0.0, since: 0 }
    }
}

impl Quantile {
    /// Adds a time. Whether it is among the slowest hundredth of those before.
    pub(super) fn add(&mut self, ns: u64) -> bool {
        let class = class_of(ns);
        let mut is_slow = class > self.limit;
        if class == self.limit {
            self.due += self.share;
            is_slow = self.due >= 1.0;
            self.due -= f32::from(u8::from(is_slow));
        }
        self.counts[class] += 1;
        self.total += 1;
        self.since += 1;
        if self.total >= FEW && (self.since >= AGAIN || self.limit == CLASSES) {
            self.look_again();
        }
        is_slow
    }

    fn look_again(&mut self) {
        self.since = 0;
        if self.total >= MANY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
        let most = self.total as f32 / 100.0;
        let mut above = 0.0;
        for (class, count) in self.counts.iter().enumerate().rev() {
            let count = *count as f32;
            if above + count > most {
                (self.limit, self.share) = (class, (most - above) / count);
                return;
            }
            above += count;
        }
    }
}

fn class_of(ns: u64) -> usize {
    let ns = ns.max(8);
    let power = ns.ilog2();
    let eighth = ns >> (power - 3) & 7;
    power as usize * 8 + eighth as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_an_eighth_wide_at_most() {
        let times = (3..63).flat_map(|power| (0..8).map(move |n| (8 + n) << (power - 3)));
        let classes: Vec<usize> = times.map(class_of).collect();
        assert!(classes.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{classes:?}");
        assert_eq!(class_of(0), class_of(8));
        assert!(class_of(u64::MAX) < CLASSES);
    }

    /// How many of so many times are slow.
    fn slow(times: &mut Quantile, count: u64, ns: impl Fn(u64) -> u64) -> usize {
        (0..count).filter(|n| times.add(ns(*n))).count()
    }

    #[test]
    fn one_in_a_hundred_is_slow_and_the_slowest_are_first() {
        let mut times = Quantile::default();
        // Between 1000 and 1999, evenly.
        let evenly = |n: u64| 1000 + n * 617 % 1000;
        let found = slow(&mut times, 10_000, evenly);
        assert!((80..=130).contains(&found), "{found} of 10000");
        assert!((0..9).all(|_| times.add(2_100)) && (0..9).all(|_| !times.add(1_500)));
        let found = slow(&mut Quantile::default(), 10_000, |_| 1_000);
        assert!((80..=110).contains(&found), "{found} of 10000 that are alike");
    }

    #[test]
    fn nothing_is_slow_while_little_is_known_and_the_past_fades() {
        let mut times = Quantile::default();
        assert_eq!(slow(&mut times, u64::from(FEW), |n| n * 1_000), 0);
        let mut times = Quantile::default();
        slow(&mut times, 20_000, |_| 1_000);
        // Now all take longer: slow at first, then usual.
        let at_first = slow(&mut times, 20_000, |_| 3_000);
        assert!((100..2_000).contains(&at_first), "{at_first}");
        let then = slow(&mut times, 20_000, |_| 3_000);
        assert!((100..=220).contains(&then), "{then}");
    }
}
