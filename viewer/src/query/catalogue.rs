//! Stages: every one that could be there beside those that are.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use super::json::number;
use super::overview::half_power;
use super::processes::names;
use super::stages::{StageRow, Stages};
use super::summary::{StepChoice, UnknownStep, choose, steps};
use crate::rules::{Sample, Samples};
use crate::source::{DeclaredStage, SourceReport};
use crate::store::{Name, SpanNumber, Store};

/// Most stages that are listed.
const MOST: usize = 1000;
/// Most processes that are named for a stage.
const PROCESSES: usize = 8;
/// What a span says that lies elsewhere than where its stage is declared to.
const MISPLACED: &str = "stagetrace.misplaced";

/// Every stage that is declared or was executed.
#[derive(Debug, Serialize)]
pub(crate) struct Catalogue {
    /// Whether a recording says which stages there could be.
    is_declared: bool,
    /// How many there are, of which the first are listed.
    count: usize,
    /// Declared ones in the order of their declaration, then the others by name.
    stages: Vec<Entry>,
}

/// A stage as it is declared and as it went.
#[derive(Debug, Default, Serialize)]
struct Entry {
    stage: String,
    is_declared: bool,
    set: Option<String>,
    level: Option<u8>,
    within: Option<String>,
    /// Its ended spans; `null` if there are none.
    row: Option<StageRow>,
    self_ns: Option<String>,
    spread: Option<Spread>,
    /// Spans that are open now.
    open: u64,
    /// Ended spans that lie elsewhere than declared.
    misplaced: u64,
    /// Processes in which it was executed, and the first of them.
    processes: usize,
    process_names: Vec<String>,
}

/// How durations spread: a bar for each half of a power of two.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    /// Nanoseconds at which the first bar begins; each next one begins √2 times later.
    from_ns: f64,
    bars: Vec<u32>,
}

/// Counts durations for a spread.
pub(super) struct Spreading([u32; 128]);

impl Default for Spreading {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl Spreading {
    pub(super) fn add(&mut self, duration: u64) {
        self.0[half_power(duration)] += 1;
    }

    /// `None` if nothing was counted.
    pub(super) fn spread(&self) -> Option<Spread> {
        let first = self.0.iter().position(|count| *count > 0)?;
        let last = self.0.iter().rposition(|count| *count > 0)?;
        Some(Spread { from_ns: (first as f64 / 2.0).exp2(), bars: self.0[first..=last].to_vec() })
    }
}

/// What is counted of a stage beside its ended spans.
#[derive(Default)]
struct Seen {
    spread: Spreading,
    open: u64,
    misplaced: u64,
    processes: HashSet<usize>,
}

impl Catalogue {
    /// # Errors
    /// If no sample is of the step.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        report: &SourceReport,
        step: &StepChoice,
    ) -> Result<Self, UnknownStep> {
        let step = choose(store, &steps(store, samples), step)?;
        let is_chosen = |sample: &Sample| step.is_none() || sample.step == step;
        let (processes, owners) = names(&store.origins());
        let misplaced = store.find_name(MISPLACED);
        let mut seen: HashMap<Name, Seen> = HashMap::new();
        for number in (0..store.stats().spans as u32).map(SpanNumber) {
            let record = store.record(number);
            if !samples.of_span(store, number).is_some_and(is_chosen) {
                continue;
            }
            let seen = seen.entry(record.stage).or_default();
            seen.processes.insert(owners.of(record));
            if record.is_finished() {
                seen.spread.add(record.duration());
                let is_misplaced = |key| store.attribute(number, &[key]).is_some();
                seen.misplaced += u64::from(misplaced.is_some_and(is_misplaced));
            } else if record.is_open() && !record.is_lost {
                seen.open += 1;
            }
        }
        let seen: BTreeMap<String, Seen> =
            seen.into_iter().map(|(name, seen)| (store.text(name), seen)).collect();
        let mut entries = declared(report);
        let is_declared = !entries.is_empty();
        let rows: HashMap<_, _> =
            Stages::new(store, samples, is_chosen).into_sorted(store).into_iter().collect();
        let known: HashSet<String> = entries.iter().map(|entry| entry.stage.clone()).collect();
        let others = seen.keys().chain(rows.keys()).filter(|name| !known.contains(*name));
        let others: std::collections::BTreeSet<String> = others.cloned().collect();
        entries.extend(others.into_iter().map(|stage| Entry { stage, ..Entry::default() }));
        let mut rows = rows;
        for entry in &mut entries {
            if let Some(stage) = rows.remove(&entry.stage) {
                entry.self_ns = Some(number(stage.self_ns));
                entry.row = Some(stage.into_row(store, entry.stage.clone()));
            }
            if let Some(seen) = seen.get(&entry.stage) {
                entry.spread = seen.spread.spread();
                (entry.open, entry.misplaced) = (seen.open, seen.misplaced);
                entry.processes = seen.processes.len();
                let mut named: Vec<_> =
                    seen.processes.iter().map(|place| processes[*place].1.clone()).collect();
                named.sort();
                named.truncate(PROCESSES);
                entry.process_names = named;
            }
        }
        let count = entries.len();
        entries.truncate(MOST);
        Ok(Self { is_declared, count, stages: entries })
    }
}

/// Stages that recordings declare, each once.
fn declared(report: &SourceReport) -> Vec<Entry> {
    let mut known = HashSet::new();
    let stages = report.recordings.iter().flat_map(|recording| &recording.stages);
    let new = stages.filter(|stage| known.insert(stage.name.as_str()));
    let entry = |stage: &DeclaredStage| Entry {
        stage: stage.name.clone(),
        is_declared: true,
        set: Some(stage.set.clone()).filter(|set| !set.is_empty()),
        level: Some(stage.level),
        within: stage.within.clone(),
        ..Entry::default()
    };
    new.map(entry).collect()
}
