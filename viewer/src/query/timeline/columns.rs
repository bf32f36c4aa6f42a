//! Spans as columns of numbers, which are smaller and faster to read than an object for each.

use hashbrown::HashMap;
use serde::Serialize;

use super::lanes::Lanes;
use super::order::Drawn;
use crate::rules::{Samples, waits};
use crate::store::{Name, Store};

/// A column; one value if all are the same.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Column<T> {
    Same(T),
    Each(Vec<T>),
}

impl<T: PartialEq + Copy> Column<T> {
    pub(super) fn new(values: Vec<T>) -> Self {
        match values.first() {
            Some(first) if values.iter().all(|value| value == first) => Self::Same(*first),
            _ => Self::Each(values),
        }
    }
}

/// What is marked at a span, as bits.
pub(super) mod mark {
    pub(crate) const OPEN: u32 = 1;
    /// It was open when its process died.
    pub(crate) const LOST: u32 = 2;
    /// It is known to have ended, and never came.
    pub(crate) const NEVER_CAME: u32 = 4;
    pub(crate) const FAILED: u32 = 8;
    /// Its parent is not told, but known from a live file.
    pub(crate) const GUESSED: u32 = 16;
    /// It has a parent that is not here.
    pub(crate) const PARENT_MISSING: u32 = 32;
    /// It waits, by its name.
    pub(crate) const WAITS: u32 = 64;
    /// It ran on a GPU.
    pub(crate) const GPU: u32 = 128;
    /// It links to other traces.
    pub(crate) const LINKS_AWAY: u32 = 256;
    /// It has no begin, and is drawn at the first of all.
    pub(crate) const NO_BEGIN: u32 = 512;
    /// It ends before it begins.
    pub(crate) const BACKWARD: u32 = 1024;
}

/// The spans, each behind its parent. Times are nanoseconds.
#[derive(Debug, Serialize)]
pub(super) struct Columns {
    count: usize,
    /// 16 hex digits each.
    ids: String,
    /// How many places before it its parent stands; 0 for none.
    up: Column<u32>,
    /// Begin, from that of its parent, or from `base_unix_nano` if it has none.
    start: Column<i64>,
    /// 0 of open ones, unless they were lost.
    duration: Column<u64>,
    /// How much of it its children cover.
    covered: Column<u64>,
    /// Places in `texts`.
    name: Column<u32>,
    stage: Column<u32>,
    process: Column<u32>,
    lane: Column<u32>,
    /// Row within the lane.
    row: Column<u32>,
    /// Which of the trace's samples it is of; -1 for none.
    sample: Column<i32>,
    kind: Column<u8>,
    marks: Column<u32>,
}

/// Texts by number, as they are needed.
#[derive(Debug, Default)]
pub(super) struct Texts {
    places: HashMap<Name, u32>,
    pub(super) texts: Vec<String>,
}

impl Texts {
    pub(super) fn place(&mut self, store: &Store, name: Name) -> u32 {
        *self.places.entry(name).or_insert_with(|| {
            self.texts.push(store.text(name));
            self.texts.len() as u32 - 1
        })
    }
}

impl Texts {
    /// The names among them whose texts are such.
    pub(super) fn named(&self, is_such: impl Fn(&str) -> bool) -> Vec<Name> {
        let such = self.places.iter().filter(|(_, at)| is_such(&self.texts[**at as usize]));
        such.map(|(name, _)| *name).collect()
    }
}

impl Columns {
    pub(super) fn new(
        store: &Store,
        samples: &Samples,
        spans: &[Drawn],
        covered: &[u64],
        base: u64,
        lanes: &Lanes,
        texts: &mut Texts,
    ) -> Self {
        let sample = |span: &Drawn| samples.place(span.number).map_or(-1, |place| place as i32);
        let start = |span: &Drawn| {
            let from = span.parent.map_or(base, |parent| spans[parent as usize].start);
            // Two instants since 1970 are less than an i64 apart, or nonsense.
            span.start.wrapping_sub(from) as i64
        };
        let names = spans.iter().map(|span| texts.place(store, span.record.name)).collect();
        let stages: Vec<u32> =
            spans.iter().map(|span| texts.place(store, span.record.stage)).collect();
        let is_wait: Vec<bool> = texts.texts.iter().map(|text| waits(text)).collect();
        let marks = spans.iter().enumerate().map(|(at, span)| {
            marks(span)
                | lanes.marks[at]
                | if is_wait[stages[at] as usize] { mark::WAITS } else { 0 }
        });
        let up = |(at, span): (usize, &Drawn)| span.parent.map_or(0, |parent| at as u32 - parent);
        let duration = |span: &Drawn| match span.record.is_open() && !span.record.is_lost {
            true => 0,
            false => span.duration(),
        };
        Self {
            count: spans.len(),
            ids: ids(spans),
            up: Column::new(spans.iter().enumerate().map(up).collect()),
            start: Column::new(spans.iter().map(start).collect()),
            duration: Column::new(spans.iter().map(duration).collect()),
            covered: Column::new(covered.to_vec()),
            name: Column::new(names),
            process: Column::new(lanes.process.clone()),
            lane: Column::new(lanes.lane.clone()),
            row: Column::new(lanes.row.clone()),
            sample: Column::new(spans.iter().map(sample).collect()),
            kind: Column::new(spans.iter().map(|span| span.record.kind as u8).collect()),
            marks: Column::new(marks.collect()),
            stage: Column::new(stages),
        }
    }
}

fn marks(span: &Drawn) -> u32 {
    let record = span.record;
    let bits = [
        (record.is_open(), mark::OPEN),
        (record.is_lost, mark::LOST),
        (!record.is_open() && !record.is_finished(), mark::NEVER_CAME),
        (record.is_failed, mark::FAILED),
        (span.is_guessed, mark::GUESSED),
        (record.parent.is_some() && span.parent.is_none(), mark::PARENT_MISSING),
        (record.start == 0, mark::NO_BEGIN),
        (!record.is_open() && record.end < record.start, mark::BACKWARD),
    ];
    bits.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit)
}

fn ids(spans: &[Drawn]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut ids = String::with_capacity(16 * spans.len());
    for byte in spans.iter().flat_map(|span| span.record.id.to_bytes()) {
        ids.push(DIGITS[usize::from(byte >> 4)] as char);
        ids.push(DIGITS[usize::from(byte & 15)] as char);
    }
    ids
}

/// How much of each span its children cover, parallel ones counted once. Children that are open while
/// their parent has ended are not counted.
pub(super) fn covered(spans: &[Drawn]) -> Vec<u64> {
    let mut covered = vec![0; spans.len()];
    let mut until: Vec<u64> = spans.iter().map(|span| span.start).collect();
    for span in spans {
        let Some(parent) = span.parent.map(|parent| parent as usize) else { continue };
        if span.record.is_open() && !spans[parent].record.is_open() {
            continue;
        }
        let (from, to) = (span.start.max(until[parent]), span.end.min(spans[parent].end));
        if from < to {
            covered[parent] += to - from;
            until[parent] = to;
        }
    }
    covered
}
