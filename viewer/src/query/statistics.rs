//! Whether two sets of durations differ, and by how much. Without assumptions on how they are
//! distributed, but that those of one set do not depend on each other.

/// The value of this rank, from nearest rank, of values in order: the least that so many hundredths of
/// all do not exceed.
pub(super) fn percentile(sorted: &[u64], hundredths: usize) -> u64 {
    let rank = (sorted.len() * hundredths).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or(0)
}

/// What a rank test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RankTest {
    /// How probable it is that a value of the second set exceeds one of the first, ties counting half.
    pub(super) superiority: f64,
    /// How probable ranks as uneven as these are if both sets come from the same distribution.
    pub(super) p_value: f64,
}

/// The test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947) of two sets in order, by
/// the normal approximation with corrections for ties and for continuity: Hollander and Wolfe,
/// Nonparametric Statistical Methods, section 4.1.
///
/// Takes linear time. Both sets must have members.
pub(super) fn rank_test(one: &[u64], other: &[u64]) -> RankTest {
    let (n, m) = (one.len() as f64, other.len() as f64);
    let (mut at, mut rest) = (0, 0);
    let (mut rank_sum, mut ties) = (0.0, 0.0);
    while at < one.len() || rest < other.len() {
        let value = match (one.get(at), other.get(rest)) {
            (Some(a), Some(b)) => *a.min(b),
            (Some(a), None) => *a,
            (None, b) => b.copied().unwrap_or(0),
        };
        let before = at + rest;
        at += one[at..].iter().take_while(|&&other| other == value).count();
        let equal = other[rest..].iter().take_while(|&&other| other == value).count();
        rest += equal;
        let tied = (at + rest - before) as f64;
        let rank = before as f64 + (tied + 1.0) / 2.0;
        rank_sum += rank * equal as f64;
        ties += tied * (tied * tied - 1.0);
    }
    let wins = rank_sum - m * (m + 1.0) / 2.0;
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let distance = ((wins - n * m / 2.0).abs() - 0.5).max(0.0);
    let p_value = if variance > 0.0 { two_sided(distance / variance.sqrt()) } else { 1.0 };
    RankTest { superiority: wins / (n * m), p_value }
}

/// The confidence interval, at 95 %, of the median of the second set less that of the first, both in
/// order: Price and Bonett, Distribution-Free Confidence Intervals for Difference and Ratio of Medians
/// (Journal of Statistical Computation and Simulation 72, 2002).
pub(super) fn median_interval(one: &[u64], other: &[u64]) -> [f64; 2] {
    const Z: f64 = 1.959_963_984_540_054;
    let difference = percentile(other, 50) as f64 - percentile(one, 50) as f64;
    let error = (median_variance(one) + median_variance(other)).sqrt();
    [difference - Z * error, difference + Z * error]
}

/// The variance of a median, from how far those values lie apart between which it lies with a known
/// probability.
fn median_variance(sorted: &[u64]) -> f64 {
    let n = sorted.len();
    let below = ((n as f64 + 1.0) / 2.0 - (n as f64).sqrt()).round().max(1.0) as usize;
    let (Some(low), Some(high)) = (sorted.get(below - 1), sorted.get(n.wrapping_sub(below))) else {
        return 0.0;
    };
    let width = *high as f64 - *low as f64;
    (width / (2.0 * quantile(coin_tail(n, below)))).powi(2)
}

/// How probable fewer than so many heads in n throws of a coin are.
fn coin_tail(n: usize, below: usize) -> f64 {
    // From here on the terms could be too small for a double, and the normal approximation is good.
    const MANY: usize = 1000;
    if n > MANY {
        let z = (n as f64 / 2.0 - below as f64 + 0.5) / (n as f64 / 4.0).sqrt();
        return two_sided(z) / 2.0;
    }
    let mut term = 0.5_f64.powi(n as i32);
    let mut sum = 0.0;
    for heads in 0..below {
        sum += term;
        term *= (n - heads) as f64 / (heads + 1) as f64;
    }
    sum
}

