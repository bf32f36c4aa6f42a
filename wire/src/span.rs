//! One span as it is read or written, with all it owns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::context::{TraceContext, TraceFlags};
use crate::id::{SpanId, TraceId};

mod memory;
mod tree;
mod value;

pub use tree::tree;
pub use value::{Attributes, Value, find};

/// A finished or open execution of a stage, or of any other operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace.
    pub trace_id: TraceId,
    /// The span within it.
    pub span_id: SpanId,
    /// The span it is part of; `None` for a root.
    pub parent_span_id: Option<SpanId>,
    /// The W3C `tracestate`, as received.
    pub trace_state: String,
    /// The W3C flags and what is known of the parent: see [`flags`].
    pub flags: u32,
    /// What was done.
    pub name: String,
    /// Its part in a call between processes.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub start_unix_nano: u64,
    /// When it ended, in nanoseconds since 1970; 0 if it has not ended. May lie before the start:
    /// clocks do.
    pub end_unix_nano: u64,
    /// What is known about it, in order of recording.
    pub attributes: Attributes,
    /// Attributes that were recorded but not kept.
    pub dropped_attributes: u32,
    /// What happened meanwhile.
    pub events: Vec<Event>,
    /// Events that were recorded but not kept.
    pub dropped_events: u32,
    /// Spans it relates to, of this trace or others.
    pub links: Vec<Link>,
    /// Links that were recorded but not kept.
    pub dropped_links: u32,
    /// Whether it succeeded.
    pub status: Status,
    /// The process that recorded it.
    pub resource: Arc<Resource>,
    /// The library that recorded it.
    pub scope: Arc<Scope>,
}

/// The bits of `flags` of spans and links. The low eight are [`TraceFlags`].
pub mod flags {
    /// The low eight bits: the W3C flags.
    pub const TRACE_FLAGS: u32 = 0xff;
    /// It is known whether the parent (of a link: the linked span) is remote.
    pub const HAS_IS_REMOTE: u32 = 0x100;
    /// The parent (of a link: the linked span) belongs to another process.
    pub const IS_REMOTE: u32 = 0x200;
}

/// A span's part in a call between processes. The numbers are OTLP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SpanKind {
    /// Not said.
    #[default]
    Unspecified = 0,
    /// An operation within a process.
    Internal = 1,
    /// Serves a remote call.
    Server = 2,
    /// Makes a remote call.
    Client = 3,
    /// Sends a message or job.
    Producer = 4,
    /// Handles a message or job.
    Consumer = 5,
}

/// Something that happened at an instant of a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// When, in nanoseconds since 1970.
    pub time_unix_nano: u64,
    /// What.
    pub name: String,
    /// What is known about it.
    pub attributes: Attributes,
    /// Attributes that were recorded but not kept.
    pub dropped_attributes: u32,
}

/// A relation to another span.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The other span's trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// The W3C `tracestate` of the other span.
    pub trace_state: String,
    /// What is known about the relation.
    pub attributes: Attributes,
    /// Attributes that were recorded but not kept.
    pub dropped_attributes: u32,
    /// The other span's W3C flags and whether it is remote: see [`flags`].
    pub flags: u32,
}

/// Whether an operation succeeded. Unset on plain success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The verdict.
    pub code: StatusCode,
    /// What went wrong, for people.
    pub message: String,
}

/// The verdict of a [`Status`]. The numbers are OTLP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StatusCode {
    /// Nothing went wrong as far as is known.
    #[default]
    Unset = 0,
    /// The user says that it succeeded.
    Ok = 1,
    /// It failed.
    Error = 2,
}

/// The process that recorded a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// What is known about it.
    pub attributes: Attributes,
    /// Attributes that were known but not kept.
    pub dropped_attributes: u32,
    /// The semantic conventions that its attributes follow.
    pub schema_url: String,
}

/// The library that recorded a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What else is known about it.
    pub attributes: Attributes,
    /// Attributes that were known but not kept.
    pub dropped_attributes: u32,
    /// The semantic conventions that its spans follow.
    pub schema_url: String,
}

