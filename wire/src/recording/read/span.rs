//! One span of a recording: what its words say, by the names under which it is exported.

use super::clock::Times;
use super::detail::{RecordedEvent, RecordedLink, owned};
use super::identity::Identity;
use super::record::{Detail, Record};
use super::table::Site;
use crate::id::{SpanId, TraceId};
use crate::recording::layout::{outcome, side, slot};
use crate::recording::value::{self, ValueRef};
use crate::span::{self, SpanKind, Status, StatusCode, flags};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The keys of the attributes that the recorder itself gives to a span.
pub mod key {
    /// The id of a request, on its root.
    pub const REQUEST_ID: &str = "stagetrace.request.id";
    /// How a span ended: `ok`, `handed_over`, `dropped`, `cancelled`, `error` or `panic`.
    pub const OUTCOME: &str = "stagetrace.outcome";
    /// `dropped`, on the root of a request that nobody finished.
    pub const END: &str = "stagetrace.end";
    /// True if the stage did not lie within the one that it declares.
    pub const MISPLACED: &str = "stagetrace.misplaced";
    /// The kind of a failure.
    pub const ERROR_TYPE: &str = "error.type";
    /// The function that was recorded.
    pub const FUNCTION: &str = "code.function.name";
    /// What stands in [`ERROR_TYPE`] where nothing better is known.
    pub const OTHER_ERROR: &str = "_OTHER";
}

/// A span as it stands in a recording.
#[derive(Clone, Debug)]
pub struct RecordedSpan {
    trace_id: TraceId,
    span_id: SpanId,
    record: Record,
    details: Vec<Detail>,
    site: Option<Arc<Site>>,
    begin: u64,
    end: u64,
    uncertain: bool,
}

impl RecordedSpan {
    /// The span of a record with these ids, and its side records in any order.
    pub(super) fn new(
        (trace_id, span_id): (TraceId, SpanId),
        record: Record,
        mut details: Vec<Detail>,
        site: Option<Arc<Site>>,
        times: &Times,
    ) -> RecordedSpan {
        for detail in &mut details {
            detail.time = times.unix(detail.ticks);
        }
        details.sort_by_key(|detail| detail.ticks);
        let is_ns = record.flag(slot::NANOSECONDS);
        let unix = |ticks| if is_ns { times.unix_of_monotonic(ticks) } else { times.unix(ticks) };
        let begin = unix(record.word(slot::BEGIN));
        let end = match record.word(slot::END) {
            0 => 0,
            ticks => unix(ticks).max(begin),
        };
        let uncertain = times.is_uncertain(if is_ns { u64::MAX } else { record.word(slot::BEGIN) });
        RecordedSpan { trace_id, span_id, record, details, site, begin, end, uncertain }
    }

    /// The trace, and the span within it: what makes it this span and no other.
    pub fn identity(&self) -> (TraceId, SpanId) {
        (self.trace_id, self.span_id)
    }

    /// The span it is part of; `None` for the root of a trace.
    pub fn parent(&self) -> Option<SpanId> {
        SpanId::from_u64(self.record.word(slot::PARENT))
    }

    /// Where in the source it was recorded; `None` if the stage table lacks that.
    pub fn site(&self) -> Option<&Site> {
        self.site.as_deref()
    }

