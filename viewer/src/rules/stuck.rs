//! When a span is stuck.

/// When a span counts as stuck: if it has been open longer than a multiple of what its stage mostly
/// takes, and than a floor. Judged only where enough spans of the stage have ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StuckRule {
    /// How many times the median of the stage's ended spans.
    pub factor: f64,
    /// Nanoseconds below which nothing is stuck.
    pub floor_ns: u64,
    /// Spans of the stage that must have ended.
    pub least_closed: usize,
}

impl Default for StuckRule {
    /// Six times the median, a minute, three spans.
    fn default() -> Self {
        Self { factor: 6.0, floor_ns: 60_000_000_000, least_closed: 3 }
    }
}

impl StuckRule {
    /// Nanoseconds beyond which a span of a stage is stuck; `None` if too few have ended to say.
    pub fn threshold(&self, closed: usize, median_ns: u64) -> Option<u64> {
        let multiple = (median_ns as f64 * self.factor) as u64;
        (closed >= self.least_closed).then_some(multiple.max(self.floor_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_stuck_where_too_few_have_ended_to_know() {
        let rule = StuckRule::default();
        assert_eq!(rule.threshold(2, 1), None);
        assert_eq!(rule.threshold(3, 1), Some(60_000_000_000));
        assert_eq!(rule.threshold(3, 20_000_000_000), Some(120_000_000_000));
    }
}
