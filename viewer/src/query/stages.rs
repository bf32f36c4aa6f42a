//! Stages: how long they take, and what went wrong in them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::json::number;
use crate::rules::StageTotals;
use crate::store::{Name, Store};

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

/// Most kinds of errors, and most names, that a page lists of a stage.
const LISTED: usize = 100;

impl StageRow {
    /// Keeps the most frequent errors and names, as many as a page lists.
    pub(super) fn shortened(mut self) -> Self {
        self.errors.truncate(LISTED);
        if self.raw_spans.len() > LISTED {
            let mut names: Vec<_> = std::mem::take(&mut self.raw_spans).into_iter().collect();
            names.sort_by_key(|(_, spans)| std::cmp::Reverse(*spans));
            names.truncate(LISTED);
            self.raw_spans = names.into_iter().collect();
        }
        self
    }

    pub(super) fn new(store: &Store, stage: String, totals: &StageTotals) -> Self {
        let durations = &totals.durations;
        let percentile = |hundredths| number(durations.percentile(hundredths));
        let text = |name: Option<Name>| name.map(|name| store.text(name));
        let errors = totals.failures.iter().map(|(failure, samples)| ErrorGroup {
            kind: text(failure.kind),
            message: text(failure.message),
            samples: *samples,
        });
        let mut errors: Vec<_> = errors.collect();
        errors.sort_by(|one, other| {
            let texts = (&one.kind, &one.message).cmp(&(&other.kind, &other.message));
            other.samples.cmp(&one.samples).then(texts)
        });
        let names = totals.names.iter();
        Self {
            stage,
            span_count: durations.len(),
            sum_ns: number(totals.sum_ns),
            p50_ns: percentile(50),
            p90_ns: percentile(90),
            p95_ns: percentile(95),
            p99_ns: percentile(99),
            max_ns: percentile(100),
            raw_spans: names.map(|(name, count)| (store.text(*name), *count)).collect(),
            error_samples: totals.failures.values().sum(),
            errors,
        }
    }
}
