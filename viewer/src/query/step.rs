//! One step: its groups, what was going on at each time, and what held it up.

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value as Json;

use super::course::extent;
use super::flow::Flow;
use super::json::{ident, number};
use super::rank::percentile;
use super::samples::Row;
use super::stuck::Limits;
use super::summary::{StepChoice, UnknownStep, choose};
use super::totals::{Tally, Totals};
use crate::rules::{Sample, Samples, StuckRule, order as order_of};
use crate::store::{Ident, Store};

/// Most groups that are shown.
const GROUPS: usize = 500;
/// Most samples that held it up.
const STRAGGLERS: usize = 12;

/// One step, or all samples where there are no steps.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    now_unix_nano: String,
    step: Json,
    previous: Json,
    next: Json,
    #[serde(flatten)]
    totals: Totals,
    groups: usize,
    /// The groups, at most 500.
    rows: Vec<GroupRow>,
    flow: Option<Flow>,
    ending: Option<Ending>,
    /// Those that ended last, the last first, open ones before all.
    stragglers: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct GroupRow {
    group_id: Json,
    #[serde(flatten)]
    totals: Totals,
}

/// How long the last samples took.
#[derive(Debug, Serialize)]
struct Ending {
    /// Nanoseconds from the begin of the step until so many of a hundred samples had ended.
    ended: Vec<(usize, String)>,
    /// Samples of the last twentieth.
    last_samples: usize,
    /// The part of the step's time in which only these ran.
    last_share: f64,
}

/// What groups are sorted by; the greatest first but for their id and begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GroupOrder {
    #[default]
    Longest,
    Tail,
    Start,
    Group,
    Reward,
}

const ORDERS: [(&str, GroupOrder); 5] = [
    ("longest", GroupOrder::Longest),
    ("tail", GroupOrder::Tail),
    ("start", GroupOrder::Start),
    ("group", GroupOrder::Group),
    ("reward", GroupOrder::Reward),
];

/// An order that there is not.
#[derive(Clone, Debug, thiserror::Error)]
#[error("groups are not sorted by `{0}`; they are by {names}", names = ORDERS.map(|(name, _)| name).join(", "))]
pub(crate) struct UnknownOrder(String);

impl GroupOrder {
    pub(crate) fn of(word: &str) -> Result<Self, UnknownOrder> {
        let found = ORDERS.iter().find(|(name, _)| *name == word);
        found.map(|(_, order)| *order).ok_or_else(|| UnknownOrder(word.to_owned()))
    }
}

impl Step {
    /// Takes time in proportion to all samples, and to the spans of the step.
    ///
    /// # Errors
    /// If no sample is of the step.
    pub(crate) fn new(
        store: &Store,
        samples: &Samples,
        choice: &StepChoice,
        order: GroupOrder,
        now: u64,
        stuck: StuckRule,
    ) -> Result<Self, UnknownStep> {
        let available = samples.steps();
        let step = choose(store, available, choice)?;
        let limits = Limits::of_step(store, samples, stuck, step);
        let mut chosen: Vec<(Sample, usize)> = Vec::new();
        let (mut last, mut place) = (None, 0);
        for row in samples.rows() {
            place = if last == Some(row.trace()) { place + 1 } else { 0 };
            last = Some(row.trace());
            if step.is_none() || row.step(store) == step {
                chosen.push((row.sample(store), place));
            }
        }
        let mut tally = Tally::default();
        let mut groups: HashMap<Ident, Tally> = HashMap::new();
        for (sample, _) in &chosen {
            tally.add(store, &limits, sample, now);
            if let Some(group) = sample.group {
                groups.entry(group).or_default().add(store, &limits, sample, now);
            }
        }
        let flow = Flow::new(store, samples, &chosen, now);
        let ending = ending(store, &chosen, now);
        let stragglers = stragglers(store, chosen, now);
        let stragglers =
            stragglers.into_iter().map(|sample| Row::whole(store, samples, &sample, now, &limits));
        let at = available.iter().position(|one| Some(*one) == step);
        let neighbour =
            |at: Option<usize>| ident(store, at.and_then(|at| available.get(at).copied()));
        Ok(Self {
            now_unix_nano: number(now),
            step: ident(store, step),
            previous: neighbour(at.and_then(|at| at.checked_sub(1))),
            next: neighbour(at.map(|at| at + 1)),
            groups: groups.len(),
            rows: rows(store, groups, order),
            flow,
            ending,
            stragglers: stragglers.collect(),
            totals: tally.into_totals(store),
        })
    }
}

