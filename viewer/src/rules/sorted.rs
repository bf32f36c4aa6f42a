//! Numbers of which any rank can be asked, cheap to add to.

/// A sorted multiset: a large part that is seldom touched, and what was added and removed since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    base: Vec<u64>,
    added: Vec<u64>,
    removed: Vec<u64>,
    is_unsettled: bool,
}

impl Sorted {
    pub(super) fn insert(&mut self, value: u64) {
        self.added.push(value);
        self.is_unsettled = true;
    }

    /// Takes a number away that is there.
    pub(super) fn remove(&mut self, value: u64) {
        self.removed.push(value);
        self.is_unsettled = true;
    }

    /// Makes ranks right after changes. Takes time in proportion to what has changed, amortized.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.is_unsettled) {
            return;
        }
        // They are sorted but for what came last, which this sort makes use of.
        self.added.sort();
        self.removed.sort();
        if self.added.len() + self.removed.len() > 1024 + self.base.len() / 8 {
            self.merge();
        }
    }

    fn merge(&mut self) {
        let (mut base, mut added) = (&self.base[..], &self.added[..]);
        let mut removed = &self.removed[..];
        let mut merged =
            Vec::with_capacity((base.len() + added.len()).saturating_sub(removed.len()));
        loop {
            let from = match (base.first(), added.first()) {
                (Some(one), Some(other)) if one <= other => &mut base,
                (Some(_), None) => &mut base,
                (_, Some(_)) => &mut added,
                (None, None) => break,
            };
            let value = from[0];
            *from = &from[1..];
            match removed.first() == Some(&value) {
                true => removed = &removed[1..],
                false => merged.push(value),
            }
        }
        (self.base, self.added, self.removed) = (merged, Vec::new(), Vec::new());
    }

    pub(crate) fn len(&self) -> usize {
        (self.base.len() + self.added.len()).saturating_sub(self.removed.len())
    }

    /// The least number that this part of all does not exceed; 0 if there are none.
    pub(crate) fn percentile(&self, hundredths: usize) -> u64 {
        debug_assert!(!self.is_unsettled, "ranks are right once it is settled");
        let rank = (self.len() * hundredths).div_ceil(100).max(1);
        if self.len() == 0 {
            return 0;
        }
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.up_to(middle) >= rank {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// How many do not exceed a number.
    pub(crate) fn up_to(&self, value: u64) -> usize {
        let until = |numbers: &[u64]| numbers.partition_point(|number| *number <= value);
        (until(&self.base) + until(&self.added)).saturating_sub(until(&self.removed))
    }

    /// All of them in order.
    pub(crate) fn to_vec(&self) -> Vec<u64> {
        let mut all = self.clone();
        all.settle();
        all.merge();
        all.base
    }

    pub(super) fn bytes(&self) -> usize {
        8 * (self.base.capacity() + self.added.capacity() + self.removed.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_a_sorted_list_whatever_was_added_and_removed() {
        let mut sorted = Sorted::default();
        let mut list: Vec<u64> = Vec::new();
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random >> 33
        };
        assert_eq!(sorted.percentile(50), 0);
        for round in 0..60 {
            for _ in 0..next() % 300 {
                let value = if next() % 9 == 0 { u64::MAX - next() % 3 } else { next() % 500 };
                sorted.insert(value);
                list.push(value);
            }
            for _ in 0..(next() % 150).min(list.len() as u64) {
                let at = next() as usize % list.len();
                sorted.remove(list.swap_remove(at));
            }
            sorted.settle();
            list.sort_unstable();
            assert_eq!(sorted.len(), list.len());
            for hundredths in [0, 1, 50, 90, 95, 99, 100] {
                let rank = (list.len() * hundredths).div_ceil(100).max(1) - 1;
                let expected = list.get(rank).copied().unwrap_or(0);
                assert_eq!(sorted.percentile(hundredths), expected, "{hundredths} in {round}");
            }
        }
        assert!(sorted.base.len() > 1024, "it was merged");
    }
}
