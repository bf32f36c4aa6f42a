//! All steps, one a row.

use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use serde_json::Value as Json;

use super::json::{ident, number};
use super::stuck::Limits;
use super::totals::{Tally, Totals};
use crate::rules::{Samples, StuckRule};
use crate::store::{Ident, Store};

/// Most steps that are shown: the last.
const MOST: usize = 1000;

/// All steps.
#[derive(Debug, Serialize)]
pub(crate) struct Steps {
    now_unix_nano: String,
    /// How many there are.
    count: usize,
    /// Samples without a step.
    without: usize,
    /// In order, at most the last thousand.
    rows: Vec<StepRow>,
}

#[derive(Debug, Serialize)]
struct StepRow {
    step: Json,
    groups: usize,
    #[serde(flatten)]
    totals: Totals,
}

impl Steps {
    /// Adds up all samples. What is stuck is judged by the spans of the same step.
    pub(crate) fn new(store: &Store, samples: &Samples, now: u64, stuck: StuckRule) -> Self {
        let limits = Limits::of_each_step(store, samples, stuck);
        let mut by_step: HashMap<Ident, (Tally, HashSet<Ident>)> = HashMap::new();
        let mut without = 0;
        for sample in samples.iter(store) {
            let Some(step) = sample.step else {
                without += 1;
                continue;
            };
            let (tally, groups) = by_step.entry(step).or_default();
            tally.add(store, &limits, &sample, now);
            groups.extend(sample.group);
        }
        let steps = samples.steps();
        let count = steps.len();
        let rows = steps[count.saturating_sub(MOST)..].iter().filter_map(|step| {
            let (tally, groups) = by_step.remove(step)?;
            let totals = tally.into_totals(store);
            Some(StepRow { step: ident(store, Some(*step)), groups: groups.len(), totals })
        });
        Self { now_unix_nano: number(now), count, without, rows: rows.collect() }
    }
}
