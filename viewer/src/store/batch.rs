//! Spans on their way into the store: encoded on whichever threads read them, taken in on one.

use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{SpanKind, StatusCode};

use super::facts::Failure;
use super::tables::Name;

/// How much is known of a span. The greater counts, whatever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// A live file says that it began.
    Announced,
    /// A recording has it open.
    Recorded,
    /// A file has it without an end.
    Written,
    /// It is known to have ended, but not how: a live file says so, or a recording has it no more.
    Over,
    /// A recording has it ended.
    RecordedEnd,
    /// A file has it ended.
    WrittenEnd,
}

impl Standing {
    pub(super) fn is_open(self) -> bool {
        self < Self::Over
    }

    pub(super) fn is_finished(self) -> bool {
        self > Self::Over
    }
}

/// A span to take in.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: Name,
    pub(crate) stage: Name,
    pub(crate) origin: u32,
    pub(crate) kind: SpanKind,
    pub(crate) code: StatusCode,
    pub(crate) standing: Standing,
    /// Names from the root to the span, where these are known instead of its parent; else 0.
    pub(crate) depth: u8,
    pub(crate) is_failed: bool,
    pub(crate) is_lost: bool,
    /// Some of its names found no room.
    pub(crate) lacks_names: bool,
    pub(crate) has_links: bool,
    pub(crate) failure: Failure,
    /// Where its label begins in the batch's marks; its facts follow.
    pub(crate) mark_at: u32,
    /// Bytes of its label, or 0 if it says nothing.
    pub(crate) label_len: u8,
    /// Bytes of its facts, or 0 if they say nothing.
    pub(crate) facts_len: u8,
    /// Where its details begin in the batch.
    pub(crate) at: u32,
}

/// Spans of one piece of a source, with their details.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) spans: Vec<Parsed>,
    pub(crate) details: Vec<u8>,
    /// Labels and facts.
    pub(crate) marks: Vec<u8>,
    /// Where it can be read again.
    pub(crate) place: Option<Place>,
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the file among the sources.
    pub(crate) file: u32,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Batch {
    /// The details of a span, and what follows them.
    pub(super) fn details_of(&self, span: &Parsed) -> &[u8] {
        self.details.get(span.at as usize..).unwrap_or_default()
    }

    /// The label of a span, and its facts.
    pub(super) fn marks_of(&self, span: &Parsed) -> (&[u8], &[u8]) {
        let marks = self.marks.get(span.mark_at as usize..).unwrap_or_default();
        let (label, facts) = marks.split_at(usize::from(span.label_len).min(marks.len()));
        (label, facts.get(..span.facts_len.into()).unwrap_or_default())
    }
}
