//! How a sample went: the stages right below its root, in order.

use hashbrown::HashSet;
use serde::Serialize;

use super::json::number;
use crate::rules::{Sample, Samples};
use crate::store::{Name, Record, Store};

/// Most stages of a row.
const MOST: usize = 12;

/// A stage right below the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) stage: Name,
    pub(super) start: u64,
    /// Now, if it is open; of a lost one the last sign of its sample.
    pub(super) end: u64,
    is_open: bool,
    is_failed: bool,
}

/// A stage of a row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathPart {
    stage: String,
    /// Nanoseconds from the begin of the sample.
    from_ns: String,
    duration_ns: String,
    is_open: bool,
    is_failed: bool,
}

/// The stages of a row, and how many more there are.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Course {
    path: Vec<PathPart>,
    path_more: usize,
}

impl Course {
    pub(super) fn new(
        store: &Store,
        samples: &Samples,
        sample: &Sample,
        place: usize,
        now: u64,
    ) -> Self {
        let mut parts = Vec::new();
        add_parts(store, samples, sample, place, now, &mut parts);
        if parts.is_empty() {
            let root = sample.root.map(|root| store.record(root));
            parts.extend(root.map(|root| part(store, sample, &root, now)));
        }
        let begin = sample.start.or_else(|| parts.iter().map(|part| part.start).min());
        let begin = begin.unwrap_or(0);
        let path = parts.iter().take(MOST).map(|part| PathPart {
            stage: store.text(part.stage),
            from_ns: number(part.start.saturating_sub(begin)),
            duration_ns: number(part.end.saturating_sub(part.start)),
            is_open: part.is_open,
            is_failed: part.is_failed,
        });
        Self { path: path.collect(), path_more: parts.len().saturating_sub(MOST) }
    }
}

/// Appends the stages right below the root of a sample in order of their begin; where the root is not
/// known, those whose parent is not.
pub(super) fn add_parts(
    store: &Store,
    samples: &Samples,
    sample: &Sample,
    place: usize,
    now: u64,
    parts: &mut Vec<Part>,
) {
    let of_sample = || {
        let spans = store.spans_of(sample.trace).filter(|span| samples.place(*span) == Some(place));
        spans.map(|span| store.record(span))
    };
    let begin = parts.len();
    match sample.root.map(|root| store.record(root).id) {
        Some(root) => {
            // Spans of live files name no parents, but have a depth.
            let is_below = |record: &Record| match record.parent {
                Some(parent) => parent == root,
                None => record.depth == 2 && record.id != root,
            };
            parts
                .extend(of_sample().filter(is_below).map(|below| part(store, sample, &below, now)));
        }
        None => {
            let ids: HashSet<_> = of_sample().map(|record| record.id).collect();
            let is_top = |record: &Record| match record.parent {
                Some(parent) => !ids.contains(&parent),
                None => record.depth <= 2,
            };
            parts.extend(of_sample().filter(is_top).map(|top| part(store, sample, &top, now)));
        }
    }
    parts[begin..].sort_by_key(|part| (part.start, part.end));
}

fn part(store: &Store, sample: &Sample, record: &Record, now: u64) -> Part {
    let is_open = record.is_open() && !record.is_lost;
    let end = match (is_open, record.is_lost && record.is_open()) {
        (true, _) => now,
        (_, true) => last_sign(store, sample),
        _ => record.end,
    };
    Part {
        stage: record.stage,
        start: record.start,
        end: end.max(record.start),
        is_open,
        is_failed: record.is_failed,
    }
}

/// When a sample began and ended: now if it is open, its last sign if it was lost.
pub(super) fn extent(store: &Store, sample: &Sample, now: u64) -> Option<(u64, u64)> {
    let start = sample.start?;
    let end = match sample.duration {
        Some(duration) => start.saturating_add(duration),
        None if sample.is_open => now,
        None => last_sign(store, sample),
    };
    Some((start, end.max(start)))
}

fn last_sign(store: &Store, sample: &Sample) -> u64 {
    sample.last_finished.map_or(0, |last| store.record(last).end)
}
