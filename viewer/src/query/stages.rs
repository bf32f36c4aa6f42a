//! Stages: how long they take, and what went wrong in them.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde::Serialize;

use super::json::number;
use crate::rules::{Sample, Samples};
use crate::store::{Failure, Name, SpanNumber, Store};

/// The finished spans of a stage. Percentiles are by nearest rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// The stage.
    pub stage: String,
    /// How many there are.
    pub span_count: usize,
    /// Nanoseconds of all of them.
    pub sum_ns: String,
    /// Nanoseconds that half of them do not exceed.
    pub p50_ns: String,
    /// Nanoseconds that nine of ten do not exceed.
    pub p90_ns: String,
    /// Nanoseconds that 19 of 20 do not exceed.
    pub p95_ns: String,
    /// Nanoseconds that 99 of 100 do not exceed.
    pub p99_ns: String,
    /// Nanoseconds of the longest.
    pub max_ns: String,
    /// How many there are of each span name.
    pub raw_spans: BTreeMap<String, usize>,
    /// Samples in which something went wrong first in this stage.
    pub error_samples: usize,
    /// What went wrong, the most frequent first.
    pub errors: Vec<ErrorGroup>,
}

/// Samples in which the same went wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorGroup {
    /// The kind of error.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// For people.
    pub message: Option<String>,
    /// Samples in which it went wrong.
    pub samples: usize,
}

/// The finished spans of each stage.
#[derive(Default)]
pub(super) struct Stages {
    by_name: HashMap<Name, Stage>,
}

#[derive(Default)]
pub(super) struct Stage {
    durations: Vec<u64>,
    pub(super) self_ns: u128,
    names: HashMap<Name, usize>,
    failures: HashMap<Failure, usize>,
}

impl Stages {
    /// Adds up the spans of the samples that are chosen.
    pub(super) fn new(
        store: &Store,
        samples: &Samples,
        is_chosen: impl Fn(&Sample) -> bool,
    ) -> Self {
        let mut stages = Self::default();
        for number in (0..store.stats().spans as u32).map(SpanNumber) {
            let record = store.record(number);
            if !record.is_finished() || !samples.of_span(store, number).is_some_and(&is_chosen) {
                continue;
            }
            let stage = stages.by_name.entry(record.stage).or_default();
            stage.durations.push(record.duration());
            stage.self_ns += u128::from(samples.self_ns(number));
            *stage.names.entry(record.name).or_default() += 1;
        }
        for sample in samples.iter().filter(|sample| is_chosen(sample)) {
            if let Some(error) = sample.error.map(|error| store.record(error)) {
                let stage = stages.by_name.entry(error.stage).or_default();
                *stage.failures.entry(store.failure_of(error)).or_default() += 1;
            }
        }
        stages
    }

    pub(super) fn get(&mut self, stage: Name) -> Option<&mut Stage> {
        self.by_name.get_mut(&stage)
    }

    /// The stages by name.
    pub(super) fn into_sorted(self, store: &Store) -> Vec<(String, Stage)> {
        let stages = self.by_name.into_iter();
        let mut stages: Vec<_> = stages.map(|(name, stage)| (store.text(name), stage)).collect();
        stages.sort_by(|(one, _), (other, _)| one.cmp(other));
        stages
    }
}

impl Stage {
    pub(super) fn count(&self) -> usize {
        self.durations.len()
    }

    /// The least duration that this part of all does not exceed.
    pub(super) fn percentile(&mut self, hundredths: usize) -> u64 {
        let rank = (self.durations.len() * hundredths).div_ceil(100).max(1) - 1;
        match self.durations.len() {
            0 => 0,
            _ => *self.durations.select_nth_unstable(rank).1,
        }
    }

    /// Nanoseconds of each span, in order.
    pub(super) fn sorted_durations(&mut self) -> &[u64] {
        self.durations.sort_unstable();
        &self.durations
    }

    pub(super) fn into_row(mut self, store: &Store, stage: String) -> StageRow {
        let sum: u128 = self.durations.iter().copied().map(u128::from).sum();
        let mut percentile = |hundredths| number(self.percentile(hundredths));
        let (p50_ns, p90_ns) = (percentile(50), percentile(90));
        let (p95_ns, p99_ns) = (percentile(95), percentile(99));
        let max_ns = percentile(100);
        let names = self.names.iter();
        let text = |name: Option<Name>| name.map(|name| store.text(name));
        let failures = self.failures.iter();
        let mut errors: Vec<_> = failures
            .map(|(failure, samples)| ErrorGroup {
                kind: text(failure.kind),
                message: text(failure.message),
                samples: *samples,
            })
            .collect();
        errors.sort_by(|one, other| {
            let key = |group: &ErrorGroup| (group.kind.clone(), group.message.clone());
            other.samples.cmp(&one.samples).then_with(|| key(one).cmp(&key(other)))
        });
        StageRow {
            stage,
            span_count: self.durations.len(),
            sum_ns: number(sum),
            p50_ns,
            p90_ns,
            p95_ns,
            p99_ns,
            max_ns,
            raw_spans: names.map(|(name, count)| (store.text(*name), *count)).collect(),
            error_samples: self.failures.values().sum(),
            errors,
        }
    }
}
