//! What a span begins with, in whichever encoding.

use crate::id::{SpanId, TraceId};
use crate::span::SpanKind;

/// Name and kind of a span; `H` is the encoding's head for both.
#[derive(Clone, Copy, Debug)]
pub enum Title<'a, H> {
    /// Known since the place in the source was reached first.
    Encoded(&'a H),
    /// Known only now.
    Plain(&'a str, SpanKind),
}

/// What a span begins with; `H` is the encoding's head for name and kind.
#[derive(Clone, Copy, Debug)]
pub struct SpanStart<'a, H> {
    /// The trace.
    pub trace_id: TraceId,
    /// The span within it.
    pub span_id: SpanId,
    /// The span it is part of; `None` for a root.
    pub parent_span_id: Option<SpanId>,
    /// The W3C `tracestate`; empty if there is none.
    pub trace_state: &'a str,
    /// See [`flags`](crate::span::flags).
    pub flags: u32,
    /// Name and kind.
    pub title: Title<'a, H>,
    /// When it began, in nanoseconds since 1970.
    pub start_unix_nano: u64,
    /// When it ended, in nanoseconds since 1970; 0 if it has not.
    pub end_unix_nano: u64,
}

impl<'a, H> From<&'a H> for Title<'a, H> {
    fn from(head: &'a H) -> Self {
        Self::Encoded(head)
    }
}

/// What differs between the spans of one template, but for their attributes.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// The trace.
    pub trace_id: TraceId,
    /// The span within it.
    pub span_id: SpanId,
    /// The span it is part of.
    pub parent_span_id: SpanId,
    /// See [`flags`](crate::span::flags).
    pub flags: u32,
    /// When it began, in nanoseconds since 1970.
    pub start_unix_nano: u64,
    /// When it ended, in nanoseconds since 1970.
    pub end_unix_nano: u64,
}

impl Execution {
    /// The same, as any span begins.
    pub(super) fn start<'a, H>(&self, title: &'a H) -> SpanStart<'a, H> {
        SpanStart {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent_span_id: Some(self.parent_span_id),
            trace_state: "",
            flags: self.flags,
            title: title.into(),
            start_unix_nano: self.start_unix_nano,
            end_unix_nano: self.end_unix_nano,
        }
    }
}
