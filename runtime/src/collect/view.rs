//! One ended span as the sinks see it: borrowed from the records, with times, limits and names worked out.

use crate::config::SpanLimits;
use crate::record::REQUEST_ID;
use crate::request::Outcome;
use crate::stage::{Site, Stage};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::{outcome, side, slot};
use stagetrace_wire::recording::time::Timeline;
use stagetrace_wire::recording::value::{self, ValueRef};
use stagetrace_wire::span::{StatusCode, flags};
use std::sync::Arc;

/// The words of an ended span's record, copied out of its chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a>(pub(crate) &'a [u64]);

impl<'a> Record<'a> {
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }
    pub(crate) fn flag(&self, flag: u8) -> bool {
        (self.word(slot::META) >> 56) as u8 & flag != 0
    }
    pub(crate) fn site(&self) -> u32 {
        self.word(slot::META) as u32
    }
    pub(crate) fn sides(&self) -> u32 {
        slot::sides(self.word(slot::LIFE)) as u32
    }
    pub(crate) fn root(&self) -> u64 {
        self.word(slot::LIFE) & slot::ROOT_MASK
    }
    pub(crate) fn outcome(&self) -> u8 {
        slot::outcome(self.word(slot::LIFE))
    }
    pub(crate) fn trace(&self) -> [u64; 2] {
        [self.word(slot::TRACE), self.word(slot::TRACE + 1)]
    }
    /// Whether its trace is sampled.
    pub(crate) fn is_sampled(&self) -> bool {
        self.word(slot::LIFE) & slot::UNSAMPLED == 0
    }
    /// Whether its trace is exported whatever samplers say.
    pub(crate) fn is_forced(&self) -> bool {
        self.word(slot::LIFE) & slot::FORCED != 0
    }
    /// Whether its parent is not a span of this process.
    pub(crate) fn begins_here(&self) -> bool {
        self.word(slot::PARENT) == 0 || self.word(slot::LIFE) & slot::REMOTE != 0
    }
    /// How many attributes stand inline at most.
    #[cfg(feature = "otel")]
    pub(crate) fn attributes(&self) -> usize {
        usize::from((self.word(slot::META) >> 48) as u8)
    }
    /// The attributes inline, by their places.
    pub(crate) fn inline(&self) -> impl Iterator<Item = (usize, ValueRef<'a>)> + use<'a> {
        let words = self.0.get(slot::WORDS..).unwrap_or_default();
        value::inline((self.word(slot::META) >> 48) as u8, words)
    }
}

/// A side record that belongs to the span.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub(crate) kind: u64,
    pub(crate) ticks: u64,
    /// The record's payload.
    pub(crate) words: Box<[u64]>,
}

/// How long a request spent in one stage.
#[derive(Clone, Debug)]
pub(crate) struct StageTime {
    pub(crate) stage: Stage,
    pub(crate) keys: Arc<StageKeys>,
    pub(crate) count: u64,
    pub(crate) ns: u64,
}

/// The keys under which a stage stands in breakdowns.
#[derive(Debug)]
pub(crate) struct StageKeys {
    duration: String,
    count: String,
}

impl StageKeys {
    pub(crate) fn new(stage: Stage) -> StageKeys {
        let name = stage.name();
        StageKeys {
            duration: format!("stagetrace.stage.{name}.duration"),
            count: format!("stagetrace.stage.{name}.count"),
        }
    }
}

/// An ended span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanView<'a> {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) parent: Option<SpanId>,
    /// Number of the site; the same number is the same site for the life of the process.
    pub(crate) number: u32,
    pub(crate) site: &'static Site,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) record: Record<'a>,
    pub(crate) details: &'a [Detail],
    /// Events and links beyond the limits.
    pub(crate) dropped_events: u32,
    pub(crate) dropped_links: u32,
    pub(crate) breakdown: &'a [StageTime],
    pub(crate) limits: &'a SpanLimits,
    /// For the times of events.
    pub(crate) timeline: &'a Timeline,
}

/// The key of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    /// The site's key at this place.
    OfSite(usize),
    /// [`Key::FUNCTION`], with the site's function as it is.
    Function,
    /// Any other.
    Text(&'a str),
}

