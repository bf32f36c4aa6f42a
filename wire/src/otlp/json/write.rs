//! The direct writer: spans → JSON lines, pushed field by field.
//!
//! Nothing is allocated but the growth of the output: what is constant (resource, name, keys) is
//! encoded once, into heads. A line is one `TracesData` of one resource and one scope. Fields stand
//! in the order of OTLP's definition; empty ones are left out. The types follow that order, so that
//! a line cannot be malformed:
//!
//! ```
//! use stagetrace_wire::id::{SpanId, TraceId};
//! use stagetrace_wire::otlp::json::{KeyHead, LineWriter, ResourceHead, SpanHead, SpanStart};
//! use stagetrace_wire::span::{Resource, Scope, SpanKind, StatusCode, Value};
//!
//! let resource = ResourceHead::new(&Resource::default(), &Scope::default());
//! let (head, steps) = (SpanHead::new("denoise", SpanKind::Internal), KeyHead::new("steps"));
//!
//! let mut out = Vec::new();
//! let mut line = LineWriter::begin(&mut out, &resource);
//! let mut span = line.span(&SpanStart {
//!     trace_id: TraceId::from_u128(1).unwrap(),
//!     span_id: SpanId::from_u64(2).unwrap(),
//!     parent_span_id: None,
//!     trace_state: "",
//!     flags: 0x103,
//!     title: (&head).into(),
//!     start_unix_nano: 5,
//!     end_unix_nano: 9,
//! });
//! span.attribute(&steps, &Value::I64(20));
//! let mut events = span.events(0);
//! events.event("first step", 6).attribute("at", &Value::F64(0.5));
//! events.links(0).finish(0, StatusCode::Unset, "");
//! line.finish();
//! assert!(out.ends_with(b"]}]}]}\n"));
//! ```

use crate::otlp::start;
use crate::span::{Resource, Scope, SpanKind};

mod members;
mod owned;
mod span;
mod template;
mod text;
mod value;

use members::Members;
pub use members::{AttributeHead, AttributeKey, KeyHead};
pub use owned::{write_lines, write_spans};
pub use span::{EventsWriter, ItemWriter, LinksWriter, SpanWriter};
pub use template::{SpanTemplate, TemplateAttributes};
pub use value::{AttributeValue, MAX_VALUE_DEPTH};

/// All that a line says before and after its spans, encoded once.
#[derive(Clone, Debug)]
pub struct ResourceHead {
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// Name and kind of the spans of one place in the source, encoded once.
#[derive(Clone, Debug)]
pub struct SpanHead(Vec<u8>);

/// Name and kind of a span.
pub type Title<'a> = start::Title<'a, SpanHead>;

/// What a span begins with.
pub type SpanStart<'a> = start::SpanStart<'a, SpanHead>;

/// Writes one line of spans behind what the output already holds.
///
/// A span that is not finished before the next one begins is taken back, and so is a line that is
/// dropped without [`finish`](LineWriter::finish).
#[derive(Debug)]
#[must_use = "without `finish` the line is taken back"]
pub struct LineWriter<'o> {
    out: &'o mut Vec<u8>,
    resource: &'o ResourceHead,
    /// Where the line begins.
    start: usize,
    progress: Progress,
}

/// A line that was begun and goes on later, behind what its output holds.
#[derive(Debug)]
#[must_use = "without `LineWriter::resume` the line stays torn"]
pub struct Suspended {
    start: usize,
    progress: Progress,
}

/// How far a line is complete.
#[derive(Debug)]
struct Progress {
    /// Where the last finished span ends, or else the head.
    end: usize,
    spans: usize,
}

