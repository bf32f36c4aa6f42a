//! The whole at a glance, of all steps or of one.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use serde_json::Value as Json;

use super::json::{ident, number};
use super::rows::{
    CurrentSpan, LastFinished, Losses, LostSample, OccupancyRow, OpenSample, Reward, SelfTime,
    StuckSpan, Summary,
};
use super::stages::Stages;
use crate::rules::{Sample, Samples, Status, StuckRule, compare, shown};
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

impl StepChoice {
    /// What a person means: `all`, `latest`, or the id of one.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "all" => Self::All,
            "latest" => Self::Latest,
            step => Self::One(step.to_owned()),
        }
    }
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
        let available = steps(store, samples);
        let step = choose(store, &available, &options.step)?;
        Ok(Question { store, samples, options, step }.answer(sources, &available))
    }
}

impl Question<'_> {
    fn answer(&self, sources: &SourceReport, available: &[Ident]) -> Summary {
        let Self { store, options, .. } = *self;
        let chosen: Vec<&Sample> =
            self.samples.iter().filter(|sample| self.is_chosen(sample)).collect();
        let mut stages = Stages::new(store, self.samples, |sample| self.is_chosen(sample));
        let stuck = self.stuck(&chosen, &mut stages);
        let mut self_times = Vec::new();
        let mut rows = Vec::new();
        for (name, stage) in stages.into_sorted(store) {
            self_times.push(SelfTime { stage: name.clone(), self_ns: number(stage.self_ns) });
            rows.push(stage.into_row(store, name));
        }
        let mut statuses = BTreeMap::new();
        for sample in &chosen {
            *statuses.entry(sample.status.text(store)).or_default() += 1;
        }
        let groups: HashSet<_> =
            chosen.iter().filter_map(|sample| Some((sample.step, sample.group?))).collect();
        let steps: HashSet<_> = chosen.iter().filter_map(|sample| sample.step).collect();
        Summary {
            schema: 1,
            now_unix_nano: number(options.now),
            step: self.step.map_or_else(|| "all".into(), |step| ident(store, Some(step))),
            available_steps: available.iter().map(|step| ident(store, Some(*step))).collect(),
            latest_step: ident(store, available.last().copied()),
            run_ids: resource_texts(store, &["stagetrace.run.id", "run.id"]),
            services: resource_texts(store, &["service.name"]),
            live_source: sources.has_live(),
            damaged_lines: sources
                .files
                .iter()
                .flat_map(|file| file.damaged_numbers().map(|line| (file.name.clone(), line)))
                .collect(),
            unread: sources.unread().map(|(name, why)| (name.to_owned(), why.to_owned())).collect(),
            samples: chosen.len(),
            groups: groups.len(),
            steps: steps.len(),
            statuses,
            finished_spans: chosen.iter().map(|sample| u64::from(sample.finished_spans)).sum(),
            open_samples: self.open_samples(&chosen),
            occupancy: self.occupancy(&chosen),
            left_open_spans: chosen.iter().map(|sample| sample.left_open.len()).sum(),
            result_not_exported: chosen.iter().filter(|s| s.result_not_exported).count(),
            reward: rewards(&chosen),
            stages: rows,
            stuck,
            lost: self.lost(&chosen),
            self_times,
            losses: self.losses(sources),
        }
    }

    fn is_chosen(&self, sample: &Sample) -> bool {
        self.step.is_none() || sample.step == self.step
    }

    fn open_samples(&self, chosen: &[&Sample]) -> Vec<OpenSample> {
        let Self { store, .. } = *self;
        let mut open: Vec<&Sample> = chosen.iter().copied().filter(|s| s.is_open).collect();
        let place = |one: Option<Ident>, other: Option<Ident>| match (one, other) {
            (Some(one), Some(other)) => compare(store, one, other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        open.sort_by(|one, other| {
            // Those whose begin is not known come last.
            let age = |sample: &Sample| sample.start.unwrap_or(u64::MAX);
            age(one)
                .cmp(&age(other))
                .then_with(|| place(one.step, other.step))
                .then_with(|| place(one.rollout, other.rollout))
                .then_with(|| one.trace.cmp(&other.trace))
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
            group_id: ident(store, sample.group),
            step: ident(store, sample.step),
            trace_id: store.trace_id(sample.trace).to_string(),
            age_ns: sample.start.map(|start| number(self.age(start))),
            current,
            last_finished: last,
        }
    }

    /// The id of a rollout, or of a request.
    fn id(&self, sample: &Sample) -> Json {
        match sample.rollout {
            Some(rollout) => ident(self.store, Some(rollout)),
            None => ident(self.store, sample.request.map(Ident::Text)),
        }
    }

    fn occupancy(&self, chosen: &[&Sample]) -> Vec<OccupancyRow> {
        let Self { store, .. } = *self;
        let mut by_stage: HashMap<_, Vec<(u64, &Sample)>> = HashMap::new();
        for sample in chosen.iter().filter(|sample| sample.is_open) {
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

    fn stuck(&self, chosen: &[&Sample], stages: &mut Stages) -> Vec<StuckSpan> {
        let Self { store, options, .. } = *self;
        let mut thresholds = HashMap::new();
        let mut stuck = Vec::new();
        for sample in chosen.iter().filter(|sample| sample.is_open) {
            let Some(current) = sample.current else { continue };
            let threshold = *thresholds.entry(current.stage).or_insert_with(|| {
                let stage = stages.get(current.stage)?;
                options.stuck.threshold(stage.count(), stage.percentile(50))
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
            group_id: ident(store, sample.group),
            step: ident(store, sample.step),
            trace_id: store.trace_id(sample.trace).to_string(),
            stage: store.text(current.stage),
            span_id: store.record(current.span).id.to_string(),
            age_ns: number(self.age(current.since)),
            threshold_ns: number(threshold),
        });
        rows.collect()
    }

    fn lost(&self, chosen: &[&Sample]) -> Vec<LostSample> {
        let Self { store, .. } = *self;
        let lost = chosen.iter().filter(|sample| sample.status == Status::Lost);
        let rows = lost.map(|sample| LostSample {
            rollout_id: self.id(sample),
            group_id: ident(store, sample.group),
            step: ident(store, sample.step),
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
        let spans = (0..stats.spans as u32).map(SpanNumber);
        let unassigned = spans.filter(|span| {
            self.store.record(*span).is_finished()
                && self.samples.of_span(self.store, *span).is_none()
        });
        losses.unassigned_spans = unassigned.count() as u64;
        losses
    }

    fn age(&self, since: u64) -> u64 {
        self.options.now.saturating_sub(since)
    }
}

/// Every step, in order.
pub(super) fn steps(store: &Store, samples: &Samples) -> Vec<Ident> {
    let steps: HashSet<_> = samples.iter().filter_map(|sample| sample.step).collect();
    let mut steps: Vec<_> = steps.into_iter().collect();
    steps.sort_by(|one, other| compare(store, *one, *other));
    steps
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

fn rewards(chosen: &[&Sample]) -> Reward {
    let mut scores: Vec<f64> = chosen.iter().filter_map(|sample| sample.reward()).collect();
    // In one order, so that the sum does not depend on that of the files.
    scores.sort_by(f64::total_cmp);
    Reward {
        count: scores.len(),
        sum: scores.iter().sum(),
        passed: chosen.iter().filter(|sample| sample.passed() == Some(true)).count(),
    }
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