impl Key<'_> {
    /// The key under which a span's function stands.
    pub(crate) const FUNCTION: &'static str = "code.function.name";
}

/// The key under which an outcome stands.
pub(crate) const OUTCOME: &str = "stagetrace.outcome";
/// The key under which the kind of a failure stands.
pub(crate) const ERROR_TYPE: &str = "error.type";
const END: &str = "stagetrace.end";
const MISPLACED: &str = "stagetrace.misplaced";

impl<'a> SpanView<'a> {
    /// OTLP's flags.
    pub(crate) fn flags(&self) -> u32 {
        SpanView::flags_of(self.record.word(slot::LIFE))
    }

    /// OTLP's flags of a span with this word LIFE.
    #[inline]
    pub(super) fn flags_of(life: u64) -> u32 {
        let trace = slot::exported_flags(life);
        let remote = if life & slot::REMOTE != 0 { flags::IS_REMOTE } else { 0 };
        u32::from(trace) | flags::HAS_IS_REMOTE | remote
    }

    /// Whether it is the root of a request.
    pub(super) fn is_root(&self) -> bool {
        self.record.flag(slot::ROOT)
    }

    /// Whether its parent is not a span of this process.
    pub(super) fn begins_here(&self) -> bool {
        self.record.begins_here()
    }

