//! Which traces are sampled: decided once, where a trace begins.

use super::choice::Choice;

/// Decides whether a trace that begins here is sampled: recorded and exported. One that is not costs next to nothing,
/// unless there are metrics: these count all requests, so that it is recorded, but not exported.
///
/// The decision travels with the trace, so that each process keeps or leaves the same traces. The
/// variants with `ParentBased` in their name follow the decision that a request brings along, and
/// decide themselves only where there is none; the others always decide themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Sampler {
    /// Every trace.
    AlwaysOn,
    /// None.
    AlwaysOff,
    /// This share of traces, 0 to 1, chosen by trace id: the same ones in every process.
    Ratio(f64),
    /// What the parent says, else every trace. The default.
    #[default]
    ParentBasedAlwaysOn,
    /// What the parent says, else none.
    ParentBasedAlwaysOff,
    /// What the parent says, else this share, 0 to 1, chosen by trace id.
    ParentBasedRatio(f64),
}

impl Choice for Sampler {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("always_on", Self::AlwaysOn),
        ("always_off", Self::AlwaysOff),
        ("traceidratio", Self::Ratio(1.0)),
        ("parentbased_always_on", Self::ParentBasedAlwaysOn),
        ("parentbased_always_off", Self::ParentBasedAlwaysOff),
        ("parentbased_traceidratio", Self::ParentBasedRatio(1.0)),
    ];
}

impl Sampler {
    /// Whether the trace is sampled. `parent` is the decision that came with it, if any.
    pub(crate) fn samples(self, trace_id: u128, parent: Option<bool>) -> bool {
        let follows_parent = matches!(
            self,
            Self::ParentBasedAlwaysOn | Self::ParentBasedAlwaysOff | Self::ParentBasedRatio(_)
        );
        match (parent, self) {
            (Some(sampled), _) if follows_parent => sampled,
            (_, Self::AlwaysOn | Self::ParentBasedAlwaysOn) => true,
            (_, Self::AlwaysOff | Self::ParentBasedAlwaysOff) => false,
            (_, Self::Ratio(ratio) | Self::ParentBasedRatio(ratio)) => within(trace_id, ratio),
        }
    }

    /// The share of traces, where the sampler has one.
    pub(super) fn ratio(self) -> Option<f64> {
        match self {
            Self::Ratio(ratio) | Self::ParentBasedRatio(ratio) => Some(ratio),
            _ => None,
        }
    }

    /// The same sampler with another share; without effect where it has none.
    pub(super) fn with_ratio(self, ratio: f64) -> Self {
        match self {
            Self::Ratio(_) => Self::Ratio(ratio),
            Self::ParentBasedRatio(_) => Self::ParentBasedRatio(ratio),
            other => other,
        }
    }
}

/// The rule of the OpenTelemetry SDKs for Go, Java and Rust (the low eight bytes without their
/// lowest bit, below a bound), so that a mixed system keeps the same traces.
pub(crate) fn within(trace_id: u128, ratio: f64) -> bool {
    let bound = (ratio * (1u64 << 63) as f64) as u64;
    (trace_id as u64) >> 1 < bound
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trace ids whose low halves spread evenly.
    fn trace_ids(count: u64) -> impl Iterator<Item = u128> {
        (0..count).map(|n| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1 << 100)
    }

    #[test]
    fn a_parent_based_sampler_follows_the_parent_and_decides_alone_without_one() {
        for (sampler, alone) in [
            (Sampler::ParentBasedAlwaysOn, true),
            (Sampler::ParentBasedAlwaysOff, false),
            (Sampler::ParentBasedRatio(1.0), true),
            (Sampler::ParentBasedRatio(0.0), false),
        ] {
            assert!(sampler.samples(7, Some(true)), "{sampler:?}");
            assert!(!sampler.samples(7, Some(false)), "{sampler:?}");
            assert_eq!(sampler.samples(7, None), alone, "{sampler:?}");
        }
    }

    #[test]
    fn the_other_samplers_do_not_ask_the_parent() {
        for parent in [None, Some(true), Some(false)] {
            assert!(Sampler::AlwaysOn.samples(7, parent));
            assert!(!Sampler::AlwaysOff.samples(7, parent));
            assert!(Sampler::Ratio(1.0).samples(u128::MAX, parent));
            assert!(!Sampler::Ratio(0.0).samples(1, parent));
        }
    }

    #[test]
    fn a_ratio_keeps_that_share_and_a_greater_one_keeps_the_same_traces_and_more() {
        let kept =
            |ratio| trace_ids(10_000).filter(move |id| Sampler::Ratio(ratio).samples(*id, None));
        let quarter = kept(0.25).count();
        assert!((2_400..=2_600).contains(&quarter), "{quarter} of 10000");
        assert!(kept(0.25).all(|id| Sampler::Ratio(0.5).samples(id, None)));
    }
}
