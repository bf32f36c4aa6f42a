//! The parts of a span, in the order in which they are written: attributes, events, links, status.

use super::field::{
    AttributeHead, AttributeKey, Part, put_attribute, put_message, put_text, put_uint,
};
use super::value::AttributeValue;
use super::{SpanHead, SpanStart, Title, tag};
use crate::id::{SpanId, TraceId};
use crate::otlp::Execution;
use crate::span::{SpanKind, StatusCode};

/// A span whose attributes are being written.
#[derive(Debug)]
#[must_use = "a span counts when it is finished"]
pub struct SpanWriter<'r>(Open<'r>);

/// A span whose events are being written.
#[derive(Debug)]
#[must_use = "a span counts when it is finished"]
pub struct EventsWriter<'r>(Open<'r>);

/// A span whose links are being written.
#[derive(Debug)]
#[must_use = "a span counts when it is finished"]
pub struct LinksWriter<'r>(Open<'r>);

/// An event or a link whose attributes are being written. Ends when dropped.
#[derive(Debug)]
pub struct ItemWriter<'i> {
    out: &'i mut Vec<u8>,
    part: Part,
    fields: ItemFields,
    dropped_attributes: u32,
    /// Of a link; they stand last.
    flags: u32,
}

/// A span that is being written, and its request.
#[derive(Debug)]
struct Open<'r> {
    progress: Progress<'r>,
    part: Part,
    /// They stand last.
    flags: u32,
}

/// How far a request is complete.
#[derive(Debug)]
pub(super) struct Progress<'r> {
    pub(super) out: &'r mut Vec<u8>,
    pub(super) end: &'r mut usize,
    pub(super) spans: &'r mut usize,
    pub(super) width: &'r mut usize,
}

/// What differs between events and links.
#[derive(Clone, Copy, Debug)]
struct ItemFields {
    attributes: u8,
    dropped_attributes: u8,
}

const EVENT: ItemFields = ItemFields { attributes: tag(3), dropped_attributes: 4 << 3 };
const LINK: ItemFields = ItemFields { attributes: tag(4), dropped_attributes: 5 << 3 };

const TRACE_ID: [u8; 2] = [tag(1), 16];
const SPAN_ID: [u8; 2] = [tag(2), 8];
const TRACE_STATE: u8 = tag(3);
const PARENT: [u8; 2] = [tag(4), 8];
const NAME: u8 = tag(5);
const KIND: u8 = 6 << 3;
const START: u8 = 7 << 3 | 1;
const END: u8 = 8 << 3 | 1;
pub(super) const ATTRIBUTES: u8 = tag(9);
const DROPPED_ATTRIBUTES: u8 = 10 << 3;
const EVENTS: u8 = tag(11);
const DROPPED_EVENTS: u8 = 12 << 3;
const LINKS: u8 = tag(13);
const DROPPED_LINKS: u8 = 14 << 3;
const STATUS: u8 = tag(15);
/// 16 takes two bytes: fixed, 32 bits.
const FLAGS: [u8; 2] = [0x85, 0x01];
/// Bytes of the fields of trace, span and parent.
pub(super) const IDS_AND_PARENT: usize = 38;
/// Bytes of the fields of both times.
pub(super) const TIMES: usize = 18;
/// Of a status.
const MESSAGE: u8 = tag(2);
const CODE: u8 = 3 << 3;
/// Of an event.
const EVENT_TIME: u8 = 1 << 3 | 1;
const EVENT_NAME: u8 = tag(2);
/// Of a link.
const LINK_FLAGS: u8 = 6 << 3 | 5;

impl<'r> SpanWriter<'r> {
    #[inline]
    pub(super) fn new(progress: Progress<'r>, part: Part, start: &SpanStart<'_>) -> Self {
        let out = &mut *progress.out;
        let mut ids = [0; IDS_AND_PARENT];
        ids[..28].copy_from_slice(&fields_of_ids(start.trace_id, start.span_id));
        match start.parent_span_id {
            Some(parent) => {
                ids[28..30].copy_from_slice(&PARENT);
                ids[30..].copy_from_slice(&parent.to_bytes());
                if start.trace_state.is_empty() {
                    out.extend_from_slice(&ids);
                } else {
                    out.extend_from_slice(&ids[..28]);
                    put_text(out, TRACE_STATE, start.trace_state);
                    out.extend_from_slice(&ids[28..]);
                }
            }
            None => {
                out.extend_from_slice(&ids[..28]);
                put_text(out, TRACE_STATE, start.trace_state);
            }
        }
        match start.title {
            Title::Encoded(SpanHead(encoded)) => out.extend_from_slice(encoded),
            Title::Plain(name, kind) => put_title(out, name, kind),
        }
        put_times(out, start.start_unix_nano, start.end_unix_nano);
        Self(Open { progress, part, flags: start.flags })
    }

    /// Adds an attribute.
    #[inline]
    pub fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) -> &mut Self {
        put_attribute(self.0.progress.out, ATTRIBUTES, key, value);
        self
    }

    /// Adds an attribute that is encoded already.
    #[inline]
    pub fn encoded(&mut self, attribute: &AttributeHead) -> &mut Self {
        put_message(self.0.progress.out, ATTRIBUTES, attribute.content());
        self
    }

    /// Where attributes are written to.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        self.0.progress.out
    }

    /// Goes on to the events; so many attributes were dropped.
    #[inline]
    pub fn events(self, dropped_attributes: u32) -> EventsWriter<'r> {
        put_uint(self.0.progress.out, DROPPED_ATTRIBUTES, dropped_attributes);
        EventsWriter(self.0)
    }

    /// Ends a span without events and links, of which nothing was dropped.
    pub fn finish(self, status: StatusCode, message: &str) {
        self.events(0).links(0).finish(0, status, message);
    }
}

