//! What was reported of a span while it ran.

use crate::id::{SpanId, TraceId};
use crate::recording::value::{self, ValueRef};
use crate::span;

/// An event of a recorded span.
#[derive(Clone, Copy, Debug)]
pub struct RecordedEvent<'a> {
    /// What happened.
    pub name: &'a str,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    pub(super) attributes: &'a [u64],
}

impl<'a> RecordedEvent<'a> {
    /// What is known about it.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        value::keyed(self.attributes)
    }

    pub(super) fn to_event(self) -> span::Event {
        span::Event {
            time_unix_nano: self.time,
            name: self.name.to_owned(),
            attributes: owned(self.attributes()),
            dropped_attributes: 0,
        }
    }
}

/// A link of a recorded span.
#[derive(Clone, Copy, Debug)]
pub struct RecordedLink<'a> {
    /// The other span's trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// The other span's flags.
    pub flags: u32,
    pub(super) attributes: &'a [u64],
}

impl<'a> RecordedLink<'a> {
    /// What is known about the relation.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        value::keyed(self.attributes)
    }

    pub(super) fn to_link(self) -> span::Link {
        span::Link {
            trace_id: self.trace_id,
            span_id: self.span_id,
            trace_state: String::new(),
            attributes: owned(self.attributes()),
            dropped_attributes: 0,
            flags: self.flags,
        }
    }
}

/// Attributes with all they own.
pub(super) fn owned<'a>(
    attributes: impl IntoIterator<Item = (&'a str, ValueRef<'a>)>,
) -> span::Attributes {
    attributes.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}
