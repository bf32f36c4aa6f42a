//! How long spans of a stage may be open before they count as stuck.

use hashbrown::{HashMap, HashSet};

use crate::rules::{Sample, Samples, StuckRule};
use crate::store::{Ident, Name, Store};

/// The limits of the stages in which samples are now.
#[derive(Debug, Default)]
pub(super) struct Limits {
    by_stage: HashMap<(Option<Ident>, Name), u64>,
    is_by_step: bool,
}

impl Limits {
    /// Judges by the spans of a step, or by all.
    pub(super) fn of_step(
        store: &Store,
        samples: &Samples,
        rule: StuckRule,
        step: Option<Ident>,
    ) -> Self {
        let stages = samples.open(step).filter_map(|row| row.current().map(|(_, stage)| stage));
        let mut limits = Self::default();
        limits.add(store, samples, rule, step, None, &stages.collect());
        limits
    }

    /// Judges each sample by the spans of its step.
    pub(super) fn of_each_step(store: &Store, samples: &Samples, rule: StuckRule) -> Self {
        let mut stages: HashMap<Option<Ident>, HashSet<Name>> = HashMap::new();
        for row in samples.open(None) {
            if let Some((_, stage)) = row.current() {
                stages.entry(row.step(store)).or_default().insert(stage);
            }
        }
        let mut limits = Self { is_by_step: true, ..Self::default() };
        for (step, stages) in &stages {
            limits.add(store, samples, rule, *step, *step, stages);
        }
        limits
    }

    fn add(
        &mut self,
        store: &Store,
        samples: &Samples,
        rule: StuckRule,
        step: Option<Ident>,
        key: Option<Ident>,
        stages: &HashSet<Name>,
    ) {
        if stages.is_empty() {
            return;
        }
        let totals = samples.totals(store, step);
        for stage in stages {
            let durations = totals.stages.get(stage).map(|stage| &stage.durations);
            let limit = durations.and_then(|all| rule.threshold(all.len(), all.percentile(50)));
            self.by_stage.extend(limit.map(|limit| ((key, *stage), limit)));
        }
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