fn rows(store: &Store, groups: HashMap<Ident, Tally>, order: GroupOrder) -> Vec<GroupRow> {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_cached_key(|(group, _)| order_of(store, *group));
    // The order above decides between equals.
    match order {
        GroupOrder::Group => {}
        GroupOrder::Longest => groups.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.longest())),
        GroupOrder::Start => groups.sort_by_key(|(_, tally)| tally.from().unwrap_or(u64::MAX)),
        GroupOrder::Tail => sort_by_number(&mut groups, Tally::tail),
        GroupOrder::Reward => sort_by_number(&mut groups, |tally| tally.mean_reward()),
    }
    groups.truncate(GROUPS);
    let rows = groups.into_iter().map(|(group, tally)| GroupRow {
        group_id: ident(store, Some(group)),
        totals: tally.into_totals(store),
    });
    rows.collect()
}

/// The greatest first; those without a number last.
fn sort_by_number(groups: &mut Vec<(Ident, Tally)>, number: impl Fn(&mut Tally) -> Option<f64>) {
    let keyed = groups.drain(..).map(|(group, mut tally)| (number(&mut tally), group, tally));
    let mut keyed: Vec<_> = keyed.collect();
    keyed.sort_by(|(one, ..), (other, ..)| {
        let number = |value: &Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
        number(other).total_cmp(&number(one))
    });
    groups.extend(keyed.into_iter().map(|(_, group, tally)| (group, tally)));
}

fn ending(store: &Store, chosen: &[(Sample, usize)], now: u64) -> Option<Ending> {
    let extents: Vec<_> =
        chosen.iter().filter_map(|(sample, _)| extent(store, sample, now)).collect();
    let from = extents.iter().map(|(start, _)| *start).min()?;
    let mut ends: Vec<u64> = extents.iter().map(|(_, end)| end - from).collect();
    let mut after = |hundredths| percentile(&mut ends, hundredths).unwrap_or(0);
    let ended = [50, 90, 95, 99, 100].map(|hundredths| (hundredths, after(hundredths)));
    let (most, all) = (after(95), after(100));
    Some(Ending {
        ended: ended.into_iter().map(|(hundredths, ns)| (hundredths, number(ns))).collect(),
        last_samples: ends.len() - (ends.len() * 95).div_ceil(100),
        last_share: if all > 0 { (all - most) as f64 / all as f64 } else { 0.0 },
    })
}

fn stragglers(store: &Store, chosen: Vec<(Sample, usize)>, now: u64) -> Vec<Sample> {
    let ends = chosen.into_iter().filter_map(|(sample, _)| {
        let (start, end) = extent(store, &sample, now)?;
        // The open ones by their age.
        let end =
            if sample.is_open { (u64::MAX, now - start.min(now)) } else { (end, end - start) };
        Some((std::cmp::Reverse(end), sample.trace, sample))
    });
    let mut ends: Vec<_> = ends.collect();
    let key = |(end, trace, _): &(std::cmp::Reverse<(u64, u64)>, _, Sample)| (*end, *trace);
    if ends.len() > STRAGGLERS {
        ends.select_nth_unstable_by_key(STRAGGLERS, key);
        ends.truncate(STRAGGLERS);
    }
    ends.sort_by_key(key);
    ends.into_iter().map(|(.., sample)| sample).collect()
}
