//! From the spans of a trace to its samples.

use stagetrace_wire::span::{SpanKind, StatusCode};

use super::row::{Extra, NONE, Row, flag};
use super::status::Status;
use super::tree::{Node, Tree};
use crate::store::{Facts, Ident, Label, Store, TraceNumber};

/// The samples of a trace, and for each span which of them it is of.
pub(super) struct Found {
    pub(super) rows: Vec<(Row, Option<Extra>)>,
    pub(super) owners: Vec<Option<u32>>,
}

/// Finds the samples of a trace. Their steps have no numbers yet.
pub(super) fn samples(store: &Store, trace: TraceNumber, tree: &Tree<'_>) -> Found {
    if tree.rollouts.is_empty() {
        return request(store, trace, tree);
    }
    let mut members = vec![Vec::new(); tree.rollouts.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        if let Some(owner) = node.owner {
            members[owner].push(at);
        }
    }
    let rows = tree.rollouts.iter().zip(&members);
    let rows = rows.map(|(rollout, members)| row(store, trace, Some(*rollout), tree, members));
    let owners = tree.nodes.iter().map(|node| node.owner.map(|owner| owner as u32));
    Found { rows: rows.collect(), owners: owners.collect() }
}

/// A trace without rollouts is one request, if it is not the recorder's own report.
fn request(store: &Store, trace: TraceNumber, tree: &Tree<'_>) -> Found {
    let is_report = |node: &Node<'_>| {
        let is_one = |name: &str| matches!(name, "stagetrace.loss" | "stagetrace.clock");
        store.with_text(node.record.name, is_one)
    };
    if tree.nodes.iter().all(is_report) {
        return Found { rows: Vec::new(), owners: vec![None; tree.nodes.len()] };
    }
    let members: Vec<usize> = (0..tree.nodes.len()).collect();
    let row = row(store, trace, None, tree, &members);
    Found { rows: vec![row], owners: vec![Some(0); tree.nodes.len()] }
}

fn row(
    store: &Store,
    trace: TraceNumber,
    rollout: Option<Ident>,
    tree: &Tree<'_>,
    members: &[usize],
) -> (Row, Option<Extra>) {
    let nodes = || members.iter().map(|&at| &tree.nodes[at]);
    let roots = nodes().filter(|node| is_root(store, tree, node, rollout.is_none()));
    let root = roots.min_by_key(|node| (node.record.start, node.depth, node.record.id));
    let finished = || nodes().filter(|node| node.record.is_finished());
    let last_finished = finished().max_by_key(|node| (node.record.end, node.record.id));
    let open = || nodes().filter(|node| node.record.is_open());
    let lost = open().filter(|node| node.record.is_lost).count();
    let ended_root = root.filter(|root| !root.record.is_open());
    let place = |node: Option<&Node<'_>>| node.map_or(NONE, |node| node.number.0);
    let mut row = Row {
        start: root.map_or(0, |root| root.record.start),
        duration: ended_root.map_or(0, |root| root.record.duration()),
        trace: trace.0,
        label: NONE,
        facts: NONE,
        step: NONE,
        root: place(root),
        last_finished: place(last_finished),
        error: place(blamed(nodes())),
        current: NONE,
        stage: NONE,
        finished_spans: finished().count() as u32,
        status: Status::Running.code(),
        flags: if ended_root.is_some() { flag::ENDED } else { flag::OPEN },
    };
    match ended_root {
        Some(root) if root.record.is_finished() => {
            let facts = store.facts(root.record);
            row.status = Status::of_ended(store, &facts, root.record.code).code();
        }
        Some(root) => {
            let is_error = root.record.code == StatusCode::Error;
            row.status = if is_error { Status::Failed } else { Status::Unknown }.code();
            row.flags |= flag::NOT_EXPORTED;
        }
        None => {
            let is_root_lost = root.is_some_and(|root| root.record.is_lost);
            if is_root_lost || (root.is_none() && lost > 0 && lost == open().count()) {
                row.status = Status::Lost.code();
                row.flags &= !flag::OPEN;
            }
            let deepest = open().filter(|node| !node.record.is_lost || is_root_lost);
            let deepest =
                deepest.max_by_key(|node| (node.depth, node.record.start, node.record.id));
            row.current = place(deepest);
            row.stage = deepest.map_or(NONE, |node| node.record.stage.0);
        }
    }
    let mut left_open = Vec::new();
    if ended_root.is_some() {
        let left = open().filter(|node| !node.record.is_lost);
        left_open.extend(left.map(|node| node.number));
    }
    let label = label(store, rollout, root, nodes());
    let facts = facts(store, root, finished());
    let records = || root.into_iter().chain(nodes()).map(|node| node.record);
    let says_label = |place: &u32| *store.label_at(*place) == label;
    let says_facts = |place: &u32| store.facts_at(*place).says_as_much_as(&facts);
    let places = || records().map(|record| record.label).chain([NONE]);
    let label_place = places().find(says_label);
    let places = || records().map(|record| record.facts).chain([NONE]);
    let facts_place = places().find(says_facts);
    if let (Some(label), Some(facts), 0, true) =
        (label_place, facts_place, lost, left_open.is_empty())
    {
        (row.label, row.facts) = (label, facts);
        return (row, None);
    }
    row.flags |= flag::EXTRA;
    let left_open = left_open.into();
    (row, Some(Extra { label, facts, left_open, lost_spans: lost as u32 }))
}