impl<'r> EventsWriter<'r> {
    /// Adds an event. The time is in nanoseconds since 1970.
    pub fn event(&mut self, name: &str, time_unix_nano: u64) -> ItemWriter<'_> {
        let item = ItemWriter::begin(self.0.progress.out, EVENTS, EVENT, 0);
        put_fixed(item.out, EVENT_TIME, time_unix_nano);
        put_text(item.out, EVENT_NAME, name);
        item
    }

    /// Goes on to the links; so many events were dropped.
    #[inline]
    pub fn links(self, dropped_events: u32) -> LinksWriter<'r> {
        put_uint(self.0.progress.out, DROPPED_EVENTS, dropped_events);
        LinksWriter(self.0)
    }
}

impl LinksWriter<'_> {
    /// Adds a link to another span. For its flags see [`flags`](crate::span::flags).
    pub fn link(
        &mut self,
        trace_id: TraceId,
        span_id: SpanId,
        trace_state: &str,
        flags: u32,
    ) -> ItemWriter<'_> {
        let item = ItemWriter::begin(self.0.progress.out, LINKS, LINK, flags);
        item.out.extend_from_slice(&fields_of_ids(trace_id, span_id));
        put_text(item.out, TRACE_STATE, trace_state);
        item
    }

    /// Ends the span; so many links were dropped.
    #[inline]
    pub fn finish(self, dropped_links: u32, status: StatusCode, message: &str) {
        let Open { progress, part, flags } = self.0;
        let out = progress.out;
        put_uint(out, DROPPED_LINKS, dropped_links);
        if status != StatusCode::Unset || !message.is_empty() {
            let part = Part::begin(out, STATUS, 1);
            put_text(out, MESSAGE, message);
            put_uint(out, CODE, status as u32);
            part.end(out);
        }
        if flags != 0 {
            let [a, b, c, d] = flags.to_le_bytes();
            out.extend_from_slice(&[FLAGS[0], FLAGS[1], a, b, c, d]);
        }
        *progress.width = part.end(out);
        *progress.end = out.len();
        *progress.spans += 1;
    }
}

impl<'i> ItemWriter<'i> {
    fn begin(out: &'i mut Vec<u8>, tag: u8, fields: ItemFields, flags: u32) -> Self {
        let part = Part::begin(out, tag, 1);
        Self { out, part, fields, dropped_attributes: 0, flags }
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) -> &mut Self {
        put_attribute(self.out, self.fields.attributes, key, value);
        self
    }

    /// Says how many attributes were dropped.
    pub fn dropped_attributes(&mut self, count: u32) -> &mut Self {
        self.dropped_attributes = count;
        self
    }
}

impl Drop for ItemWriter<'_> {
    fn drop(&mut self) {
        let Self { out, part, fields, dropped_attributes, flags } = self;
        put_uint(out, fields.dropped_attributes, *dropped_attributes);
        if *flags != 0 {
            out.push(LINK_FLAGS);
            out.extend_from_slice(&flags.to_le_bytes());
        }
        part.end(out);
    }
}

/// Puts name and kind, as far as they are said.
pub(super) fn put_title(out: &mut Vec<u8>, name: &str, kind: SpanKind) {
    put_text(out, NAME, name);
    put_uint(out, KIND, kind as u32);
}

/// Trace and span id, whose fields are the same in spans and links.
#[inline]
fn fields_of_ids(trace_id: TraceId, span_id: SpanId) -> [u8; 28] {
    let mut fields = [0; 28];
    fields[..2].copy_from_slice(&TRACE_ID);
    fields[2..18].copy_from_slice(&trace_id.to_bytes());
    fields[18..20].copy_from_slice(&SPAN_ID);
    fields[20..].copy_from_slice(&span_id.to_bytes());
    fields
}

/// Puts the ids into their fields.
#[inline]
pub(super) fn fill_ids(fields: &mut [u8; IDS_AND_PARENT], it: &Execution) {
    fields[2..18].copy_from_slice(&it.trace_id.to_bytes());
    fields[20..28].copy_from_slice(&it.span_id.to_bytes());
    fields[30..].copy_from_slice(&it.parent_span_id.to_bytes());
}

/// Puts the times into their fields.
#[inline]
pub(super) fn fill_times(fields: &mut [u8; TIMES], it: &Execution) {
    fields[1..9].copy_from_slice(&it.start_unix_nano.to_le_bytes());
    fields[10..].copy_from_slice(&it.end_unix_nano.to_le_bytes());
}

fn put_times(out: &mut Vec<u8>, start: u64, end: u64) {
    if start == 0 || end == 0 {
        put_fixed(out, START, start);
        put_fixed(out, END, end);
        return;
    }
    let mut fields = [0; TIMES];
    fields[0] = START;
    fields[1..9].copy_from_slice(&start.to_le_bytes());
    fields[9] = END;
    fields[10..].copy_from_slice(&end.to_le_bytes());
    out.extend_from_slice(&fields);
}

/// Puts a 64-bit time, unless it is 0.
fn put_fixed(out: &mut Vec<u8>, tag: u8, time: u64) {
    if time != 0 {
        out.push(tag);
        out.extend_from_slice(&time.to_le_bytes());
    }
}
