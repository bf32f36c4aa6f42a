//! What a drawing shows: lanes, and arrows between spans.

use hashbrown::{HashMap, HashSet};
use stagetrace_wire::recording::recover::key;
use stagetrace_wire::span::{Attributes, Event, Span, SpanKind, StatusCode, Value};

use super::Chosen;
use crate::rules::{LaneBuilder, Lanes, Slice};
use crate::store::{SpanNumber, Store, TraceNumber};

/// A drawing.
pub(super) struct Plan {
    pub(super) lanes: Lanes,
    /// When the first slice begins, in nanoseconds since 1970.
    pub(super) begin: u64,
    arrows: HashMap<SpanNumber, Vec<Arrow>>,
}

/// An arrow at one of its two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) number: u64,
    pub(super) is_link: bool,
    /// Whether it begins at this span: of the two at that which begins first, as arrows do not go back
    /// in time.
    pub(super) is_begin: bool,
}

impl Plan {
    pub(super) fn new(
        chosen: &mut Chosen<'_>,
        traces: &[TraceNumber],
        now: u64,
        is_chosen: impl Fn(&Store, SpanNumber) -> bool,
    ) -> Self {
        let mut lanes = LaneBuilder::default();
        let mut pairs = Vec::new();
        for &trace in traces {
            chosen.sources.restore(chosen.store, trace);
            let store = &*chosen.store;
            lanes.add(store, trace, now, |span| is_chosen(store, span));
            for span in store.spans_of(trace).filter(|span| is_chosen(store, *span)) {
                let links = store.links(span).into_iter();
                let linked = links.filter_map(|link| store.find_span(link.trace_id, link.span_id));
                pairs.extend(linked.map(|other| (other, span, true)));
                pairs.extend(remote_parent(store, span).map(|parent| (parent, span, false)));
            }
        }
        let lanes = lanes.build();
        let drawn: HashSet<_> = lanes.slices.iter().map(|slice| slice.span).collect();
        pairs
            .retain(|(one, other, _)| one != other && drawn.contains(one) && drawn.contains(other));
        let mut arrows = HashMap::<_, Vec<_>>::new();
        for ((one, other, is_link), number) in pairs.into_iter().zip(1..) {
            let begin = |span| chosen.store.record(span).start;
            let is_in_order = begin(one) <= begin(other);
            for (span, is_begin) in [(one, is_in_order), (other, !is_in_order)] {
                arrows.entry(span).or_default().push(Arrow { number, is_link, is_begin });
            }
        }
        let begin = lanes.slices.first().map_or(0, |slice| slice.begin);
        Self { lanes, begin, arrows }
    }

    pub(super) fn arrows(&self, span: SpanNumber) -> &[Arrow] {
        self.arrows.get(&span).map_or(&[], Vec::as_slice)
    }
}

/// The parent, if another process has it.
fn remote_parent(store: &Store, span: SpanNumber) -> Option<SpanNumber> {
    let record = store.record(span);
    let trace = store.trace_id(TraceNumber(record.trace));
    let parent = store.find_span(trace, record.parent?)?;
    let other = store.record(parent).origin;
    let is_remote = other != record.origin
        && store.origin(other).resource != store.origin(record.origin).resource;
    is_remote.then_some(parent)
}

/// When an event of a slice was; one that does not say it was at the begin.
pub(super) fn instant(slice: &Slice, event: &Event) -> u64 {
    if event.time_unix_nano == 0 { slice.begin } else { event.time_unix_nano }
}

/// What is told of a slice: the span's attributes, and behind them what else it is.
pub(super) fn told(chosen: &Chosen<'_>, number: SpanNumber, span: &mut Span) -> Attributes {
    let record = chosen.store.record(number);
    let mut told = std::mem::take(&mut span.attributes);
    let mut add = |key: &str, value: Value| {
        if told.iter().all(|(other, _)| other != key) {
            told.push((key.to_owned(), value));
        }
    };
    add("trace_id", span.trace_id.to_string().into());
    add("span_id", span.span_id.to_string().into());
    if let Some(parent) = span.parent_span_id {
        add("parent_span_id", parent.to_string().into());
    }
    let stage = chosen.store.text(record.stage);
    if stage != span.name {
        add("stage", stage.into());
    }
    if !matches!(span.kind, SpanKind::Unspecified | SpanKind::Internal) {
        add("kind", format!("{:?}", span.kind).to_lowercase().into());
    }
    if span.status.code != StatusCode::Unset {
        add("status", format!("{:?}", span.status.code).to_lowercase().into());
    }
    if !span.status.message.is_empty() {
        add("status_message", span.status.message.as_str().into());
    }
    if record.is_open() {
        add(key::OPEN, true.into());
    }
    told
}
