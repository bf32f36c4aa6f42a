//! A sample of a rollout, or a request: one root and what belongs to it.

use stagetrace_wire::span::{SpanKind, StatusCode};

use super::status::Status;
use super::tree::{Node, Tree};
use crate::store::{Facts, Ident, Label, Name, SpanNumber, Store, TraceNumber};

/// A sample or request as it stands.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its trace.
    pub trace: TraceNumber,
    /// The id of the rollout; `None` for a request.
    pub rollout: Option<Ident>,
    /// The id of the request, if it has one.
    pub request: Option<Name>,
    /// The group: samples of one prompt.
    pub group: Option<Ident>,
    /// The step of training that it is for.
    pub step: Option<Ident>,
    /// Which attempt it is.
    pub attempt: Option<Ident>,
    /// Its session.
    pub session: Option<Ident>,
    /// Its task.
    pub task: Option<Name>,
    /// How it stands.
    pub status: Status,
    /// Whether its root has not ended, and its process is not known to have died.
    pub is_open: bool,
    /// The root, if it is known.
    pub root: Option<SpanNumber>,
    /// Spans that are there with their ends.
    pub finished_spans: u32,
    /// When the root began, in nanoseconds since 1970.
    pub start: Option<u64>,
    /// Nanoseconds from begin to end of the root, once it has ended.
    pub duration: Option<u64>,
    /// What it is in; `None` unless it is open, and an open span of it is known.
    pub current: Option<Current>,
    /// The span that ended last.
    pub last_finished: Option<SpanNumber>,
    /// Spans that are open though the root has ended.
    pub left_open: Vec<SpanNumber>,
    /// Spans that were open when their process died.
    pub lost_spans: u32,
    /// The span in which what went wrong arose.
    pub error: Option<SpanNumber>,
    /// The root is known to have ended, but never came.
    pub result_not_exported: bool,
    pub(crate) facts: Facts,
}

/// The deepest open span of an open sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The span.
    pub span: SpanNumber,
    /// Its stage.
    pub stage: Name,
    /// When it began, in nanoseconds since 1970.
    pub since: u64,
}

impl Sample {
    /// The reward, if it got one.
    pub fn reward(&self) -> Option<f64> {
        self.facts.reward()
    }

    /// Whether the reward counts as passed.
    pub fn passed(&self) -> Option<bool> {
        self.facts.pass()
    }

    /// Why the model stopped.
    pub fn finish_reason(&self) -> Option<Name> {
        self.facts.finish()
    }

    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> Option<i64> {
        self.facts.prompt_tokens()
    }

    /// Tokens that were generated.
    pub fn completion_tokens(&self) -> Option<i64> {
        self.facts.completion_tokens()
    }

    /// The samples of a trace, and for each span the sample it is of.
    pub(super) fn of_tree(
        store: &Store,
        trace: TraceNumber,
        tree: &Tree<'_>,
    ) -> (Vec<Sample>, Vec<Option<u32>>) {
        if tree.rollouts.is_empty() {
            return Self::request(store, trace, tree);
        }
        let mut members = vec![Vec::new(); tree.rollouts.len()];
        for (at, node) in tree.nodes.iter().enumerate() {
            if let Some(owner) = node.owner {
                members[owner].push(at);
            }
        }
        let samples = tree.rollouts.iter().zip(&members);
        let samples = samples
            .map(|(rollout, members)| Self::new(store, trace, Some(*rollout), tree, members));
        let owners = tree.nodes.iter().map(|node| node.owner.map(|owner| owner as u32));
        (samples.collect(), owners.collect())
    }

