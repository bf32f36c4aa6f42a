//! Rows of a lane: spans that run at the same time stand below each other.

/// Places spans in rows: each in the first row below its parent in which nothing runs meanwhile.
///
/// Spans are given in order of their begin, as begin, end, and the row of the parent if that is in the
/// same lane. Takes time in proportion to the spans and the logarithm of the rows.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// A heap-like tree over the rows: the earliest time from which one below is free. Leaves are the last
    /// half.
    free_from: Vec<u64>,
    used: usize,
}

impl Rows {
    /// The row of the next span.
    pub(crate) fn place(&mut self, begin: u64, end: u64, parent: Option<u32>) -> u32 {
        let first = parent.map_or(0, |parent| parent as usize + 1);
        let row = self.find(begin, first).unwrap_or_else(|| self.used.max(first));
        while row >= self.leaves() {
            self.grow();
        }
        self.set(row, end.max(begin));
        self.used = self.used.max(row + 1);
        row as u32
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> usize {
        self.used
    }

    fn leaves(&self) -> usize {
        self.free_from.len() / 2
    }

    fn grow(&mut self) {
        let leaves = self.leaves();
        let old: Vec<u64> = self.free_from.get(leaves..).map(<[u64]>::to_vec).unwrap_or_default();
        let wider = (2 * leaves).max(4);
        self.free_from = vec![0; 2 * wider];
        self.free_from[wider..wider + old.len()].copy_from_slice(&old);
        for at in (1..wider).rev() {
            self.free_from[at] = self.free_from[2 * at].min(self.free_from[2 * at + 1]);
        }
    }

    fn set(&mut self, row: usize, until: u64) {
        let mut at = self.leaves() + row;
        self.free_from[at] = until;
        while at > 1 {
            at /= 2;
            self.free_from[at] = self.free_from[2 * at].min(self.free_from[2 * at + 1]);
        }
    }

    /// The first row from `first` on that is free at a time.
    fn find(&self, begin: u64, first: usize) -> Option<usize> {
        let leaves = self.leaves();
        if first >= leaves {
            return None;
        }
        let mut at = leaves + first;
        // Up to the first subtree to the right that has a free row, and down in it.
        while self.free_from[at] > begin {
            while at % 2 == 1 {
                at /= 2;
            }
            if at == 0 {
                return None;
            }
            at += 1;
        }
        while at < leaves {
            at *= 2;
            if self.free_from[at] > begin {
                at += 1;
            }
        }
        Some(at - leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;

    #[test]
    fn what_runs_at_the_same_time_stands_below_each_other() {
        let mut rows = Rows::default();
        let spans = [(0, 10), (2, 5), (3, 9), (5, 8), (10, 12), (10, 11), (10, 10)];
        let placed: Vec<u32> =
            spans.iter().map(|(begin, end)| rows.place(*begin, *end, None)).collect();
        assert_eq!(placed, [0, 1, 2, 1, 0, 1, 2]);
        assert_eq!(rows.count(), 3);
    }

    #[test]
    fn a_child_stands_below_its_parent() {
        let mut rows = Rows::default();
        assert_eq!(rows.place(0, 100, None), 0);
        assert_eq!(rows.place(0, 50, Some(0)), 1);
        assert_eq!(rows.place(10, 20, Some(1)), 2);
        assert_eq!(rows.place(60, 70, Some(0)), 1);
        assert_eq!(rows.place(60, 70, Some(6)), 7);
        assert_eq!(rows.count(), 8);
    }

    #[test]
    fn rows_are_those_that_a_plain_search_finds() {
        let mut rows = Rows::default();
        let mut plain: Vec<u64> = Vec::new();
        let mut random = 7_u64;
        for at in 0..3_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (begin, first) = (at, (random >> 40) as usize % 5);
            let end = begin + (random >> 33) % 200;
            let parent = first.checked_sub(1).map(|parent| parent as u32);
            let free = (first..plain.len()).find(|&row| plain[row] <= begin);
            let row = free.unwrap_or_else(|| plain.len().max(first));
            plain.resize(plain.len().max(row + 1), 0);
            plain[row] = end;
            assert_eq!(rows.place(begin, end, parent) as usize, row, "span {at}");
        }
    }
}
