//! The stages of a sample, beside what they usually take.

use hashbrown::HashMap;
use serde::Serialize;

use super::columns::Texts;
use super::order::Drawn;
use crate::query::json::number;
use crate::rules::{Samples, Sorted, StuckRule, waits};
use crate::store::{Name, Store};

/// A stage of the sample.
#[derive(Debug, Serialize)]
pub(super) struct Stage {
    /// Its place in `texts`.
    stage: u32,
    waits: bool,
    /// Spans of the sample, open ones included.
    spans: usize,
    failed: usize,
    /// What their children leave of them.
    self_ns: String,
    sum_ns: String,
    /// How long its ended spans take, in all samples.
    usual: Option<Usual>,
    /// Beyond this an open span of it is stuck; `null` if that is not known.
    threshold_ns: Option<String>,
}

/// How long ended spans take, by nearest rank.
#[derive(Debug, Serialize)]
struct Usual {
    count: usize,
    p50_ns: String,
    p90_ns: String,
    p99_ns: String,
}

#[derive(Default)]
struct Sums {
    spans: usize,
    failed: usize,
    self_ns: u128,
    sum_ns: u128,
}

/// The stages of the chosen spans, that with the most time of its own first.
pub(super) fn stages(
    store: &Store,
    samples: &Samples,
    spans: &[Drawn],
    covered: &[u64],
    is_chosen: impl Fn(&Drawn) -> bool,
    stuck: StuckRule,
    texts: &mut Texts,
) -> Vec<Stage> {
    let mut sums: HashMap<Name, Sums> = HashMap::new();
    for (span, covered) in spans.iter().zip(covered) {
        if is_chosen(span) {
            let of_stage = sums.entry(span.record.stage).or_default();
            of_stage.spans += 1;
            of_stage.failed += usize::from(span.record.is_failed);
            of_stage.sum_ns += u128::from(span.duration());
            of_stage.self_ns += u128::from(span.duration().saturating_sub(*covered));
        }
    }
    let totals = samples.totals(store, None);
    let mut stages: Vec<_> = sums.into_iter().collect();
    stages.sort_by_key(|(name, sums)| (std::cmp::Reverse(sums.self_ns), *name));
    let rows = stages.into_iter().map(|(name, sums)| {
        let durations = totals.stages.get(&name).map(|totals| &totals.durations);
        let durations = durations.filter(|durations| durations.len() > 0);
        let threshold = durations
            .and_then(|durations| stuck.threshold(durations.len(), durations.percentile(50)));
        let usual = |durations: &Sorted| Usual {
            count: durations.len(),
            p50_ns: number(durations.percentile(50)),
            p90_ns: number(durations.percentile(90)),
            p99_ns: number(durations.percentile(99)),
        };
        Stage {
            stage: texts.place(store, name),
            waits: store.with_text(name, waits),
            spans: sums.spans,
            failed: sums.failed,
            self_ns: number(sums.self_ns),
            sum_ns: number(sums.sum_ns),
            usual: durations.map(usual),
            threshold_ns: threshold.map(number),
        }
    });
    rows.collect()
}
