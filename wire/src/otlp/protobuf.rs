//! OTLP in protobuf: the body of a request over gRPC or HTTP.
//!
//! Spans are pushed field by field, as into the JSON writer, and nothing is allocated but the
//! growth of the output. The bytes are those of prost: fields in the order of their numbers, what
//! is empty left out, lengths in as few bytes as they need. A request is one `TracesData` of one
//! resource and one scope, which is also an `ExportTraceServiceRequest`. [`read_request`] reads those
//! of any sender.
//!
//! ```
//! use stagetrace_wire::id::{SpanId, TraceId};
//! use stagetrace_wire::otlp::protobuf::{KeyHead, Request, ResourceHead, SpanHead, SpanStart};
//! use stagetrace_wire::span::{Resource, Scope, SpanKind, StatusCode, Value};
//!
//! let resource = ResourceHead::new(&Resource::default(), &Scope::default());
//! let (head, steps) = (SpanHead::new("denoise", SpanKind::Internal), KeyHead::new("steps"));
//!
//! let mut request = Request::new();
//! let mut span = request.span(&resource, &SpanStart {
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
//! assert_eq!(request.finish(&resource).len(), request.len(&resource));
//! ```

use crate::otlp::start;
use crate::span::{Resource, Scope, SpanKind};

mod field;
mod owned;
mod read;
mod span;
mod template;
mod value;

pub use field::{AttributeHead, AttributeKey, KeyHead};
use field::{Part, put_message, put_text, put_uint, varint_len};
pub use owned::write_request;
pub use read::{MAX_DEPTH, Malformed, read_request};
pub use span::{EventsWriter, ItemWriter, LinksWriter, SpanWriter};
pub use template::{SpanTemplate, TemplateAttributes};
pub use value::AttributeValue;

/// What a resource, its scope and their spans have around them, encoded once.
#[derive(Clone, Debug)]
pub struct ResourceHead {
    resource: Vec<u8>,
    scope: Vec<u8>,
    /// What follows the spans of the scope.
    scope_tail: Vec<u8>,
    /// What follows the scope.
    resource_tail: Vec<u8>,
}

/// Name and kind of the spans of one place in the source, encoded once.
#[derive(Clone, Debug)]
pub struct SpanHead(Vec<u8>);

/// Name and kind of a span.
pub type Title<'a> = start::Title<'a, SpanHead>;

/// What a span begins with.
pub type SpanStart<'a> = start::SpanStart<'a, SpanHead>;

/// A request that grows span by span. Its memory serves again after [`Request::clear`].
///
/// All of its calls are to be given the same head. A span that is not finished before the next one
/// begins is taken back.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Room for what stands before the spans, whose length is known last; then the spans.
    bytes: Vec<u8>,
    room: usize,
    /// Where the last finished span ends.
    end: usize,
    spans: usize,
    /// Bytes that the length of the last span took: that of the next takes as many, mostly.
    width: usize,
}

/// Fields of a request, resource and scope; each is a message or a text.
const RESOURCE_SPANS: u8 = tag(1);
const RESOURCE: u8 = tag(1);
const SCOPE_SPANS: u8 = tag(2);
const SCOPE: u8 = tag(1);
const SPANS: u8 = tag(2);
const SCHEMA_URL: u8 = tag(3);

/// The tag of a field with a length.
const fn tag(number: u8) -> u8 {
    number << 3 | 2
}

impl ResourceHead {
    /// Encodes what all spans of a process and library have in common.
    pub fn new(resource: &Resource, scope: &Scope) -> Self {
        let mut message = Vec::new();
        field::put_attributes(&mut message, tag(1), &resource.attributes);
        put_uint(&mut message, 2 << 3, resource.dropped_attributes);
        let mut of_resource = Vec::new();
        put_message(&mut of_resource, RESOURCE, &message);

        message.clear();
        put_text(&mut message, tag(1), &scope.name);
        put_text(&mut message, tag(2), &scope.version);
        field::put_attributes(&mut message, tag(3), &scope.attributes);
        put_uint(&mut message, 4 << 3, scope.dropped_attributes);
        let mut of_scope = Vec::new();
        put_message(&mut of_scope, SCOPE, &message);

        let mut head = Self {
            resource: of_resource,
            scope: of_scope,
            scope_tail: Vec::new(),
            resource_tail: Vec::new(),
        };
        put_text(&mut head.scope_tail, SCHEMA_URL, &scope.schema_url);
        put_text(&mut head.resource_tail, SCHEMA_URL, &resource.schema_url);
        head
    }

