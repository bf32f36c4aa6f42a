//! Percentiles by nearest rank.

/// The least value that so many of a hundred do not exceed; `None` if there are none. Takes time in
/// proportion to their number, and leaves them in another order.
pub(super) fn percentile(values: &mut [u64], hundredths: usize) -> Option<u64> {
    let rank = (values.len() * hundredths).div_ceil(100).max(1) - 1;
    (rank < values.len()).then(|| *values.select_nth_unstable(rank).1)
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_a_value_that_is_there() {
        let mut values = [30, 10, 40, 20];
        for (hundredths, expected) in [(0, 10), (25, 10), (26, 20), (50, 20), (99, 40), (100, 40)] {
            assert_eq!(percentile(&mut values, hundredths), Some(expected), "{hundredths}");
        }
        assert_eq!(percentile(&mut [], 50), None);
    }
}
