//! One trace as an indented text.

use std::fmt::Write as _;

use super::json::number;
use crate::rules::{Samples, Tree};
use crate::store::{Store, TraceNumber};

/// The spans of a trace, one a line, below their parents: stage, duration or age, what went wrong.
/// Control characters are escaped.
pub fn tree(store: &Store, samples: &Samples, trace: TraceNumber, now: u64) -> String {
    let tree = Tree::new(store, trace);
    let children = tree.children();
    let mut text = String::new();
    for sample in samples.of_trace(store, trace) {
        let mut line = vec![sample.status.text(store)];
        let shown =
            |ident: Option<crate::Ident>| ident.map(|ident| crate::rules::shown(store, ident));
        let request = sample.request.map(crate::Ident::Text);
        let parts = [
            ("rollout", sample.rollout),
            ("request", request),
            ("group", sample.group),
            ("step", sample.step),
            ("attempt", sample.attempt),
        ];
        line.extend(
            parts.into_iter().filter_map(|(what, id)| Some(format!("{what} {}", shown(id)?))),
        );
        line.extend(sample.reward().map(|reward| format!("reward {reward}")));
        // Writing to a text does not fail.
        let _ = writeln!(text, "{}", printable(&line.join("  ")));
    }
    let mut roots: Vec<usize> =
        (0..tree.nodes.len()).filter(|&at| tree.nodes[at].parent.is_none()).collect();
    roots.sort_by_key(|&at| (tree.nodes[at].record.start, tree.nodes[at].record.id));
    // Not by recursion: a sender may nest them as deeply as it likes.
    let mut open: Vec<(usize, usize)> = roots.into_iter().rev().map(|at| (at, 0)).collect();
    while let Some((at, depth)) = open.pop() {
        let record = tree.nodes[at].record;
        let (name, stage) = (store.text(record.name), store.text(record.stage));
        let mut line = vec![name.clone()];
        line.extend((stage != name).then(|| format!("[{stage}]")));
        line.push(if record.is_finished() {
            duration(record.duration())
        } else if record.is_lost {
            "lost".to_owned()
        } else if record.is_open() {
            format!("open for {}", duration(now.saturating_sub(record.start)))
        } else {
            "ended, never came".to_owned()
        });
        if record.is_failed {
            let failure = store.failure_of(record);
            let failure = [failure.kind, failure.message];
            let failure: Vec<_> =
                failure.into_iter().flatten().map(|name| store.text(name)).collect();
            line.push(format!("error: {}", failure.join(": ")));
        }
        let _ = writeln!(
            text,
            "{:1$}{2}  {3}",
            "",
            2 * depth.min(64),
            printable(&line.join("  ")),
            record.id
        );
        open.extend(children[at].iter().rev().map(|&child| (child, depth + 1)));
    }
    text
}

/// Nanoseconds for people, in three digits or more.
pub(crate) fn duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match UNITS.iter().find(|(unit, _)| ns >= *unit) {
        None => format!("{} ns", number(ns)),
        Some((unit, name)) => {
            let value = ns as f64 / *unit as f64;
            let digits = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            format!("{value:.digits$} {name}")
        }
    }
}

/// A text that stays on its line and does nothing to a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_debug());
        } else {
            shown.push(character);
        }
    }
    shown
}