impl ResourceHead {
    /// Encodes what all spans of a process and library have in common.
    pub fn new(resource: &Resource, scope: &Scope) -> Self {
        let mut head = br#"{"resourceSpans":[{"resource":"#.to_vec();
        let mut members = Members::begin(&mut head);
        members.attributes(&resource.attributes, resource.dropped_attributes);
        members.end();
        head.extend_from_slice(br#","scopeSpans":[{"scope":"#);
        let mut members = Members::begin(&mut head);
        members.text(r#""name":"#, &scope.name);
        members.text(r#""version":"#, &scope.version);
        members.attributes(&scope.attributes, scope.dropped_attributes);
        members.end();
        head.extend_from_slice(br#","spans":["#);

        let mut tail = b"]".to_vec();
        Members::resume(&mut tail).text(r#""schemaUrl":"#, &scope.schema_url);
        tail.extend_from_slice(b"}]");
        Members::resume(&mut tail).text(r#""schemaUrl":"#, &resource.schema_url);
        tail.extend_from_slice(b"}]}\n");
        Self { head, tail }
    }
}

impl SpanHead {
    /// Encodes name and kind.
    pub fn new(name: &str, kind: SpanKind) -> Self {
        let mut encoded = Vec::with_capacity(name.len() + 24);
        write_title(&mut encoded, name, kind);
        Self(encoded)
    }
}

impl<'o> LineWriter<'o> {
    /// Begins a line at the end of `out`.
    pub fn begin(out: &'o mut Vec<u8>, resource: &'o ResourceHead) -> Self {
        let start = out.len();
        out.extend_from_slice(&resource.head);
        let progress = Progress { end: out.len(), spans: 0 };
        Self { out, resource, start, progress }
    }

    /// Begins a span, which counts when it is finished.
    pub fn span(&mut self, start: &SpanStart<'_>) -> SpanWriter<'_> {
        self.separate();
        write_start(self.out, start);
        SpanWriter::new(self.out, &mut self.progress)
    }

    /// Makes ready for a span.
    fn separate(&mut self) {
        self.out.truncate(self.progress.end);
        if self.progress.spans > 0 {
            self.out.push(b',');
        }
    }

    /// Puts the line aside, with the spans that were finished; its output must not change until it
    /// is resumed.
    pub fn suspend(mut self) -> Suspended {
        let Progress { end, spans } = self.progress;
        self.out.truncate(end);
        let suspended = Suspended { start: self.start, progress: Progress { end, spans } };
        self.start = end;
        suspended
    }

    /// Goes on with a line that was put aside.
    pub fn resume(
        out: &'o mut Vec<u8>,
        resource: &'o ResourceHead,
        Suspended { start, progress }: Suspended,
    ) -> Self {
        Self { out, resource, start, progress }
    }

    /// Spans that were finished.
    pub fn spans(&self) -> usize {
        self.progress.spans
    }

    /// Bytes that the line would have if it were finished now.
    pub fn len(&self) -> usize {
        self.progress.end - self.start + self.resource.tail.len()
    }

    /// Whether no span was finished.
    pub fn is_empty(&self) -> bool {
        self.progress.spans == 0
    }

    /// Ends the line, newline included. A line without spans is not written.
    pub fn finish(mut self) {
        if !self.is_empty() {
            self.out.truncate(self.progress.end);
            self.out.extend_from_slice(&self.resource.tail);
            self.start = self.out.len();
        }
    }
}

impl Drop for LineWriter<'_> {
    fn drop(&mut self) {
        self.out.truncate(self.start);
    }
}

fn write_start(out: &mut Vec<u8>, start: &SpanStart<'_>) {
    out.extend_from_slice(br#"{"traceId":""#);
    out.extend_from_slice(&start.trace_id.to_hex());
    out.extend_from_slice(br#"","spanId":""#);
    out.extend_from_slice(&start.span_id.to_hex());
    out.push(b'"');
    let mut members = Members::resume(out);
    members.text(r#""traceState":"#, start.trace_state);
    if let Some(parent) = start.parent_span_id {
        let out = members.key(r#""parentSpanId":""#);
        out.extend_from_slice(&parent.to_hex());
        out.push(b'"');
    }
    members.number(r#""flags":"#, start.flags);
    match start.title {
        Title::Encoded(SpanHead(encoded)) => out.extend_from_slice(encoded),
        Title::Plain(name, kind) => write_title(out, name, kind),
    }
    let mut members = Members::resume(out);
    members.nanos(r#""startTimeUnixNano":"#, start.start_unix_nano);
    members.nanos(r#""endTimeUnixNano":"#, start.end_unix_nano);
}

fn write_title(out: &mut Vec<u8>, name: &str, kind: SpanKind) {
    let mut members = Members::resume(out);
    members.text(r#""name":"#, name);
    members.number(r#""kind":"#, kind as u32);
}