    /// The name of its stage; `stagetrace.site.<number>` if the stage table lacks it.
    pub fn name(&self) -> Cow<'_, str> {
        match self.site() {
            Some(site) => Cow::Borrowed(&site.stage.name),
            None => Cow::Owned(format!("stagetrace.site.{}", self.record.site())),
        }
    }

    /// Its part in a call between processes.
    pub fn kind(&self) -> SpanKind {
        self.site().map_or(SpanKind::Unspecified, |site| site.kind)
    }

    /// OTLP's flags.
    pub fn flags(&self) -> u32 {
        let remote = if self.record.has_remote_parent() { flags::IS_REMOTE } else { 0 };
        u32::from(self.record.trace_flags()) | flags::HAS_IS_REMOTE | remote
    }

    /// The W3C `tracestate` that its request brought; empty if that is none, or the span no root.
    pub fn trace_state(&self) -> &str {
        let state = self.details.iter().find(|detail| detail.kind == side::TRACE_STATE);
        let text = state.and_then(|detail| value::decode_str(&detail.words));
        text.map_or("", |(text, _)| text)
    }

    /// When it began, in nanoseconds since 1970; 0 without any anchor.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// When it ended, in nanoseconds since 1970, not before it began; `None` while it is open.
    pub fn end(&self) -> Option<u64> {
        (!self.is_open()).then_some(self.end)
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.record.is_open()
    }

    /// Whether it is the root of a request in this process.
    pub fn is_root(&self) -> bool {
        self.record.flag(slot::ROOT)
    }

    /// Whether it is marked as written to the .jsonl.
    pub fn is_exported(&self) -> bool {
        self.record.mark(slot::EXPORTED)
    }

    /// Whether its trace is sampled. If not, it was recorded to be measured, and nobody exports it.
    pub fn is_sampled(&self) -> bool {
        !self.record.mark(slot::UNSAMPLED)
    }

    /// Whether its times are only estimated, for want of anchors.
    pub fn is_uncertain(&self) -> bool {
        self.uncertain
    }

    /// How many of its late attributes, events, links and the like are gone: their chunks were
    /// recycled before it ended.
    pub fn missing_details(&self) -> usize {
        self.record.sides().saturating_sub(self.details.len())
    }

    /// The request's id, on the root of a request that has one.
    pub fn request_id(&self) -> Option<&str> {
        if !self.is_root() {
            return None;
        }
        let late = self.late().filter(|(key, _)| *key == key::REQUEST_ID).last();
        let inline = || self.record.inline().next().filter(|(place, _)| *place == 0);
        match late.map(|(_, value)| value).or_else(|| inline().map(|(_, value)| value))? {
            ValueRef::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The name of its outcome; `None` while it is open, and for a span that is no root and did not
    /// fail.
    pub fn outcome(&self) -> Option<&'static str> {
        Some(match self.record.outcome() {
            outcome::UNSET => return None,
            outcome::OK => "ok",
            outcome::HANDED_OVER => "handed_over",
            outcome::DROPPED => "dropped",
            outcome::CANCELLED => "cancelled",
            outcome::ERROR => "error",
            _ => "panic",
        })
    }

    /// Its status, and what went wrong.
    pub fn status(&self) -> (StatusCode, &str) {
        match self.record.outcome() {
            outcome::CANCELLED | outcome::ERROR | outcome::PANIC => {
                (StatusCode::Error, self.failure().1)
            }
            _ => (StatusCode::Unset, ""),
        }
    }

    /// Its attributes, those that the recorder itself gives included, as they are exported but for
    /// the limits on their number and length. Of several values of one key the last counts.
    pub fn attributes(&self) -> Vec<(&str, ValueRef<'_>)> {
        let late: Vec<_> = self.late().collect();
        let last: HashMap<&str, usize> =
            late.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
        let keys = self.site().map_or(&[][..], |site| &site.keys);
        let root = usize::from(self.is_root());
        let mut all = Vec::new();
        for (place, value) in self.record.inline() {
            let key = match place.checked_sub(root) {
                None => Some(key::REQUEST_ID),
                Some(place) => keys.get(place).map(String::as_str),
            };
            all.extend(key.filter(|key| !last.contains_key(key)).map(|key| (key, value)));
        }
        let counts = |(at, (key, _)): &(usize, &(&str, ValueRef<'_>))| last.get(key) == Some(at);
        all.extend(late.iter().enumerate().filter(counts).map(|(_, attribute)| *attribute));
        all.extend(self.own_attributes());
        all
    }

    /// Its events, in the order in which they were reported.
    pub fn events(&self) -> impl Iterator<Item = RecordedEvent<'_>> {
        let events = self.details.iter().filter(|detail| detail.kind == side::EVENT);
        events.filter_map(|detail| {
            let (name, attributes) = value::decode_str(&detail.words)?;
            Some(RecordedEvent { name, time: detail.time, attributes })
        })
    }

    /// Its links, in the order in which they were reported.
    pub fn links(&self) -> impl Iterator<Item = RecordedLink<'_>> {
        let links = self.details.iter().filter(|detail| detail.kind == side::LINK);
        links.filter_map(|detail| {
            let [upper, lower, span, flags, ..] = *detail.words else { return None };
            Some(RecordedLink {
                trace_id: TraceId::from_u128(u128::from(upper) << 64 | u128::from(lower))?,
                span_id: SpanId::from_u64(span)?,
                flags: flags as u32,
                attributes: detail.words.get(4..)?,
            })
        })
    }

    /// The span with all it owns, as recorded by this process. An open one has the end 0.
    pub fn to_span(&self, identity: &Identity) -> span::Span {
        let (code, message) = self.status();
        span::Span {
            parent_span_id: self.parent(),
            trace_state: self.trace_state().to_owned(),
            flags: self.flags(),
            name: self.name().into_owned(),
            kind: self.kind(),
            start_unix_nano: self.begin,
            end_unix_nano: self.end,
            attributes: owned(self.attributes()),
            events: self.events().map(|event| event.to_event()).collect(),
            links: self.links().map(|link| link.to_link()).collect(),
            status: Status { code, message: message.to_owned() },
            resource: identity.resource.clone(),
            scope: identity.scope.clone(),
            ..span::Span::new(self.trace_id, self.span_id)
        }
    }

    /// Number of its request's root in this process, 0 for none.
    pub(super) fn root(&self) -> u64 {
        self.record.root()
    }

    /// Words that its records take.
    pub(crate) fn words(&self) -> usize {
        let details: usize = self.details.iter().map(|detail| detail.words.len()).sum();
        self.record.0.len() + details
    }

    /// The latest instant that it tells of, in nanoseconds since 1970.
    pub(super) fn last_sign(&self) -> u64 {
        let details = self.details.iter().map(|detail| detail.time).max();
        self.begin.max(self.end).max(details.unwrap_or(0))
    }

    /// What the recorder itself says of the span.
    fn own_attributes(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        let function = self.site().map_or("", |site| &site.function);
        let outcome = self.outcome();
        let ended = outcome.map(|outcome| (key::OUTCOME, outcome));
        let dropped = outcome.filter(|outcome| *outcome == "dropped");
        let dropped = dropped.map(|outcome| (key::END, outcome));
        let error = match outcome {
            Some(outcome @ ("panic" | "cancelled")) => Some((key::ERROR_TYPE, outcome)),
            Some("error") => Some((key::ERROR_TYPE, self.failure().0)),
            _ => None,
        };
        let function = (!function.is_empty()).then_some((key::FUNCTION, function));
        let texts = [function, ended, dropped, error];
        let misplaced = self.record.flag(slot::MISPLACED);
        let misplaced = misplaced.then_some((key::MISPLACED, ValueRef::Bool(true)));
        let texts = texts.into_iter().flatten().map(|(key, text)| (key, ValueRef::Str(text)));
        texts.chain(misplaced)
    }

    fn late(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        let late = self.details.iter().filter(|detail| detail.kind == side::ATTRIBUTES);
        late.flat_map(|detail| value::keyed(&detail.words))
    }

    /// `error.type` and message of the failure.
    fn failure(&self) -> (&str, &str) {
        let detail = self.details.iter().find(|detail| detail.kind == side::FAILURE);
        let texts = detail.and_then(|detail| {
            let (kind, rest) = value::decode_str(&detail.words)?;
            Some((kind, value::decode_str(rest)?.0))
        });
        texts.unwrap_or((key::OTHER_ERROR, ""))
    }
}