/// Whose the sample is: what the root says, and of what it does not say, what was said first.
fn label<'n, 's: 'n>(
    store: &Store,
    rollout: Option<Ident>,
    root: Option<&Node<'s>>,
    nodes: impl Iterator<Item = &'n Node<'s>>,
) -> Label {
    let mut label = root.map(|root| *store.label(root.record)).unwrap_or_default();
    for node in nodes {
        label.fill(store.label(node.record));
    }
    label.set_rollout(rollout);
    label
}

/// Whether a span is the root of its sample, or of what is known of it in its process.
fn is_root(store: &Store, tree: &Tree<'_>, node: &Node<'_>, is_request: bool) -> bool {
    if let Some(parent) = node.parent {
        return tree.nodes[parent].owner != node.owner;
    }
    if node.record.parent.is_none() {
        // Spans of live files do not name their parents, but have a depth.
        return node.record.depth <= 1;
    }
    // The parent is not there. Either it has not ended, or it belongs to a caller whose spans are
    // elsewhere.
    let is_of_stagetrace = store.facts(node.record).outcome().is_some()
        || store.label(node.record).request().is_some();
    let is_served = matches!(node.record.kind, SpanKind::Server | SpanKind::Consumer);
    is_of_stagetrace || (is_request && is_served)
}

/// The span in which what went wrong arose: the deepest, of several the one that ended last. What
/// copies a message upwards does not move the blame.
fn blamed<'n, 's: 'n>(nodes: impl Iterator<Item = &'n Node<'s>>) -> Option<&'n Node<'s>> {
    let failed = nodes.filter(|node| node.record.is_failed && !node.record.is_open());
    failed.max_by_key(|node| (node.depth, node.record.end, node.record.id))
}

/// What the root says, and of what it does not say, what was said last.
fn facts<'n, 's: 'n>(
    store: &Store,
    root: Option<&Node<'s>>,
    finished: impl Iterator<Item = &'n Node<'s>>,
) -> Facts {
    let mut facts = root.map(|root| store.facts(root.record)).unwrap_or_default();
    let mut others: Vec<_> = finished.collect();
    others.sort_unstable_by_key(|node| std::cmp::Reverse((node.record.end, node.record.id)));
    for node in others {
        facts.fill(&store.facts(node.record));
    }
    facts
}
