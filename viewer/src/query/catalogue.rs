//! Stages: every one that could be there beside those that are.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use serde::Serialize;

use super::json::number;
use super::processes::names;
use super::spread::Spread;
use super::stages::StageRow;
use super::summary::{StepChoice, UnknownStep, choose};
use crate::rules::{SampleRow, Samples};
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

/// What is counted of a stage beside its ended spans.
#[derive(Default)]
struct Seen {
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
        let step = choose(store, samples.steps(), step)?;
        let is_chosen = |sample: SampleRow<'_>| step.is_none() || sample.step(store) == step;
        let (processes, owners) = names(&store.origins());
        let misplaced = store.find_name(MISPLACED);
        let mut seen: HashMap<Name, Seen> = HashMap::new();
        for number in (0..store.stats().spans as u32).map(SpanNumber) {
            let record = store.record(number);
            if !samples.row_of_span(store, number).is_some_and(is_chosen) {
                continue;
            }
            let seen = seen.entry(record.stage).or_default();
            seen.processes.insert(owners.of(&record));
            if record.is_finished() {
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
        let totals = samples.totals(store, step);
        let stages = totals.stages.iter().filter(|(_, totals)| !totals.is_empty());
        let totals: HashMap<String, _> =
            stages.map(|(name, totals)| (store.text(*name), totals)).collect();
        let known: HashSet<String> = entries.iter().map(|entry| entry.stage.clone()).collect();
        let others = seen.keys().chain(totals.keys()).filter(|name| !known.contains(*name));
        let others: std::collections::BTreeSet<String> = others.cloned().collect();
        entries.extend(others.into_iter().map(|stage| Entry { stage, ..Entry::default() }));
        for entry in &mut entries {
            if let Some(totals) = totals.get(&entry.stage) {
                entry.self_ns = Some(number(totals.self_ns));
                entry.spread = Spread::of(&totals.durations.to_vec());
                entry.row = Some(StageRow::new(store, entry.stage.clone(), totals).shortened());
            }
            if let Some(seen) = seen.get(&entry.stage) {
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
