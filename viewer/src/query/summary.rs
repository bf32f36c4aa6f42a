//! The whole at a glance, of all steps or of one.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use serde_json::Value as Json;

use super::json::{number, recorded};
use super::rows::{
    CurrentSpan, LastFinished, Latency, Losses, LostSample, OccupancyRow, OpenSample, Reward,
    SelfTime, StuckSpan, Summary,
};
use super::stages::StageRow;
use crate::rules::{Sample, Samples, Sorted, StuckRule, Totals, order, shown};
use crate::source::SourceReport;
use crate::store::{Ident, Name, SpanNumber, Store};

/// What to sum up, and when it is asked.
#[derive(Clone, Debug)]
pub struct SummaryOptions {
    /// The steps.
    pub step: StepChoice,
    /// Now, in nanoseconds since 1970.
    pub now: u64,
    /// When an open span counts as stuck.
    pub stuck: StuckRule,
}

/// Which steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepChoice {
    /// All, and samples without a step.
    #[default]
    All,
    /// The greatest.
    Latest,
    /// The one of this id.
    One(String),
}

/// A step that no sample has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sample is of step {step}; there {}", there_are(available))]
pub struct UnknownStep {
    /// What was asked for.
    pub step: String,
    /// The steps that there are.
    pub available: Vec<String>,
}

/// What is asked, of what.
struct Question<'a> {
    store: &'a Store,
    samples: &'a Samples,
    options: &'a SummaryOptions,
    step: Option<Ident>,
}

impl Summary {
    /// Sums up.
    ///
    /// # Errors
    /// If no sample is of the step.
    pub fn new(
        store: &Store,
        samples: &Samples,
        sources: &SourceReport,
        options: &SummaryOptions,
    ) -> Result<Self, UnknownStep> {
        let available = samples.steps();
        let step = choose(store, available, &options.step)?;
        Ok(Question { store, samples, options, step }.answer(sources, available))
    }
}

