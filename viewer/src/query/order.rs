//! The order of samples by a column, and a part of it without sorting the rest.

use std::cmp::Ordering;
use std::hash::Hash;

use hashbrown::HashMap;

use crate::rules::{Sample, Status};
use crate::store::{Ident, Name, Store, TraceNumber};

/// What samples are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Start,
    Duration,
    Status,
    Stage,
    StageAge,
    Reward,
    Tokens,
    Spans,
    Attempt,
    Step,
    Group,
    Id,
}

const COLUMNS: [(&str, Column); 12] = [
    ("start", Column::Start),
    ("duration", Column::Duration),
    ("status", Column::Status),
    ("stage", Column::Stage),
    ("stage_age", Column::StageAge),
    ("reward", Column::Reward),
    ("tokens", Column::Tokens),
    ("spans", Column::Spans),
    ("attempt", Column::Attempt),
    ("step", Column::Step),
    ("group", Column::Group),
    ("id", Column::Id),
];

/// A column that there is not.
#[derive(Clone, Debug, thiserror::Error)]
#[error("there is no column `{0}` to sort by; there are {names}", names = COLUMNS.map(|(name, _)| name).join(", "))]
pub(crate) struct UnknownColumn(String);

impl Column {
    pub(crate) fn of(word: &str) -> Result<Self, UnknownColumn> {
        let found = COLUMNS.iter().find(|(name, _)| *name == word);
        found.map(|(_, column)| *column).ok_or_else(|| UnknownColumn(word.to_owned()))
    }

    /// What a sample has in this column.
    pub(super) fn value(self, sample: &Sample, now: u64) -> Value {
        let number = |value: Option<u64>| value.map_or(Value::None, Value::Number);
        let signed = |value: i64| Value::Number(ordered(value));
        let id = |ident: Option<Ident>| match ident {
            None => Value::None,
            Some(Ident::Int(value)) => signed(value),
            Some(Ident::Text(name)) => Value::Id(name),
        };
        let since = |at: u64| now.saturating_sub(at);
        match self {
            Self::Start => number(sample.start),
            Self::Duration => {
                let age = || sample.start.filter(|_| sample.is_open).map(since);
                number(sample.duration.or_else(age))
            }
            Self::Status => Value::Status(sample.status),
            Self::Stage => sample.current.map_or(Value::None, |current| Value::Text(current.stage)),
            Self::StageAge => number(sample.current.map(|current| since(current.since))),
            Self::Reward => sample.reward().map_or(Value::None, |reward| {
                let bits = reward.to_bits();
                Value::Number(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
            }),
            Self::Tokens => sample.completion_tokens().map_or(Value::None, signed),
            Self::Spans => Value::Number(sample.finished_spans.into()),
            Self::Attempt => id(sample.attempt),
            Self::Step => id(sample.step),
            Self::Group => id(sample.group),
            Self::Id => id(sample.rollout.or(sample.request.map(Ident::Text))),
        }
    }
}

/// What a sample has in a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// Comes last in both directions.
    None,
    Number(u64),
    /// A number if it reads as one.
    Id(Name),
    Text(Name),
    Status(Status),
}

/// A sample that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) trace: TraceNumber,
    /// Its place among those of its trace.
    pub(super) place: u32,
}

/// The samples from `offset` on, in order; those that are equal in the order in which they were met.
/// Takes time in proportion to all of them, and sorts no more than `limit`.
pub(super) fn part_in_order(
    store: &Store,
    found: &[Found],
    is_descending: bool,
    offset: usize,
    limit: usize,
) -> Vec<Found> {
    let place = |at: u32| found[at as usize];
    if let Some(mut keys) = numbers(store, found, is_descending) {
        let part = part(&mut keys, offset, limit, u128::cmp);
        return part.iter().map(|key| place(*key as u32)).collect();
    }
    store.with_texts(|texts| {
        let key = |value: Value| match value {
            Value::Number(number) => Some((number, "")),
            Value::Id(name) => {
                let text = texts.text(name);
                Some((text.parse().map_or(u64::MAX, ordered), text))
            }
            Value::None | Value::Text(_) | Value::Status(_) => None,
        };
        let keys = found.iter().zip(0..).map(|(one, at)| (key(one.value), at));
        let mut keys: Vec<Keyed<'_>> = keys.collect();
        let compare = |one: &Keyed<'_>, other: &Keyed<'_>| compare(one, other, is_descending);
        let part = part(&mut keys, offset, limit, compare);
        part.iter().map(|(_, at)| place(*at)).collect()
    })
}

