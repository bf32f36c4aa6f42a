//! How durations spread, as a few bars.

use serde::Serialize;

/// How durations spread: a bar for each half of a power of two.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    /// Nanoseconds at which the first bar begins; each next one begins √2 times later.
    from_ns: f64,
    bars: Vec<u32>,
}

impl Spread {
    /// `None` if there are none.
    pub(super) fn of(durations: &[u64]) -> Option<Self> {
        let mut bars = [0_u32; 128];
        durations.iter().for_each(|duration| bars[half_power(*duration)] += 1);
        let first = bars.iter().position(|count| *count > 0)?;
        let last = bars.iter().rposition(|count| *count > 0)?;
        Some(Self { from_ns: (first as f64 / 2.0).exp2(), bars: bars[first..=last].to_vec() })
    }
}

/// The greatest k for which √2 to the power of k does not exceed a number; 0 for 0.
fn half_power(value: u64) -> usize {
    match value.checked_ilog2() {
        None => 0,
        // The square of what is above the whole power is compared, so that nothing is rounded.
        Some(whole) => {
            let square = u128::from(value) * u128::from(value);
            2 * whole as usize + usize::from(square >= 1 << (2 * whole + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_half_a_power_of_two_wide() {
        let cases =
            [(0, 0), (1, 0), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5), (8, 6), (11, 6), (12, 7)];
        for (value, expected) in cases {
            assert_eq!(half_power(value), expected, "{value}");
        }
        assert_eq!(half_power(u64::MAX), 127);
        let spread = Spread::of(&[2, 3, 3, 8]).expect("there are some");
        assert_eq!((spread.from_ns, spread.bars), (2.0, vec![1, 2, 0, 0, 1]));
    }
}