    /// A trace without rollouts is one request, if it is not the recorder's own report.
    fn request(
        store: &Store,
        trace: TraceNumber,
        tree: &Tree<'_>,
    ) -> (Vec<Sample>, Vec<Option<u32>>) {
        let is_report = |node: &Node<'_>| {
            let is_one = |name: &str| matches!(name, "stagetrace.loss" | "stagetrace.clock");
            store.with_text(node.record.name, is_one)
        };
        if tree.nodes.iter().all(is_report) {
            return (Vec::new(), vec![None; tree.nodes.len()]);
        }
        let members: Vec<usize> = (0..tree.nodes.len()).collect();
        let sample = Self::new(store, trace, None, tree, &members);
        (vec![sample], vec![Some(0); tree.nodes.len()])
    }

    fn new(
        store: &Store,
        trace: TraceNumber,
        rollout: Option<Ident>,
        tree: &Tree<'_>,
        members: &[usize],
    ) -> Self {
        let nodes = || members.iter().map(|&at| &tree.nodes[at]);
        let roots = nodes().filter(|node| is_root(store, tree, node, rollout.is_none()));
        let root = roots.min_by_key(|node| (node.record.start, node.depth, node.record.id));
        let labels = || {
            let first = root.and_then(|root| store.label(root.record));
            first.into_iter().chain(nodes().filter_map(|node| store.label(node.record)))
        };
        let finished = || nodes().filter(|node| node.record.is_finished());
        let last_finished = finished().max_by_key(|node| (node.record.end, node.record.id));
        let open = || nodes().filter(|node| node.record.is_open());
        let lost = open().filter(|node| node.record.is_lost).count();
        let ended_root = root.filter(|root| !root.record.is_open());
        let mut sample = Self {
            trace,
            rollout,
            request: labels().find_map(Label::request),
            group: labels().find_map(Label::group),
            step: labels().find_map(Label::step),
            attempt: labels().find_map(Label::attempt),
            session: labels().find_map(Label::session),
            task: labels().find_map(Label::task),
            status: Status::Running,
            is_open: ended_root.is_none(),
            root: root.map(|root| root.number),
            finished_spans: finished().count() as u32,
            start: root.map(|root| root.record.start),
            duration: ended_root.map(|root| root.record.duration()),
            current: None,
            last_finished: last_finished.map(|node| node.number),
            left_open: Vec::new(),
            lost_spans: lost as u32,
            error: blamed(nodes()),
            result_not_exported: false,
            facts: facts(store, root, finished()),
        };
        match ended_root {
            Some(root) if root.record.is_finished() => {
                let facts = store.facts(root.record);
                sample.status = Status::of_ended(store, &facts, root.record.code);
            }
            Some(root) => {
                let is_error = root.record.code == StatusCode::Error;
                sample.status = if is_error { Status::Failed } else { Status::Unknown };
                sample.result_not_exported = true;
            }
            None => {
                let is_root_lost = root.is_some_and(|root| root.record.is_lost);
                if is_root_lost || (root.is_none() && lost > 0 && lost == open().count()) {
                    (sample.status, sample.is_open) = (Status::Lost, false);
                }
                let deepest = open().filter(|node| !node.record.is_lost || is_root_lost);
                let deepest =
                    deepest.max_by_key(|node| (node.depth, node.record.start, node.record.id));
                sample.current = deepest.map(|node| Current {
                    span: node.number,
                    stage: node.record.stage,
                    since: node.record.start,
                });
            }
        }
        if ended_root.is_some() {
            let left = open().filter(|node| !node.record.is_lost);
            sample.left_open = left.map(|node| node.number).collect();
        }
        sample
    }
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
        || store.label(node.record).is_some_and(|label| label.request().is_some());
    let is_served = matches!(node.record.kind, SpanKind::Server | SpanKind::Consumer);
    is_of_stagetrace || (is_request && is_served)
}

/// The span in which what went wrong arose: the deepest, of several the one that ended last. What
/// copies a message upwards does not move the blame.
fn blamed<'n, 's: 'n>(nodes: impl Iterator<Item = &'n Node<'s>>) -> Option<SpanNumber> {
    let failed = nodes.filter(|node| node.record.is_failed && !node.record.is_open());
    let blamed = failed.max_by_key(|node| (node.depth, node.record.end, node.record.id));
    blamed.map(|node| node.number)
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
