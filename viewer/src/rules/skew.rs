//! Clocks that do not agree.

/// How far a span lies outside its parent though it cannot: their clocks differ by at least that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skew {
    /// Nanoseconds by which it began before its parent.
    pub(crate) early_ns: u64,
    /// Nanoseconds by which it ended after its parent.
    pub(crate) late_ns: u64,
}

/// Nanoseconds below which clocks of different hosts agree well enough.
const AGREED: u64 = 1_000_000;

/// The skew between two processes, given begin and end of a span and its parent. The end of a span that is
/// `detached`, as a message is from its sender, or open says nothing.
pub(crate) fn skew(parent: (u64, u64), child: (u64, u64), is_detached: bool) -> Option<Skew> {
    let early_ns = parent.0.saturating_sub(child.0);
    let late_ns = if is_detached { 0 } else { child.1.saturating_sub(parent.1) };
    let beyond = |ns: u64| if ns > AGREED { ns } else { 0 };
    let skew = Skew { early_ns: beyond(early_ns), late_ns: beyond(late_ns) };
    (skew.early_ns > 0 || skew.late_ns > 0).then_some(skew)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_outside_its_parent_by_more_than_a_millisecond_has_another_clock() {
        const MS: u64 = 1_000_000;
        let parent = (100 * MS, 200 * MS);
        assert_eq!(skew(parent, (110 * MS, 190 * MS), false), None);
        assert_eq!(skew(parent, (99 * MS, 201 * MS), false), None);
        let early = Skew { early_ns: 5 * MS, late_ns: 0 };
        assert_eq!(skew(parent, (95 * MS, 190 * MS), false), Some(early));
        let late = Skew { early_ns: 0, late_ns: 7 * MS };
        assert_eq!(skew(parent, (110 * MS, 207 * MS), false), Some(late));
        assert_eq!(skew(parent, (110 * MS, 207 * MS), true), None);
        assert_eq!(skew((0, 0), (0, u64::MAX), false).map(|skew| skew.late_ns), Some(u64::MAX));
    }
}