impl Span {
    /// A span of which only the identity is known: all else is empty or 0.
    pub fn new(trace_id: TraceId, span_id: SpanId) -> Self {
        Self {
            trace_id,
            span_id,
            parent_span_id: None,
            trace_state: String::new(),
            flags: 0,
            name: String::new(),
            kind: SpanKind::default(),
            start_unix_nano: 0,
            end_unix_nano: 0,
            attributes: Attributes::new(),
            dropped_attributes: 0,
            events: Vec::new(),
            dropped_events: 0,
            links: Vec::new(),
            dropped_links: 0,
            status: Status::default(),
            resource: Arc::default(),
            scope: Arc::default(),
        }
    }

    /// What makes it this span and no other.
    pub fn identity(&self) -> (TraceId, SpanId) {
        (self.trace_id, self.span_id)
    }

    /// Whether the same process and library recorded the other one.
    pub(crate) fn has_origin_of(&self, other: &Span) -> bool {
        fn same<T: PartialEq>(one: &Arc<T>, other: &Arc<T>) -> bool {
            Arc::ptr_eq(one, other) || one == other
        }
        same(&self.resource, &other.resource) && same(&self.scope, &other.scope)
    }

    /// The span as its children in other processes know it.
    pub fn context(&self) -> TraceContext {
        let flags = TraceFlags::from_bits((self.flags & flags::TRACE_FLAGS) as u8);
        TraceContext { trace_id: self.trace_id, span_id: self.span_id, flags }
    }

    /// Whether the end was recorded.
    pub fn has_ended(&self) -> bool {
        self.end_unix_nano != 0
    }

    /// Nanoseconds from start to end. `None` if it has not ended, or ended before its start.
    pub fn duration_nano(&self) -> Option<u64> {
        if self.has_ended() { self.end_unix_nano.checked_sub(self.start_unix_nano) } else { None }
    }

    /// The value of an attribute of the span itself.
    pub fn attribute(&self, key: &str) -> Option<&Value> {
        find(&self.attributes, key)
    }
}

impl Resource {
    /// The value of an attribute.
    pub fn attribute(&self, key: &str) -> Option<&Value> {
        find(&self.attributes, key)
    }

    /// The attribute `service.name`, if it is a text.
    pub fn service_name(&self) -> Option<&str> {
        self.attribute("service.name")?.as_str()
    }
}

impl SpanKind {
    /// The kind of OTLP's number; those unknown are [`SpanKind::Unspecified`].
    pub const fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Internal,
            2 => Self::Server,
            3 => Self::Client,
            4 => Self::Producer,
            5 => Self::Consumer,
            _ => Self::Unspecified,
        }
    }

    /// The lower-case name: `unspecified`, `internal`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Internal => "internal",
            Self::Server => "server",
            Self::Client => "client",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }
}

impl StatusCode {
    /// The code of OTLP's number; those unknown are [`StatusCode::Unset`].
    pub const fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Ok,
            2 => Self::Error,
            _ => Self::Unset,
        }
    }

    /// The lower-case name: `unset`, `ok` or `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

/// Keeps one of the spans with the same identity, as senders repeat batches: the first that has
/// ended, else the first; it stands where the first stood. Returns how many were taken out.
pub fn deduplicate(spans: &mut Vec<Span>) -> usize {
    let before = spans.len();
    let mut places = HashMap::with_capacity(before);
    let mut kept: Vec<Span> = Vec::with_capacity(before);
    for span in spans.drain(..) {
        match places.entry(span.identity()) {
            Entry::Vacant(entry) => {
                entry.insert(kept.len());
                kept.push(span);
            }
            Entry::Occupied(entry) => {
                let first = &mut kept[*entry.get()];
                if span.has_ended() && !first.has_ended() {
                    *first = span;
                }
            }
        }
    }
    *spans = kept;
    before - spans.len()
}

#[cfg(test)]
mod tests;