impl Question<'_> {
    fn answer(&self, sources: &SourceReport, available: &[Ident]) -> Summary {
        let Self { store, options, .. } = *self;
        let totals = self.samples.totals(store, self.step);
        let open: Vec<Sample> = self.samples.open(self.step).map(|row| row.sample(store)).collect();
        let mut statuses = BTreeMap::new();
        for (status, samples) in &totals.statuses {
            *statuses.entry(status.text(store)).or_default() += samples;
        }
        let stages = totals.stages.iter().filter(|(_, stage)| !stage.is_empty());
        let mut stages: Vec<_> = stages.map(|(name, stage)| (store.text(*name), stage)).collect();
        stages.sort_by(|(one, _), (other, _)| one.cmp(other));
        let self_times = stages
            .iter()
            .map(|(name, stage)| SelfTime { stage: name.clone(), self_ns: number(stage.self_ns) });
        let self_times = self_times.collect();
        let (rewarded, sum) = totals.rewards();
        Summary {
            schema: 1,
            now_unix_nano: number(options.now),
            step: self.step.map_or_else(|| "all".into(), |step| recorded(store, Some(step))),
            available_steps: available.iter().map(|step| recorded(store, Some(*step))).collect(),
            latest_step: recorded(store, available.last().copied()),
            run_ids: resource_texts(store, &["stagetrace.run.id", "run.id"]),
            services: resource_texts(store, &["service.name"]),
            live_source: sources.has_live(),
            damaged_lines: sources
                .files
                .iter()
                .flat_map(|file| file.damaged_numbers().map(|line| (file.name.clone(), line)))
                .collect(),
            unread: sources.unread().map(|(name, why)| (name.to_owned(), why.to_owned())).collect(),
            samples: totals.samples,
            groups: totals.groups.len(),
            steps: self.step.map_or(available.len(), |_| 1),
            statuses,
            finished_spans: totals.finished_spans,
            open_samples: self.open_samples(&open),
            occupancy: self.occupancy(&open),
            left_open_spans: totals.left_open,
            result_not_exported: totals.result_not_exported,
            reward: Reward { count: rewarded, sum, passed: totals.passed },
            stuck: self.stuck(&open, &totals),
            first_token: latency(&totals.first_tokens),
            stages: stages
                .into_iter()
                .map(|(name, stage)| StageRow::new(store, name, stage))
                .collect(),
            lost: self.lost(),
            self_times,
            losses: self.losses(sources),
        }
    }

    fn open_samples(&self, open: &[Sample]) -> Vec<OpenSample> {
        let Self { store, .. } = *self;
        let mut open: Vec<&Sample> = open.iter().collect();
        let place = |ident: Option<Ident>| ident.map(|ident| order(store, ident));
        open.sort_by_cached_key(|sample| {
            // Those whose begin is not known come last.
            let begin = sample.start.unwrap_or(u64::MAX);
            (begin, place(sample.step), place(sample.rollout), sample.trace)
        });
        open.into_iter().map(|sample| self.open_sample(sample)).collect()
    }

    fn open_sample(&self, sample: &Sample) -> OpenSample {
        let Self { store, .. } = *self;
        let current = sample.current.map(|current| {
            let record = store.record(current.span);
            CurrentSpan {
                stage: store.text(current.stage),
                span: store.text(record.name),
                span_id: record.id.to_string(),
                since_unix_nano: number(current.since),
                age_ns: number(self.age(current.since)),
                path: path(store, current.span),
            }
        });
        let last = sample.last_finished.filter(|_| current.is_none()).map(|last| {
            let record = store.record(last);
            LastFinished {
                stage: store.text(record.stage),
                span: store.text(record.name),
                end_unix_nano: number(record.end),
                silent_for_ns: number(self.age(record.end)),
            }
        });
        OpenSample {
            rollout_id: self.id(sample),
            group_id: recorded(store, sample.group),
            step: recorded(store, sample.step),
            trace_id: store.trace_id(sample.trace).to_string(),
            age_ns: sample.start.map(|start| number(self.age(start))),
            current,
            last_finished: last,
        }
    }

    /// The id of a rollout, or of a request.
    fn id(&self, sample: &Sample) -> Json {
        match sample.rollout {
            Some(rollout) => recorded(self.store, Some(rollout)),
            None => recorded(self.store, sample.request.map(Ident::Text)),
        }
    }

    fn occupancy(&self, open: &[Sample]) -> Vec<OccupancyRow> {
        let Self { store, .. } = *self;
        let mut by_stage: HashMap<_, Vec<(u64, &Sample)>> = HashMap::new();
        for sample in open {
            if let Some(current) = sample.current {
                by_stage.entry(current.stage).or_default().push((current.since, sample));
            }
        }
        let rows = by_stage.into_iter().filter_map(|(stage, within)| {
            let (since, oldest) = *within.iter().min_by_key(|(since, s)| (*since, s.trace))?;
            let groups: HashSet<_> = within
                .iter()
                .filter_map(|(_, sample)| Some((sample.step, sample.group?)))
                .collect();
            Some(OccupancyRow {
                stage: store.text(stage),
                samples: within.len(),
                groups: groups.len(),
                oldest_age_ns: number(self.age(since)),
                oldest_rollout_id: self.id(oldest),
            })
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|one, other| one.stage.cmp(&other.stage));
        rows
    }

    fn stuck(&self, open: &[Sample], totals: &Totals) -> Vec<StuckSpan> {
        let Self { store, options, .. } = *self;
        let mut thresholds = HashMap::new();
        let mut stuck = Vec::new();
        for sample in open {
            let Some(current) = sample.current else { continue };
            let threshold = *thresholds.entry(current.stage).or_insert_with(|| {
                let durations = &totals.stages.get(&current.stage)?.durations;
                options.stuck.threshold(durations.len(), durations.percentile(50))
            });
            let age = self.age(current.since);
            if let Some(threshold) = threshold.filter(|threshold| age > *threshold) {
                stuck.push((age as f64 / threshold.max(1) as f64, sample, current, threshold));
            }
        }
        stuck.sort_by(|one, other| {
            other.0.total_cmp(&one.0).then_with(|| one.1.trace.cmp(&other.1.trace))
        });
        let rows = stuck.into_iter().map(|(_, sample, current, threshold)| StuckSpan {
            rollout_id: self.id(sample),
            group_id: recorded(store, sample.group),
            step: recorded(store, sample.step),
            trace_id: store.trace_id(sample.trace).to_string(),
            stage: store.text(current.stage),
            span_id: store.record(current.span).id.to_string(),
            age_ns: number(self.age(current.since)),
            threshold_ns: number(threshold),
        });
        rows.collect()
    }

    fn lost(&self) -> Vec<LostSample> {
        let Self { store, .. } = *self;
        let lost = self.samples.lost(self.step).map(|row| row.sample(store));
        let rows = lost.map(|sample| LostSample {
            rollout_id: self.id(&sample),
            group_id: recorded(store, sample.group),
            step: recorded(store, sample.step),
            trace_id: store.trace_id(sample.trace).to_string(),
            stage: sample.current.map(|current| store.text(current.stage)),
        });
        rows.collect()
    }

    fn losses(&self, sources: &SourceReport) -> Losses {
        let stats = self.store.stats();
        let mut losses = Losses {
            beyond_memory: stats.refused,
            duplicates: stats.duplicates,
            ..Losses::default()
        };
        for recording in &sources.recordings {
            losses.recorder_spans += recording.lost_spans;
            losses.recorder_details += recording.lost_details;
        }
        for file in &sources.files {
            losses.refused_spans += file.refused_spans;
            losses.damaged_lines += file.damaged_lines + u64::from(file.torn_line.is_some());
        }
        for inbox in &sources.inboxes {
            losses.refused_spans += inbox.refused_spans;
        }
        losses.unassigned_spans = (stats.finished - self.samples.counted_spans()) as u64;
        losses
    }

    fn age(&self, since: u64) -> u64 {
        self.options.now.saturating_sub(since)
    }
}

