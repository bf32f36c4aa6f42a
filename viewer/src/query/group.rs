//! Samples of one group, side by side.

use serde::Serialize;
use serde_json::Value as Json;

use super::json::{ident, number};
use super::samples::Row;
use super::stuck::Limits;
use super::totals::{Tally, Totals};
use crate::rules::{Sample, Samples, StuckRule, order, shown};
use crate::store::{Ident, Store};

/// Most samples that are shown.
const MOST: usize = 500;

/// A group.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    now_unix_nano: String,
    group_id: Json,
    step: Json,
    /// Other steps that have a group of this name.
    other_steps: Vec<Json>,
    #[serde(flatten)]
    totals: Totals,
    /// Its samples in order of their begin, at most 500.
    rows: Vec<Row>,
}

/// A group that no sample is of.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum UnknownGroup {
    #[error("no sample is of group {0}; the page of samples finds them by `group:`")]
    Nowhere(String),
    #[error("no sample of step {step} is of group {group}; that group is in step {}", steps.join(", "))]
    NotInStep { group: String, step: String, steps: Vec<String> },
}

impl Group {
    /// A group by its name and that of its step; without one it is the group of the last step that has
    /// such a group.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        group: &str,
        step: Option<&str>,
        now: u64,
        stuck: StuckRule,
    ) -> Result<Self, UnknownGroup> {
        let of_group = samples
            .rows()
            .filter(|row| row.group(store).is_some_and(|id| is_shown_as(store, id, group)));
        let mut of_group: Vec<Sample> = of_group.map(|row| row.sample(store)).collect();
        let Some(id) = of_group.first().and_then(|sample| sample.group) else {
            return Err(UnknownGroup::Nowhere(group.to_owned()));
        };
        let mut steps: Vec<Ident> = of_group.iter().filter_map(|sample| sample.step).collect();
        steps.sort_by_cached_key(|step| order(store, *step));
        steps.dedup();
        let chosen = match step {
            None => steps.last().copied(),
            Some(step) => {
                let found = steps.iter().find(|id| is_shown_as(store, **id, step));
                Some(*found.ok_or_else(|| UnknownGroup::NotInStep {
                    group: group.to_owned(),
                    step: step.to_owned(),
                    steps: steps.iter().map(|id| shown(store, *id)).collect(),
                })?)
            }
        };
        of_group.retain(|sample| sample.step == chosen);
        of_group.sort_by_key(|sample| (sample.start.unwrap_or(u64::MAX), sample.trace));
        let limits = Limits::of_step(store, samples, stuck, chosen);
        let mut tally = Tally::default();
        of_group.iter().for_each(|sample| tally.add(store, &limits, sample, now));
        let rows = of_group.iter().take(MOST);
        let rows = rows.map(|sample| Row::whole(store, samples, sample, now, &limits));
        let others = steps.iter().filter(|step| Some(**step) != chosen);
        Ok(Self {
            now_unix_nano: number(now),
            group_id: ident(store, Some(id)),
            step: ident(store, chosen),
            other_steps: others.map(|step| ident(store, Some(*step))).collect(),
            rows: rows.collect(),
            totals: tally.into_totals(store),
        })
    }
}

fn is_shown_as(store: &Store, id: Ident, text: &str) -> bool {
    match id {
        Ident::Int(value) => text.parse() == Ok(value),
        Ident::Text(name) => store.with_text(name, |name| name == text),
    }
}
