//! Two runs side by side, stage by stage: did it become slower, and can one tell?

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::json::number;
use super::stages::{ErrorGroup, StageRow};
use super::statistics::{median_interval, percentile, rank_test};
use super::summary::resource_texts;
use crate::rules::{Samples, Totals};
use crate::store::Store;

/// What is compared of a run. It needs its store no more, and 8 bytes a span.
#[derive(Clone, Debug)]
pub struct RunMeasures {
    run: ComparedRun,
    stages: BTreeMap<String, Durations>,
}

#[derive(Clone, Debug)]
struct Durations {
    sorted: Vec<u64>,
    error_samples: usize,
    errors: Vec<ErrorGroup>,
}

/// The answer. Its fields are the JSON of `stagetrace-viewer diff --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The version of this form. Fields may be added to a version, and are never changed.
    pub schema: u32,
    /// How probable it is that an interval holds the true difference.
    pub confidence: f64,
    /// The first run.
    pub a: ComparedRun,
    /// The second run.
    pub b: ComparedRun,
    /// All stages of both, by name.
    pub stages: Vec<ComparedStage>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The runs that its spans are of.
    pub run_ids: Vec<String>,
    /// The services that its spans are of.
    pub services: Vec<String>,
    /// Samples or requests.
    pub samples: usize,
    /// How many stand how.
    pub statuses: BTreeMap<String, usize>,
    /// Spans that have ended and belong to a sample.
    pub finished_spans: usize,
}

/// A stage of two runs.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedStage {
    /// The stage.
    pub stage: String,
    /// What became of it.
    pub verdict: Verdict,
    /// In the first run, if it is there.
    pub a: Option<StageMeasures>,
    /// In the second run, if it is there.
    pub b: Option<StageMeasures>,
    /// Nanoseconds by which the median of the second exceeds that of the first.
    pub difference_ns: Option<String>,
    /// Nanoseconds between which the true difference of medians lies, with the confidence.
    pub interval_ns: Option<[String; 2]>,
    /// How probable it is that a span of the second takes longer than one of the first; ties count half.
    pub superiority: Option<f64>,
    /// How probable so uneven ranks are if nothing has changed.
    pub p_value: Option<f64>,
    /// What went wrong in it, the most frequent first.
    pub errors: Vec<ComparedErrors>,
}

/// A stage of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageMeasures {
    /// Ended spans.
    pub span_count: usize,
    /// Nanoseconds on average, rounded down.
    pub mean_ns: String,
    /// Nanoseconds that half of them do not exceed.
    pub p50_ns: String,
    /// Nanoseconds that nine of ten do not exceed.
    pub p90_ns: String,
    /// Nanoseconds that 99 of 100 do not exceed.
    pub p99_ns: String,
    /// Nanoseconds of the longest.
    pub max_ns: String,
    /// Samples in which something went wrong first in this stage.
    pub error_samples: usize,
}

/// Samples in which the same went wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedErrors {
    /// The kind of error.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// For people.
    pub message: Option<String>,
    /// Samples of the first run.
    pub a: usize,
    /// Samples of the second run.
    pub b: usize,
}

/// What became of a stage from the first run to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less time.
    Faster,
    /// No difference of any weight is proven.
    Same,
    /// There are too few spans to tell.
    TooFew,
    /// The second run does not have it.
    OnlyInA,
    /// The first run does not have it.
    OnlyInB,
}

/// Most kinds of errors that a page lists of a stage.
const LISTED: usize = 100;
/// Spans of a stage that each run must have.
const LEAST: usize = 8;
/// What the probability of the ranks must not exceed.
const GREATEST_P: f64 = 0.01;
/// The part of the first median by which the second must differ: among many spans even trifles are
/// proven.
const LEAST_CHANGE: f64 = 0.01;

impl RunMeasures {
    /// Takes from a run what is compared, of all steps.
    pub fn new(store: &Store, samples: &Samples) -> Self {
        Self::of(store, &samples.totals(store, None))
    }

    /// Takes what is compared from sums.
    pub(crate) fn of(store: &Store, totals: &Totals) -> Self {
        let mut statuses = BTreeMap::new();
        for (status, samples) in &totals.statuses {
            *statuses.entry(status.text(store)).or_default() += samples;
        }
        let stages = totals.stages.iter().filter(|(_, stage)| !stage.is_empty());
        let stages = stages.map(|(name, stage)| {
            let row = StageRow::new(store, store.text(*name), stage);
            let (error_samples, errors) = (row.error_samples, row.errors);
            (row.stage, Durations { sorted: stage.durations.to_vec(), error_samples, errors })
        });
        let stages: BTreeMap<_, _> = stages.collect();
        let run = ComparedRun {
            run_ids: resource_texts(store, &["stagetrace.run.id", "run.id"]),
            services: resource_texts(store, &["service.name"]),
            samples: totals.samples,
            statuses,
            finished_spans: stages.values().map(|stage| stage.sorted.len()).sum(),
        };
        Self { run, stages }
    }