    /// Most bytes that stand before the spans.
    fn room(&self) -> usize {
        const LENGTH: usize = 10;
        2 * (1 + LENGTH) + self.resource.len() + self.scope.len()
    }

    /// Bytes of the scope with its spans, and of the resource with that, for spans of `spans`
    /// bytes.
    fn lengths(&self, spans: usize) -> (usize, usize) {
        let of_scope = self.scope.len() + spans + self.scope_tail.len();
        let scope = 1 + varint_len(of_scope as u64) + of_scope;
        (of_scope, self.resource.len() + scope + self.resource_tail.len())
    }
}

impl SpanHead {
    /// Encodes name and kind.
    pub fn new(name: &str, kind: SpanKind) -> Self {
        let mut encoded = Vec::with_capacity(name.len() + 8);
        span::put_title(&mut encoded, name, kind);
        Self(encoded)
    }
}

impl Request {
    /// An empty request, without memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes ready for a span.
    #[inline]
    fn begin(&mut self, resource: &ResourceHead) {
        if self.spans == 0 {
            self.room = resource.room();
            self.end = self.room;
            self.bytes.resize(self.end, 0);
        }
        self.bytes.truncate(self.end);
    }

    /// Begins a span, which counts when it is finished.
    #[inline]
    pub fn span(&mut self, resource: &ResourceHead, start: &SpanStart<'_>) -> SpanWriter<'_> {
        self.begin(resource);
        let part = Part::begin(&mut self.bytes, SPANS, self.width.max(1));
        SpanWriter::new(
            span::Progress {
                out: &mut self.bytes,
                end: &mut self.end,
                spans: &mut self.spans,
                width: &mut self.width,
            },
            part,
            start,
        )
    }

    /// Spans that were finished.
    pub fn spans(&self) -> usize {
        self.spans
    }

    /// Whether no span was finished.
    pub fn is_empty(&self) -> bool {
        self.spans == 0
    }

    /// Bytes of the spans that were finished.
    pub fn span_bytes(&self) -> usize {
        self.end - self.room
    }

    /// Bytes that [`Request::finish`] would give now.
    pub fn len(&self, resource: &ResourceHead) -> usize {
        if self.is_empty() {
            return 0;
        }
        let (_, of_resource) = resource.lengths(self.span_bytes());
        1 + varint_len(of_resource as u64) + of_resource
    }

    /// The encoded request; empty without spans. More spans may follow all the same.
    pub fn finish(&mut self, resource: &ResourceHead) -> &[u8] {
        if self.is_empty() {
            return &[];
        }
        let len = self.len(resource);
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(&resource.scope_tail);
        self.bytes.extend_from_slice(&resource.resource_tail);
        let start = self.bytes.len() - len;

        let (of_scope, of_resource) = resource.lengths(self.span_bytes());
        let mut head = Head { bytes: &mut self.bytes[start..self.room] };
        head.length(RESOURCE_SPANS, of_resource);
        head.put(&resource.resource);
        head.length(SCOPE_SPANS, of_scope);
        head.put(&resource.scope);
        debug_assert!(head.bytes.is_empty(), "the head ends where the spans begin");
        &self.bytes[start..]
    }

    /// Keeps the first `at` spans, and gives a request with the others.
    pub fn split_off(&mut self, at: usize) -> Request {
        let at = at.min(self.spans);
        let mut cut = self.room;
        for _ in 0..at {
            cut += field::len_of_message(&self.bytes[cut..self.end]);
        }
        let mut bytes = vec![0; self.room];
        bytes.extend_from_slice(&self.bytes[cut..self.end]);
        let rest = Request {
            end: bytes.len(),
            bytes,
            room: self.room,
            spans: self.spans - at,
            width: self.width,
        };
        self.bytes.truncate(cut);
        (self.end, self.spans) = (cut, at);
        rest
    }

    /// Forgets the spans and keeps the memory, up to so many bytes of it.
    pub fn clear(&mut self, keep: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        (self.room, self.end, self.spans) = (0, 0, 0);
    }
}

/// Writes into a place that is there already.
struct Head<'b> {
    bytes: &'b mut [u8],
}

impl Head<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (place, rest) = std::mem::take(&mut self.bytes).split_at_mut(bytes.len());
        place.copy_from_slice(bytes);
        self.bytes = rest;
    }

    fn length(&mut self, tag: u8, length: usize) {
        self.put(&[tag]);
        let varint = field::Varint::of(length as u64);
        self.put(&varint.padded()[..varint.len]);
    }
}
