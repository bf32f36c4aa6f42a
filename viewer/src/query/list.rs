//! Samples that a search finds, page by page.

use std::hash::Hash;

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value as Json;

use super::json::{ident, number};
use super::order::{Column, Found, part_in_order};
use super::samples::Row;
use super::search::{Finder, Search};
use super::stuck::Limits;
use super::summary::{StepChoice, UnknownStep, choose};
use crate::rules::{Sample, Samples, Status, StuckRule, order};
use crate::store::{Ident, Name, Store};

/// Most values of a facet.
const VALUES: usize = 12;

/// Which samples, and which of them.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub(crate) search: Search,
    pub(crate) step: StepChoice,
    pub(crate) sort: Column,
    pub(crate) is_descending: bool,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    pub(crate) now: u64,
    pub(crate) stuck: StuckRule,
}

/// A page of samples, and what is known of all that were found.
#[derive(Debug, Serialize)]
pub(crate) struct List {
    now_unix_nano: String,
    /// Samples of the step.
    total: usize,
    /// Those of them that the search finds.
    matched: usize,
    /// Nanoseconds of the longest of these, open ones included.
    longest_ns: String,
    offset: usize,
    rows: Vec<Row>,
    facets: Facets,
    /// Spans whose attributes were asked for, and are not in memory.
    unsearched_spans: usize,
}

/// How many of the samples that were found have what; the most frequent first.
#[derive(Debug, Serialize)]
struct Facets {
    statuses: Vec<(String, usize)>,
    /// The stages in which open ones are.
    stages: Vec<(String, usize)>,
    error_stages: Vec<(String, usize)>,
    /// The last steps, in order.
    steps: Vec<(Json, usize)>,
    open: usize,
    stuck: usize,
    error: usize,
    left_open: usize,
    root_missing: usize,
}

#[derive(Default)]
struct Counts {
    statuses: HashMap<Status, usize>,
    stages: HashMap<Name, usize>,
    error_stages: HashMap<Name, usize>,
    steps: HashMap<Ident, usize>,
    open: usize,
    stuck: usize,
    error: usize,
    left_open: usize,
    root_missing: usize,
    longest: u64,
}

impl List {
    /// Finds. Takes time in proportion to the samples, and to the spans for some terms.
    ///
    /// # Errors
    /// If no sample is of the step.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        options: &ListOptions,
    ) -> Result<Self, UnknownStep> {
        let step = choose(store, samples.steps(), &options.step)?;
        let now = options.now;
        let limits = Limits::of_step(store, samples, options.stuck, step);
        let mut finder = Finder::new(store, samples, &limits, now, &options.search);
        let (mut found, mut counts, mut total) = (Vec::new(), Counts::default(), 0);
        let (mut last, mut place) = (None, 0);
        for (at, row) in samples.rows().enumerate() {
            place = if last == Some(row.trace()) { place + 1 } else { 0 };
            last = Some(row.trace());
            if step.is_some() && row.step(store) != step {
                continue;
            }
            total += 1;
            let sample = row.sample(store);
            if finder.finds(&sample, at, place) {
                let value = options.sort.value(&sample, now);
                found.push(Found { value, trace: sample.trace, place: place as u32 });
                counts.add(store, &sample, &limits, now);
            }
        }
        let page =
            part_in_order(store, &found, options.is_descending, options.offset, options.limit);
        let rows = page.iter().filter_map(|found| {
            let sample = samples.rows_of(found.trace).nth(found.place as usize)?.sample(store);
            Some(Row::whole(store, samples, &sample, now, &limits))
        });
        Ok(Self {
            now_unix_nano: number(now),
            total,
            matched: found.len(),
            longest_ns: number(counts.longest),
            offset: options.offset,
            rows: rows.collect(),
            facets: counts.into_facets(store),
            unsearched_spans: finder.unsearched(),
        })
    }
}

impl Counts {
    fn add(&mut self, store: &Store, sample: &Sample, limits: &Limits, now: u64) {
        *self.statuses.entry(sample.status).or_default() += 1;
        if let Some(step) = sample.step {
            *self.steps.entry(step).or_default() += 1;
        }
        if let Some(current) = sample.current.filter(|_| sample.is_open) {
            *self.stages.entry(current.stage).or_default() += 1;
        }
        if let Some(error) = sample.error {
            *self.error_stages.entry(store.stage(error)).or_default() += 1;
            self.error += 1;
        }
        self.open += usize::from(sample.is_open);
        self.stuck += usize::from(limits.is_stuck(sample, now));
        let age = sample.start.filter(|_| sample.is_open).map(|start| now.saturating_sub(start));
        self.longest = self.longest.max(sample.duration.or(age).unwrap_or(0));
        self.left_open += usize::from(!sample.left_open.is_empty());
        self.root_missing += usize::from(sample.result_not_exported || sample.root.is_none());
    }

    fn into_facets(self, store: &Store) -> Facets {
        let mut steps: Vec<_> = self.steps.into_iter().collect();
        steps.sort_by_cached_key(|(step, _)| order(store, *step));
        let steps = steps.split_off(steps.len().saturating_sub(VALUES));
        Facets {
            statuses: frequent(self.statuses, |status| status.text(store)),
            stages: frequent(self.stages, |stage| store.text(stage)),
            error_stages: frequent(self.error_stages, |stage| store.text(stage)),
            steps: steps.into_iter().map(|(step, n)| (ident(store, Some(step)), n)).collect(),
            open: self.open,
            stuck: self.stuck,
            error: self.error,
            left_open: self.left_open,
            root_missing: self.root_missing,
        }
    }
}

fn frequent<K: Eq + Hash>(
    counts: HashMap<K, usize>,
    text: impl Fn(K) -> String,
) -> Vec<(String, usize)> {
    let mut all: Vec<_> = counts.into_iter().map(|(key, count)| (text(key), count)).collect();
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    all.truncate(VALUES);
    all
}