/// Sorts what stands from `offset` on if all were sorted.
fn part<K>(
    keys: &mut [K],
    offset: usize,
    limit: usize,
    compare: impl Fn(&K, &K) -> Ordering,
) -> &mut [K] {
    let offset = offset.min(keys.len());
    if 0 < offset && offset < keys.len() {
        keys.select_nth_unstable_by(offset, &compare);
    }
    let mut rest = &mut keys[offset..];
    if limit < rest.len() {
        rest.select_nth_unstable_by(limit, &compare);
        rest = &mut rest[..limit];
    }
    rest.sort_unstable_by(compare);
    rest
}

/// Values and places as single numbers, which are fast to compare; `None` if some are texts that may
/// be many.
fn numbers(store: &Store, found: &[Found], is_descending: bool) -> Option<Vec<u128>> {
    let mut statuses = HashMap::new();
    let mut stages = HashMap::new();
    for one in found {
        match one.value {
            Value::Status(status) => _ = statuses.insert(status, 0),
            Value::Text(stage) => _ = stages.insert(stage, 0),
            _ => {}
        }
    }
    rank(&mut statuses, |status| status.text(store));
    rank(&mut stages, |stage| store.text(stage));
    let number = |value: Value| match value {
        Value::None => Some(None),
        Value::Number(number) => Some(Some(number)),
        Value::Id(name) => {
            store.with_text(name, |text| text.parse().ok().map(|number| Some(ordered(number))))
        }
        Value::Text(stage) => Some(stages.get(&stage).copied()),
        Value::Status(status) => Some(statuses.get(&status).copied()),
    };
    let keys = found.iter().zip(0_u128..).map(|(one, at)| {
        let key = number(one.value)?.map(|number| if is_descending { !number } else { number });
        Some(key.map_or(1 << 96, |key| u128::from(key) << 32) | at)
    });
    keys.collect()
}

/// Gives each key its place in the order of texts.
fn rank<K: Copy + Eq + Hash>(ranks: &mut HashMap<K, u64>, text: impl Fn(K) -> String) {
    let mut keys: Vec<_> = ranks.keys().map(|key| (text(*key), *key)).collect();
    keys.sort_by(|(one, _), (other, _)| one.cmp(other));
    keys.into_iter().zip(0..).for_each(|((_, key), rank)| _ = ranks.insert(key, rank));
}

/// Keeps the order of numbers.
fn ordered(number: i64) -> u64 {
    (number as u64) ^ (1 << 63)
}

type Keyed<'t> = (Option<(u64, &'t str)>, u32);

fn compare(one: &Keyed<'_>, other: &Keyed<'_>, is_descending: bool) -> Ordering {
    let by_key = match (&one.0, &other.0) {
        (Some(one), Some(other)) if is_descending => other.cmp(one),
        (Some(one), Some(other)) => one.cmp(other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    by_key.then(one.1.cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_of_any_size_give_the_same_order_as_one_page(
            values in prop::collection::vec(prop::option::of(0_u64..5), 0..40),
            size in 1_usize..7,
            is_descending: bool,
        ) {
            let store = Store::default();
            let found: Vec<_> = values.iter().zip(0..).map(|(value, place)| Found {
                value: value.map_or(Value::None, Value::Number),
                trace: TraceNumber(0),
                place,
            }).collect();
            let mut expected: Vec<_> = values.iter().zip(0_u32..).collect();
            expected.sort_by_key(|(value, place)| {
                let value = value.map(|value| if is_descending { 10 - value } else { value });
                (value.is_none(), value, *place)
            });
            let expected: Vec<_> = expected.into_iter().map(|(_, place)| place).collect();
            let mut paged = Vec::new();
            for offset in (0..values.len() + size).step_by(size) {
                let part = part_in_order(&store, &found, is_descending, offset, size);
                paged.extend(part.iter().map(|one| one.place));
            }
            prop_assert_eq!(paged, expected);
        }
    }
}
