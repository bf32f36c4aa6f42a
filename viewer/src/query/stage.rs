//! One stage: how long it took, how that went over steps and processes, and which of its spans were slow.

use std::cmp::Reverse;

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value as Json;

use super::json::{ident, number};
use super::processes::names;
use super::spread::Spread;
use super::stages::StageRow;
use super::summary::{StepChoice, UnknownStep, choose};
use crate::rules::{Samples, order};
use crate::source::SourceReport;
use crate::store::{Ident, Record, SpanNumber, Store, TraceNumber};

/// Most of the slowest spans.
const SLOWEST: usize = 25;
/// Most steps and most processes, the last and the busiest.
const PARTS: usize = 400;

/// One stage.
#[derive(Debug, Serialize)]
pub(crate) struct OneStage {
    stage: String,
    row: Option<StageRow>,
    self_ns: Option<String>,
    spread: Option<Spread>,
    /// In the order of steps.
    steps: Vec<Part>,
    /// The one with the most spans first.
    processes: Vec<Part>,
    slowest: Vec<Slow>,
    /// Open spans, the oldest first.
    open: Vec<Slow>,
}

/// The ended spans of a step or process.
#[derive(Debug, Serialize)]
struct Part {
    name: Json,
    spans: usize,
    failed: u64,
    p50_ns: String,
    p99_ns: String,
    max_ns: String,
}

#[derive(Debug, Serialize)]
struct Slow {
    trace_id: String,
    span_id: String,
    sample: Json,
    step: Json,
    name: String,
    process: String,
    start_unix_nano: String,
    duration_ns: String,
    is_failed: bool,
}

/// Why there is nothing to tell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageError {
    #[error(transparent)]
    Step(#[from] UnknownStep),
    #[error("there is no stage {0}")]
    Unknown(String),
}

#[derive(Default)]
struct Collected {
    durations: Vec<u64>,
    failed: u64,
}

impl OneStage {
    /// # Errors
    /// If nothing that was recorded is of the stage, or no sample of the step.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        report: &SourceReport,
        stage: &str,
        step: &StepChoice,
        now: u64,
    ) -> Result<Self, StageError> {
        let step = choose(store, samples.steps(), step)?;
        let mut declared = report.recordings.iter().flat_map(|recording| &recording.stages);
        let mut is_known = declared.any(|declared| declared.name == stage);
        let name = store.find_name(stage);
        let (processes, owners) = names(&store.origins());
        let mut by_step: HashMap<Option<Ident>, Collected> = HashMap::new();
        let mut by_process: HashMap<usize, Collected> = HashMap::new();
        let (mut ended, mut open) = (Vec::new(), Vec::new());
        for span in (0..store.stats().spans as u32).map(SpanNumber) {
            let record = store.record(span);
            if Some(record.stage) != name {
                continue;
            }
            is_known = true;
            let Some(sample) = samples.row_of_span(store, span) else { continue };
            let of_step = sample.step(store);
            if step.is_some() && of_step != step {
                continue;
            }
            if record.is_finished() {
                let duration = record.duration();
                by_step.entry(of_step).or_default().add(&record);
                by_process.entry(owners.of(&record)).or_default().add(&record);
                ended.push((duration, span));
            } else if record.is_open() && !record.is_lost {
                open.push((now.saturating_sub(record.start), span));
            }
        }
        if !is_known {
            return Err(StageError::Unknown(stage.to_owned()));
        }
        let slow = |(duration, span): (u64, SpanNumber)| {
            let record = store.record(span);
            let sample = samples.of_span(store, span);
            let id = sample
                .as_ref()
                .and_then(|sample| sample.rollout.or(sample.request.map(Ident::Text)));
            Slow {
                trace_id: store.trace_id(TraceNumber(record.trace)).to_string(),
                span_id: record.id.to_string(),
                sample: ident(store, id),
                step: ident(store, sample.and_then(|sample| sample.step)),
                name: store.text(record.name),
                process: processes[owners.of(&record)].1.clone(),
                start_unix_nano: number(record.start),
                duration_ns: number(duration),
                is_failed: record.is_failed,
            }
        };
        let mut of_steps: Vec<_> =
            by_step.into_iter().filter_map(|(step, all)| Some((step?, all))).collect();
        of_steps.sort_by_cached_key(|(step, _)| order(store, *step));
        let first = of_steps.len().saturating_sub(PARTS);
        let of_steps =
            of_steps.drain(first..).map(|(step, all)| all.part(ident(store, Some(step))));
        let mut of_processes: Vec<_> = by_process.into_iter().collect();
        of_processes.sort_by_key(|(process, all)| (Reverse(all.durations.len()), *process));
        let of_processes = of_processes.into_iter().take(PARTS);
        let of_processes =
            of_processes.map(|(process, all)| all.part(processes[process].1.as_str().into()));
        let totals = samples.totals(store, step);
        let own = name.and_then(|name| totals.stages.get(&name)).filter(|own| !own.is_empty());
        Ok(Self {
            stage: stage.to_owned(),
            row: own.map(|own| StageRow::new(store, stage.to_owned(), own).shortened()),
            self_ns: own.map(|own| number(own.self_ns)),
            spread: own.and_then(|own| Spread::of(&own.durations.to_vec())),
            steps: of_steps.collect(),
            processes: of_processes.collect(),
            slowest: longest(ended).into_iter().map(slow).collect(),
            open: longest(open).into_iter().map(slow).collect(),
        })
    }
}

/// The longest, the longest first.
fn longest(mut spans: Vec<(u64, SpanNumber)>) -> Vec<(u64, SpanNumber)> {
    let key = |(duration, span): &(u64, SpanNumber)| (Reverse(*duration), *span);
    if spans.len() > SLOWEST {
        spans.select_nth_unstable_by_key(SLOWEST, key);
        spans.truncate(SLOWEST);
    }
    spans.sort_by_key(key);
    spans
}

impl Collected {
    fn add(&mut self, record: &Record) {
        self.durations.push(record.duration());
        self.failed += u64::from(record.is_failed);
    }

    fn part(mut self, name: Json) -> Part {
        self.durations.sort_unstable();
        let rank = |hundredths: usize| {
            let rank = (self.durations.len() * hundredths).div_ceil(100).max(1) - 1;
            number(self.durations[rank])
        };
        Part {
            name,
            spans: self.durations.len(),
            failed: self.failed,
            p50_ns: rank(50),
            p99_ns: rank(99),
            max_ns: rank(100),
        }
    }
}