    /// Whether it failed, panicked or was cancelled.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.record.outcome(), outcome::CANCELLED | outcome::ERROR | outcome::PANIC)
    }

    /// Whether its parent is a span of another process.
    #[cfg(feature = "otel")]
    pub(crate) fn has_remote_parent(&self) -> bool {
        self.record.word(slot::LIFE) & slot::REMOTE != 0
    }

    /// The `tracestate` that its request brought, if it is a root; else empty.
    #[inline]
    pub(crate) fn trace_state(&self) -> &'a str {
        let state = self.details.iter().find(|detail| detail.kind == side::TRACE_STATE);
        let text = state.and_then(|detail| value::decode_str(&detail.words));
        text.map_or("", |(text, _)| text)
    }

    /// Whether it has more than its record: side records, or some that were beyond the limits.
    pub(crate) fn has_details(&self) -> bool {
        !self.details.is_empty() || self.dropped_events + self.dropped_links > 0
    }

    /// About how many bytes it takes, never less than its values do.
    pub(crate) fn bytes(&self) -> usize {
        let details: usize = self.details.iter().map(|detail| detail.words.len()).sum();
        8 * (self.record.0.len() + details)
    }

    /// How it ended; `None` for a plain success.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.record.outcome().checked_sub(1).map(Outcome::from_u8)
    }

    /// What kind of failure it ended with, if it did.
    pub(crate) fn error_type(&self) -> Option<&'a str> {
        match self.outcome()? {
            failed @ (Outcome::Panic | Outcome::Cancelled) => Some(failed.as_str()),
            Outcome::Error => Some(self.failure().0),
            _ => None,
        }
    }

    /// Status and its description.
    pub(crate) fn status(&self) -> (StatusCode, &'a str) {
        if self.has_failed() {
            (StatusCode::Error, self.failure().1)
        } else {
            (StatusCode::Unset, "")
        }
    }

    /// Hands every attribute to `with`, in order; gives how many the limits cut off.
    pub(crate) fn attributes(&self, mut with: impl FnMut(Key<'_>, ValueRef<'_>)) -> u32 {
        let mut left = self.limits.attributes;
        let mut dropped = 0;
        let length = self.limits.attribute_length;
        let mut emit = |key: Key<'_>, value: ValueRef<'_>| {
            if left == 0 {
                dropped += 1;
                return;
            }
            left -= 1;
            match (value, length) {
                (ValueRef::Str(text), Some(length)) if text.len() > length => {
                    let key = if key == Key::Function { Key::Text(Key::FUNCTION) } else { key };
                    with(key, ValueRef::Str(cut(text, length)));
                }
                _ => with(key, value),
            }
        };
        let root = usize::from(self.record.flag(slot::ROOT));
        for (place, value) in self.record.inline() {
            let key = match place.checked_sub(root) {
                None => Key::Text(REQUEST_ID),
                Some(place) => Key::OfSite(place),
            };
            let overridden = self.details.iter().any(|d| d.kind == side::ATTRIBUTES)
                && self.late().any(|(late, _)| self.text(key) == Some(late));
            if !overridden {
                emit(key, value);
            }
        }
        if !self.details.is_empty() {
            let late: Vec<_> = self.late().collect();
            for (at, (key, value)) in late.iter().enumerate() {
                if late[at + 1..].iter().all(|(later, _)| later != key) {
                    emit(Key::Text(key), *value);
                }
            }
        }
        self.own_attributes(&mut emit);
        dropped
    }

    /// What the recorder itself says of the span.
    fn own_attributes(&self, emit: &mut impl FnMut(Key<'_>, ValueRef<'_>)) {
        if !self.site.function().is_empty() {
            emit(Key::Function, ValueRef::Str(self.site.function()));
        }
        let mut text = |key, value| emit(Key::Text(key), ValueRef::Str(value));
        if let Some(outcome) = self.outcome() {
            text(OUTCOME, outcome.as_str());
            if outcome == Outcome::Dropped {
                text(END, outcome.as_str());
            }
        }
        if let Some(error_type) = self.error_type() {
            text(ERROR_TYPE, error_type);
        }
        if self.record.flag(slot::MISPLACED) {
            emit(Key::Text(MISPLACED), ValueRef::Bool(true));
        }
        for time in self.breakdown {
            let seconds = time.ns as f64 / 1e9;
            emit(Key::Text(&time.keys.duration), ValueRef::F64(seconds));
            emit(Key::Text(&time.keys.count), ValueRef::I64(time.count as i64));
        }
    }

    /// The text of a key.
    pub(crate) fn text<'k>(&self, key: Key<'k>) -> Option<&'k str> {
        match key {
            Key::OfSite(place) => self.site.keys().get(place).copied(),
            Key::Function => Some(Key::FUNCTION),
            Key::Text(text) => Some(text),
        }
    }

    fn late(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        let details = self.details.iter().filter(|detail| detail.kind == side::ATTRIBUTES);
        details.flat_map(|detail| value::keyed(&detail.words))
    }

    /// `error.type` and message of the failure.
    fn failure(&self) -> (&'a str, &'a str) {
        let detail = self.details.iter().find(|detail| detail.kind == side::FAILURE);
        let texts = detail.and_then(|detail| {
            let (kind, rest) = value::decode_str(&detail.words)?;
            Some((kind, value::decode_str(rest)?.0))
        });
        texts.unwrap_or(("_OTHER", ""))
    }

    /// Its events in the order in which they were reported.
    pub(crate) fn events(&self) -> impl Iterator<Item = EventView<'a>> + use<'a> {
        let timeline = self.timeline;
        let events = self.details.iter().filter(|detail| detail.kind == side::EVENT);
        events.filter_map(move |detail| {
            let (name, attributes) = value::decode_str(&detail.words)?;
            Some(EventView { name, time: timeline.unix(detail.ticks), attributes })
        })
    }

    /// Its links.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkView<'a>> + use<'a> {
        let links = self.details.iter().filter(|detail| detail.kind == side::LINK);
        links.filter_map(|detail| {
            let [upper, lower, span, flags, ..] = *detail.words else { return None };
            Some(LinkView {
                trace_id: TraceId::from_u128(u128::from(upper) << 64 | u128::from(lower))?,
                span_id: SpanId::from_u64(span)?,
                flags: flags as u32,
                attributes: detail.words.get(4..)?,
            })
        })
    }
}

/// An event of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventView<'a> {
    pub(crate) name: &'a str,
    pub(crate) time: u64,
    attributes: &'a [u64],
}

/// A link of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkView<'a> {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) flags: u32,
    attributes: &'a [u64],
}

impl<'a> EventView<'a> {
    /// Its attributes in order, not yet limited.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        value::keyed(self.attributes)
    }
}

impl<'a> LinkView<'a> {
    /// Its attributes in order, not yet limited.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        value::keyed(self.attributes)
    }
}

/// The first `length` characters.
fn cut(text: &str, length: usize) -> &str {
    text.char_indices().nth(length).map_or(text, |(end, _)| &text[..end])
}
