//! How long spans of a stage may be open before they count as stuck.

use hashbrown::HashMap;

use super::rank::percentile;
use crate::rules::{Sample, Samples, StuckRule};
use crate::store::{Ident, Name, SpanNumber, Store};

/// The limits of the stages in which samples are now.
#[derive(Debug, Default)]
pub(super) struct Limits {
    by_stage: HashMap<(Option<Ident>, Name), u64>,
    is_by_step: bool,
}

impl Limits {
    /// Judges by the spans of the samples that are chosen; if `is_by_step`, by those of the same step.
    /// Looks at all spans, if a sample is open at all.
    pub(super) fn new(
        store: &Store,
        samples: &Samples,
        rule: StuckRule,
        is_by_step: bool,
        is_chosen: impl Fn(&Sample) -> bool,
    ) -> Self {
        let mut durations: HashMap<(Option<Ident>, Name), Vec<u64>> = HashMap::new();
        let mut stages = hashbrown::HashSet::new();
        for sample in samples.iter().filter(|sample| sample.is_open && is_chosen(sample)) {
            if let Some(current) = sample.current {
                stages.insert(current.stage);
                let step = sample.step.filter(|_| is_by_step);
                durations.entry((step, current.stage)).or_default();
            }
        }
        if stages.is_empty() {
            return Self::default();
        }
        for number in (0..store.stats().spans as u32).map(SpanNumber) {
            let record = store.record(number);
            if !record.is_finished() || !stages.contains(&record.stage) {
                continue;
            }
            let Some(sample) = samples.of_span(store, number).filter(|s| is_chosen(s)) else {
                continue;
            };
            let step = sample.step.filter(|_| is_by_step);
            if let Some(durations) = durations.get_mut(&(step, record.stage)) {
                durations.push(record.duration());
            }
        }
        let by_stage = durations.into_iter().filter_map(|(stage, mut durations)| {
            let median = percentile(&mut durations, 50)?;
            Some((stage, rule.threshold(durations.len(), median)?))
        });
        Self { by_stage: by_stage.collect(), is_by_step }
    }

    /// Nanoseconds beyond which an open sample is stuck in its stage, if that can be said.
    pub(super) fn of(&self, sample: &Sample) -> Option<u64> {
        let current = sample.current.filter(|_| sample.is_open)?;
        let step = sample.step.filter(|_| self.is_by_step);
        self.by_stage.get(&(step, current.stage)).copied()
    }

    /// Whether a sample is stuck.
    pub(super) fn is_stuck(&self, sample: &Sample, now: u64) -> bool {
        let age = sample.current.map_or(0, |current| now.saturating_sub(current.since));
        self.of(sample).is_some_and(|limit| age > limit)
    }
}
