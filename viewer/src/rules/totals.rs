//! What samples and spans add up to, kept up to date by what changes.

use std::hash::Hash;

use hashbrown::HashMap;

use super::row::SampleRow;
use super::sorted::Sorted;
use super::status::Status;
use crate::store::{Failure, Ident, Name, Record, Store};

/// Sums over samples and their ended spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) samples: usize,
    pub(crate) statuses: HashMap<Status, usize>,
    /// Samples of each group, which is one of its step.
    pub(crate) groups: HashMap<(Option<Ident>, Ident), usize>,
    pub(crate) finished_spans: u64,
    pub(crate) left_open: usize,
    pub(crate) result_not_exported: usize,
    pub(crate) passed: usize,
    /// Samples of each reward, by its bits.
    rewards: HashMap<u64, usize>,
    /// Ended spans and errors by stage. Stages that have neither any more may be there.
    pub(crate) stages: HashMap<Name, StageTotals>,
}

/// Sums over the ended spans of a stage, and the errors that arose in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageTotals {
    /// Nanoseconds of each span.
    pub(crate) durations: Sorted,
    pub(crate) sum_ns: u128,
    pub(crate) self_ns: u128,
    /// Spans of each name.
    pub(crate) names: HashMap<Name, usize>,
    /// Samples in which each failure arose.
    pub(crate) failures: HashMap<Failure, usize>,
}

/// Whether something comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Remove,
}

impl Totals {
    /// Counts a sample; `error` is the record of the span in which what went wrong arose.
    pub(super) fn sample(
        &mut self,
        change: Change,
        store: &Store,
        sample: SampleRow<'_>,
        error: Option<&Record>,
    ) {
        change.count(&mut self.samples, 1);
        change.count_of(&mut self.statuses, sample.status());
        if let Some(group) = sample.group(store) {
            change.count_of(&mut self.groups, (sample.step(store), group));
        }
        match change {
            Change::Add => self.finished_spans += u64::from(sample.finished_spans()),
            Change::Remove => self.finished_spans -= u64::from(sample.finished_spans()),
        }
        change.count(&mut self.left_open, sample.left_open().len());
        change.count(&mut self.result_not_exported, sample.result_not_exported().into());
        let facts = sample.facts(store);
        change.count(&mut self.passed, (facts.pass() == Some(true)).into());
        if let Some(reward) = facts.reward() {
            change.count_of(&mut self.rewards, reward.to_bits());
        }
        if let Some(error) = error {
            let stage = self.stages.entry(error.stage).or_default();
            change.count_of(&mut stage.failures, store.failure_of(error));
        }
    }

    /// Counts an ended span of a sample.
    pub(super) fn span(&mut self, change: Change, record: &Record, self_ns: u64) {
        let stage = self.stages.entry(record.stage).or_default();
        let duration = record.duration();
        change.count_of(&mut stage.names, record.name);
        match change {
            Change::Add => {
                stage.durations.insert(duration);
                stage.sum_ns += u128::from(duration);
                stage.self_ns += u128::from(self_ns);
            }
            Change::Remove => {
                stage.durations.remove(duration);
                stage.sum_ns -= u128::from(duration);
                stage.self_ns -= u128::from(self_ns);
            }
        }
    }

    /// Counts an ended span that is what it was, but for its own time.
    pub(super) fn self_time(&mut self, record: &Record, before: u64, now: u64) {
        let stage = self.stages.entry(record.stage).or_default();
        stage.self_ns = stage.self_ns + u128::from(now) - u128::from(before);
    }

    /// Makes percentiles right after changes.
    pub(super) fn settle(&mut self) {
        self.stages.values_mut().for_each(|stage| stage.durations.settle());
    }

    /// How many samples got a reward, and the sum of all.
    pub(crate) fn rewards(&self) -> (usize, f64) {
        let mut rewards: Vec<(f64, usize)> =
            self.rewards.iter().map(|(bits, count)| (f64::from_bits(*bits), *count)).collect();
        // In one order, so that the sum does not depend on that of the files.
        rewards.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let each = rewards.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count));
        (self.rewards.values().sum(), each.sum())
    }

    /// Bytes of memory, about.
    pub(super) fn bytes(&self) -> usize {
        let stages = self.stages.values().map(|stage| {
            size_of::<(Name, StageTotals)>()
                + stage.durations.bytes()
                + table_bytes(&stage.names)
                + table_bytes(&stage.failures)
        });
        stages.sum::<usize>() + table_bytes(&self.groups) + table_bytes(&self.rewards)
    }
}

impl StageTotals {
    pub(crate) fn is_empty(&self) -> bool {
        self.durations.len() == 0 && self.failures.is_empty()
    }
}

impl Change {
    fn count(self, total: &mut usize, more: usize) {
        match self {
            Self::Add => *total += more,
            Self::Remove => *total -= more,
        }
    }

    fn count_of<K: Hash + Eq>(self, totals: &mut HashMap<K, usize>, key: K) {
        match self {
            Self::Add => *totals.entry(key).or_default() += 1,
            Self::Remove => {
                if let Some(count) = totals.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        totals.remove(&key);
                    }
                }
            }
        }
    }
}

/// Bytes of a table, about.
fn table_bytes<K, V>(table: &HashMap<K, V>) -> usize {
    table.capacity() * (size_of::<(K, V)>() + 1) * 8 / 7
}
