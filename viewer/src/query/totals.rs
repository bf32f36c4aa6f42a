//! Samples added up: of a step, of a group.

use std::collections::BTreeMap;

use serde::Serialize;

use super::course::extent;
use super::json::number;
use super::rank::percentile;
use super::stuck::Limits;
use crate::rules::{Sample, Status};
use crate::store::Store;

/// Samples added up. Percentiles are those of ended samples, by nearest rank.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Totals {
    samples: usize,
    open: usize,
    stuck: usize,
    lost: usize,
    /// Samples in which something went wrong.
    errors: usize,
    /// The worst of them.
    status: String,
    statuses: BTreeMap<String, usize>,
    from_unix_nano: Option<String>,
    /// When the last one ended; now, if one is open.
    until_unix_nano: Option<String>,
    /// From the begin of the first to the end of the last.
    wall_ns: Option<String>,
    min_ns: Option<String>,
    p50_ns: Option<String>,
    p90_ns: Option<String>,
    p99_ns: Option<String>,
    max_ns: Option<String>,
    /// The longest, open ones included.
    longest_ns: Option<String>,
    /// How many times the median the longest takes.
    tail: Option<f64>,
    reward: Rewards,
    prompt_tokens: i64,
    completion_tokens: i64,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Rewards {
    count: usize,
    sum: f64,
    passed: usize,
    min: Option<f64>,
    max: Option<f64>,
}

/// Adds samples up.
#[derive(Debug, Default)]
pub(super) struct Tally {
    open: usize,
    stuck: usize,
    lost: usize,
    errors: usize,
    statuses: Vec<(Status, usize)>,
    durations: Vec<u64>,
    from: Option<u64>,
    until: u64,
    longest: u64,
    rewards: Vec<f64>,
    passed: usize,
    prompt_tokens: i64,
    completion_tokens: i64,
}

impl Tally {
    pub(super) fn add(&mut self, store: &Store, limits: &Limits, sample: &Sample, now: u64) {
        self.open += usize::from(sample.is_open);
        self.stuck += usize::from(limits.is_stuck(sample, now));
        self.lost += usize::from(sample.status == Status::Lost);
        self.errors += usize::from(sample.error.is_some());
        match self.statuses.iter_mut().find(|(status, _)| *status == sample.status) {
            Some((_, count)) => *count += 1,
            None => self.statuses.push((sample.status, 1)),
        }
        self.durations.extend(sample.duration);
        if let Some((start, end)) = extent(store, sample, now) {
            self.from = Some(self.from.map_or(start, |from| from.min(start)));
            self.until = self.until.max(end);
            self.longest = self.longest.max(end - start);
        }
        self.rewards.extend(sample.reward());
        self.passed += usize::from(sample.passed() == Some(true));
        let tokens = |tokens: Option<i64>| tokens.unwrap_or(0);
        self.prompt_tokens = self.prompt_tokens.saturating_add(tokens(sample.prompt_tokens()));
        self.completion_tokens =
            self.completion_tokens.saturating_add(tokens(sample.completion_tokens()));
    }

    pub(super) fn samples(&self) -> usize {
        self.statuses.iter().map(|(_, count)| count).sum()
    }

    pub(super) fn from(&self) -> Option<u64> {
        self.from
    }

    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// How many times the median the longest takes.
    pub(super) fn tail(&mut self) -> Option<f64> {
        let median = percentile(&mut self.durations, 50).filter(|median| *median > 0)?;
        Some(self.longest as f64 / median as f64)
    }

    pub(super) fn mean_reward(&self) -> Option<f64> {
        (!self.rewards.is_empty())
            .then(|| self.rewards.iter().sum::<f64>() / self.rewards.len() as f64)
    }

    pub(super) fn into_totals(mut self, store: &Store) -> Totals {
        // In one order, so that the sum does not depend on that of the files.
        self.rewards.sort_by(f64::total_cmp);
        let tail = self.tail();
        let mut rank = |hundredths| percentile(&mut self.durations, hundredths).map(number);
        let [min_ns, p50_ns, p90_ns, p99_ns, max_ns] = [0, 50, 90, 99, 100].map(&mut rank);
        let worst = self.statuses.iter().map(|(status, _)| *status).min_by_key(|one| badness(*one));
        let statuses = self.statuses.iter().map(|(status, count)| (status.text(store), *count));
        Totals {
            samples: self.samples(),
            open: self.open,
            stuck: self.stuck,
            lost: self.lost,
            errors: self.errors,
            status: worst.map_or_else(String::new, |status| status.text(store)),
            statuses: statuses.collect(),
            from_unix_nano: self.from.map(number),
            until_unix_nano: self.from.map(|_| number(self.until)),
            wall_ns: self.from.map(|from| number(self.until.saturating_sub(from))),
            min_ns,
            p50_ns,
            p90_ns,
            p99_ns,
            max_ns,
            longest_ns: self.from.map(|_| number(self.longest)),
            tail,
            reward: Rewards {
                count: self.rewards.len(),
                sum: self.rewards.iter().sum(),
                passed: self.passed,
                min: self.rewards.first().copied(),
                max: self.rewards.last().copied(),
            },
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
        }
    }
}

/// The less, the worse: a group is as bad as its worst sample.
fn badness(status: Status) -> u8 {
    const WORST_FIRST: [Status; 11] = [
        Status::Lost,
        Status::Failed,
        Status::Aborted,
        Status::Expired,
        Status::Filtered,
        Status::Cancelled,
        Status::Init,
        Status::Unknown,
        Status::Running,
        Status::Completed,
        Status::Archived,
    ];
    let place = WORST_FIRST.iter().position(|one| *one == status);
    // Another word is no worse than what is not known.
    place.unwrap_or(7) as u8
}
