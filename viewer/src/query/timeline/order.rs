//! The spans of a trace in the order in which they are drawn: below their parents, by begin.

use crate::rules::{Tree, guessed_parents};
use crate::store::{Record, SpanNumber, Store, TraceNumber};

/// A span in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawn {
    pub(super) number: SpanNumber,
    pub(super) record: Record,
    /// The place of its parent, which is before it.
    pub(super) parent: Option<u32>,
    /// The parent was not told.
    pub(super) is_guessed: bool,
    /// When it began; if that is not known, the begin of the first of all.
    pub(super) start: u64,
    /// When it ended; of an open one now, or the last sign of it.
    pub(super) end: u64,
}

impl Drawn {
    pub(super) fn times(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    pub(super) fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The first begin, and the spans of a trace, each behind its parent and before the next child of that.
pub(super) fn in_order(store: &Store, trace: TraceNumber, now: u64) -> (u64, Vec<Drawn>) {
    let tree = Tree::new(store, trace);
    let starts = tree.nodes.iter().map(|node| node.record.start);
    let base = starts.filter(|start| *start > 0).min().unwrap_or(0);
    let signs = tree.nodes.iter().map(|node| node.record.end.max(node.record.start));
    let last_sign = signs.max().unwrap_or(0);
    let guessed = guessed_parents(store, &tree);
    let parent_of = |at: usize| {
        let told = tree.nodes[at].parent.map(|parent| parent as u32);
        told.or(guessed[at])
    };
    let mut by_begin: Vec<u32> = (0..tree.nodes.len() as u32).collect();
    by_begin.sort_unstable_by_key(|at| {
        let record = &tree.nodes[*at as usize].record;
        (record.start, record.id)
    });
    // Lists of children, linked from the last to the first.
    let mut last_child = vec![NONE; tree.nodes.len()];
    let mut before = vec![NONE; tree.nodes.len()];
    let mut roots = Vec::new();
    for &at in &by_begin {
        match parent_of(at as usize) {
            Some(parent) => {
                before[at as usize] = std::mem::replace(&mut last_child[parent as usize], at);
            }
            None => roots.push(at),
        }
    }
    let mut drawn = Vec::with_capacity(tree.nodes.len());
    let mut open: Vec<(u32, Option<u32>)> =
        roots.into_iter().rev().map(|root| (root, None)).collect();
    while let Some((at, parent)) = open.pop() {
        let node = &tree.nodes[at as usize];
        let place = drawn.len() as u32;
        drawn.push(Drawn {
            number: node.number,
            record: node.record,
            parent,
            is_guessed: node.parent.is_none() && parent.is_some(),
            start: if node.record.start == 0 { base } else { node.record.start },
            end: end(&node.record, now, last_sign),
        });
        let mut child = last_child[at as usize];
        while child != NONE {
            open.push((child, Some(place)));
            child = before[child as usize];
        }
    }
    (base, drawn)
}

const NONE: u32 = u32::MAX;

/// Of one that is open now; of one that was lost with its process the last sign of the trace.
fn end(record: &Record, now: u64, last_sign: u64) -> u64 {
    match (record.is_open(), record.is_lost) {
        (true, true) => record.end.max(last_sign),
        (true, false) => now.max(record.start),
        _ => record.end,
    }
}