/// How probable it is that something normal lies further than so many deviations from its mean.
fn two_sided(deviations: f64) -> f64 {
    libm::erfc(deviations / std::f64::consts::SQRT_2)
}

/// The deviations above which something normal lies with this probability, below one half.
fn quantile(upper: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if two_sided(middle) / 2.0 > upper {
            low = middle;
        } else {
            high = middle;
        }
    }
    // Of a few values so little is known that the probability is one half.
    f64::max(low, 0.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64, tolerance: f64) {
        assert!((one - other).abs() <= tolerance, "{one} is not {other}");
    }

    const ONE: [u64; 10] = [3, 5, 5, 8, 9, 12, 12, 12, 15, 20];
    const OTHER: [u64; 9] = [5, 9, 12, 14, 15, 21, 22, 22, 30];

    fn many() -> (Vec<u64>, Vec<u64>) {
        let mut other: Vec<u64> = (0..1500).map(|at| at * 7919 % 2003 + 60).collect();
        other.sort();
        ((0..2000).collect(), other)
    }

    #[test]
    fn the_rank_test_says_what_scipy_says() {
        // scipy.stats.mannwhitneyu(other, one, method="asymptotic")
        let test = rank_test(&ONE, &OTHER);
        near(test.superiority, 0.7722222222222223, 1e-15);
        near(test.p_value, 0.048339884876591764, 1e-12);
        let (one, other) = many();
        let test = rank_test(&one, &other);
        near(test.superiority, 0.5316208333333333, 1e-15);
        near(test.p_value, 0.0013437748705736343, 1e-12);
        let swapped = rank_test(&other, &one);
        near(swapped.superiority, 1.0 - test.superiority, 1e-15);
        near(swapped.p_value, test.p_value, 1e-15);
    }

    #[test]
    fn equal_sets_do_not_differ() {
        for set in [&[7][..], &[7; 20], &ONE] {
            let test = rank_test(set, set);
            assert_eq!((test.superiority, test.p_value), (0.5, 1.0));
        }
    }

    #[test]
    fn the_interval_of_medians_is_that_of_its_formula() {
        // By hand, with scipy.stats.binom.cdf and norm.isf.
        let [low, high] = median_interval(&ONE, &OTHER);
        near(low, -1.5019973846263914, 1e-9);
        near(high, 13.501997384626392, 1e-9);
        let (one, other) = many();
        let [low, high] = median_interval(&one, &other);
        near(low, -0.687681074148216, 0.1);
        near(high, 132.6876810741482, 0.1);
        near(coin_tail(10, 4), 0.171875, 1e-15);
        near(coin_tail(2000, 942), 0.00443743051195261, 1e-4);
        near(quantile(0.0228), 1.99907721497177, 1e-12);
    }

    #[test]
    fn the_interval_holds_the_true_difference_about_as_often_as_it_says() {
        // Exponential durations by a fixed generator, whose medians differ by 0.5 ln 2.
        let mut state = 1_u64;
        let mut draw = |mean: f64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let uniform = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            (-uniform.ln() * mean * 1e9) as u64
        };
        let truth = 0.5 * std::f64::consts::LN_2 * 1e9;
        let held = (0..2000).filter(|_| {
            let mut one: Vec<u64> = (0..40).map(|_| draw(1.0)).collect();
            let mut other: Vec<u64> = (0..60).map(|_| draw(1.5)).collect();
            one.sort();
            other.sort();
            let [low, high] = median_interval(&one, &other);
            (low..=high).contains(&truth)
        });
        let held = held.count();
        assert!((1860..=1960).contains(&held), "{held} of 2000");
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        assert_eq!([0, 50, 90, 100].map(|at| percentile(&ONE, at)), [3, 9, 15, 20]);
        assert_eq!(percentile(&[], 50), 0);
    }
}