impl StepChoice {
    /// As people write it: `all`, `latest`, or the id of a step.
    pub fn parse(text: &str) -> Self {
        match text {
            "all" => Self::All,
            "latest" => Self::Latest,
            step => Self::One(step.to_owned()),
        }
    }

    /// The step that is meant; `None` for all of them.
    pub(super) fn find(
        &self,
        store: &Store,
        samples: &Samples,
    ) -> Result<Option<Ident>, UnknownStep> {
        choose(store, samples.steps(), self)
    }
}

fn latency(times: &Sorted) -> Option<Latency> {
    let percentile = |hundredths| number(times.percentile(hundredths));
    (times.len() > 0).then(|| Latency {
        count: times.len(),
        p50_ns: percentile(50),
        p90_ns: percentile(90),
        p99_ns: percentile(99),
        max_ns: percentile(100),
    })
}

/// The step that is meant; `None` for all of them.
pub(super) fn choose(
    store: &Store,
    available: &[Ident],
    choice: &StepChoice,
) -> Result<Option<Ident>, UnknownStep> {
    match choice {
        StepChoice::All => Ok(None),
        StepChoice::Latest => Ok(available.last().copied()),
        StepChoice::One(step) => {
            let found = available.iter().find(|ident| shown(store, **ident) == *step);
            found.copied().map(Some).ok_or_else(|| UnknownStep {
                step: step.clone(),
                available: available.iter().map(|ident| shown(store, *ident)).collect(),
            })
        }
    }
}

fn there_are(available: &[String]) -> String {
    match available {
        [] => "are no steps".to_owned(),
        [only] => format!("is only {only}"),
        [first, .., last] => format!("are {}, from {first} to {last}", available.len()),
    }
}

/// The different texts that resources have under these keys.
pub(super) fn resource_texts(store: &Store, keys: &[&str]) -> Vec<String> {
    let origins = store.origins();
    let texts = origins.iter().filter_map(|origin| {
        let find = |key: &&str| origin.resource.attribute(key)?.as_str();
        keys.iter().find_map(find)
    });
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// The names from the root to a span, as far as they are known.
pub(super) fn path(store: &Store, span: SpanNumber) -> Vec<String> {
    path_names(store, span).into_iter().map(|name| store.text(name)).collect()
}

/// The same as numbers.
pub(super) fn path_names(store: &Store, span: SpanNumber) -> Vec<Name> {
    const LONGEST: usize = 64;
    let recorded = store.path(span);
    if !recorded.is_empty() {
        return recorded;
    }
    let mut path = Vec::new();
    let mut next = Some(span);
    while let Some(here) = next.filter(|_| path.len() < LONGEST) {
        path.push(store.record(here).name);
        next = store.parent(here);
    }
    path.reverse();
    path
}