    /// What its spans are of, where not all of a store are compared.
    pub(super) fn set_names(&mut self, run_ids: Vec<String>, services: Vec<String>) {
        (self.run.run_ids, self.run.services) = (run_ids, services);
    }

    pub(super) fn samples(&self) -> usize {
        self.run.samples
    }

    /// Nanoseconds of each span of a stage, in order.
    pub(super) fn durations(&self, stage: &str) -> &[u64] {
        self.stages.get(stage).map_or(&[], |durations| &durations.sorted)
    }
}

impl Comparison {
    /// Compares two runs. The same runs give the same answer.
    pub fn new(a: &RunMeasures, b: &RunMeasures) -> Self {
        let names: BTreeSet<&String> = a.stages.keys().chain(b.stages.keys()).collect();
        let stages = names
            .into_iter()
            .map(|name| ComparedStage::new(name, a.stages.get(name), b.stages.get(name)));
        Self {
            schema: 1,
            confidence: 0.95,
            stages: stages.collect(),
            a: a.run.clone(),
            b: b.run.clone(),
        }
    }

    /// Keeps of each stage the most frequent errors, as many as a page lists.
    pub(super) fn shorten(&mut self) {
        for stage in &mut self.stages {
            stage.errors.truncate(LISTED);
        }
    }
}

impl ComparedStage {
    fn new(name: &str, a: Option<&Durations>, b: Option<&Durations>) -> Self {
        let mut stage = Self {
            stage: name.to_owned(),
            verdict: if a.is_some() { Verdict::OnlyInA } else { Verdict::OnlyInB },
            a: a.map(Durations::measures),
            b: b.map(Durations::measures),
            difference_ns: None,
            interval_ns: None,
            superiority: None,
            p_value: None,
            errors: errors(a, b),
        };
        let (Some(a), Some(b)) = (a, b) else { return stage };
        let (a, b) = (&a.sorted, &b.sorted);
        stage.verdict = Verdict::TooFew;
        if a.is_empty() || b.is_empty() {
            return stage;
        }
        let median = percentile(a, 50);
        let difference = i128::from(percentile(b, 50)) - i128::from(median);
        stage.difference_ns = Some(number(difference));
        if a.len() < LEAST || b.len() < LEAST {
            return stage;
        }
        let test = rank_test(a, b);
        let [low, high] = median_interval(a, b);
        stage.interval_ns = Some([low, high].map(|bound| number(bound.round() as i128)));
        (stage.superiority, stage.p_value) = (Some(test.superiority), Some(test.p_value));
        let is_proven = test.p_value <= GREATEST_P
            && difference.unsigned_abs() as f64 >= LEAST_CHANGE * median as f64;
        stage.verdict = if is_proven && low > 0.0 && test.superiority > 0.5 {
            Verdict::Slower
        } else if is_proven && high < 0.0 && test.superiority < 0.5 {
            Verdict::Faster
        } else {
            Verdict::Same
        };
        stage
    }
}

impl Durations {
    fn measures(&self) -> StageMeasures {
        let sum: u128 = self.sorted.iter().copied().map(u128::from).sum();
        let at = |hundredths| number(percentile(&self.sorted, hundredths));
        StageMeasures {
            span_count: self.sorted.len(),
            mean_ns: number(sum / self.sorted.len().max(1) as u128),
            p50_ns: at(50),
            p90_ns: at(90),
            p99_ns: at(99),
            max_ns: at(100),
            error_samples: self.error_samples,
        }
    }
}

fn errors(a: Option<&Durations>, b: Option<&Durations>) -> Vec<ComparedErrors> {
    let mut counts = BTreeMap::<_, [usize; 2]>::new();
    for (side, stage) in [a, b].into_iter().enumerate() {
        for group in stage.iter().flat_map(|stage| &stage.errors) {
            counts.entry((&group.kind, &group.message)).or_default()[side] += group.samples;
        }
    }
    let errors = counts.into_iter().map(|((kind, message), [a, b])| ComparedErrors {
        kind: kind.clone(),
        message: message.clone(),
        a,
        b,
    });
    let mut errors: Vec<_> = errors.collect();
    errors.sort_by_key(|group| std::cmp::Reverse(group.a + group.b));
    errors
}
