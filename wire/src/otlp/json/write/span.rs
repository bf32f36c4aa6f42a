//! The parts of a span, in the order in which they are written: attributes, events, links, status.

use super::Progress;
use super::members::{AttributeHead, AttributeKey, Members, write_attribute};
use super::value::AttributeValue;
use crate::id::{SpanId, TraceId};
use crate::span::StatusCode;

const ATTRIBUTES: &str = r#""attributes":["#;

/// A span whose attributes are being written.
#[derive(Debug)]
#[must_use = "a span counts when it is finished"]
pub struct SpanWriter<'l>(Part<'l>);

/// A span whose events are being written.
#[derive(Debug)]
#[must_use = "a span counts when it is finished"]
pub struct EventsWriter<'l>(Part<'l>);

/// A span whose links are being written.
#[derive(Debug)]
#[must_use = "a span counts when it is finished"]
pub struct LinksWriter<'l>(Part<'l>);

/// An event or a link whose attributes are being written. Ends when dropped.
#[derive(Debug)]
pub struct ItemWriter<'i> {
    attributes: List<'i>,
    dropped_attributes: u32,
    /// Of a link; they stand last.
    flags: u32,
}

impl<'l> SpanWriter<'l> {
    pub(super) fn new(out: &'l mut Vec<u8>, progress: &'l mut Progress) -> Self {
        Self(Part { list: List { out, open: false }, progress })
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) -> &mut Self {
        self.0.list.attribute(key, value);
        self
    }

    /// Adds an attribute that is encoded already.
    pub fn encoded(&mut self, attribute: &AttributeHead) -> &mut Self {
        self.0.list.encoded(attribute);
        self
    }

    /// Has the list of its attributes changed.
    pub(super) fn with_list(self, change: impl FnOnce(List<'l>) -> List<'l>) -> Self {
        let Part { list, progress } = self.0;
        Self(Part { list: change(list), progress })
    }

    /// Goes on to the events; so many attributes were dropped.
    pub fn events(mut self, dropped_attributes: u32) -> EventsWriter<'l> {
        self.0.list.close(r#""droppedAttributesCount":"#, dropped_attributes);
        EventsWriter(self.0)
    }

    /// Ends a span without events and links, of which nothing was dropped.
    pub fn finish(self, status: StatusCode, message: &str) {
        self.events(0).links(0).finish(0, status, message);
    }
}

impl<'l> EventsWriter<'l> {
    /// Adds an event. The time is in nanoseconds since 1970.
    pub fn event(&mut self, name: &str, time_unix_nano: u64) -> ItemWriter<'_> {
        let out = self.0.list.item(r#""events":["#);
        out.extend_from_slice(br#"{"timeUnixNano":""#);
        out.extend_from_slice(itoa::Buffer::new().format(time_unix_nano).as_bytes());
        out.push(b'"');
        Members::resume(out).text(r#""name":"#, name);
        ItemWriter::new(out, 0)
    }

    /// Goes on to the links; so many events were dropped.
    pub fn links(mut self, dropped_events: u32) -> LinksWriter<'l> {
        self.0.list.close(r#""droppedEventsCount":"#, dropped_events);
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
        let out = self.0.list.item(r#""links":["#);
        out.extend_from_slice(br#"{"traceId":""#);
        out.extend_from_slice(&trace_id.to_hex());
        out.extend_from_slice(br#"","spanId":""#);
        out.extend_from_slice(&span_id.to_hex());
        out.push(b'"');
        Members::resume(out).text(r#""traceState":"#, trace_state);
        ItemWriter::new(out, flags)
    }

    /// Ends the span; so many links were dropped.
    pub fn finish(mut self, dropped_links: u32, status: StatusCode, message: &str) {
        self.0.list.close(r#""droppedLinksCount":"#, dropped_links);
        let Part { list: List { out, .. }, progress } = self.0;
        if status != StatusCode::Unset || !message.is_empty() {
            let mut span = Members::resume(out);
            let mut members = Members::begin(span.key(r#""status":"#));
            members.text(r#""message":"#, message);
            members.number(r#""code":"#, status as u32);
            members.end();
        }
        out.push(b'}');
        progress.end = out.len();
        progress.spans += 1;
    }
}

impl<'i> ItemWriter<'i> {
    fn new(out: &'i mut Vec<u8>, flags: u32) -> Self {
        Self { attributes: List { out, open: false }, dropped_attributes: 0, flags }
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) -> &mut Self {
        self.attributes.attribute(key, value);
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
        let Self { attributes, dropped_attributes, flags } = self;
        attributes.close(r#""droppedAttributesCount":"#, *dropped_attributes);
        Members::resume(attributes.out).number(r#""flags":"#, *flags);
        attributes.out.push(b'}');
    }
}

/// A span up to the list that is being written.
#[derive(Debug)]
struct Part<'l> {
    list: List<'l>,
    progress: &'l mut Progress,
}

/// A list that is left out if it is empty. Never the first member of its object.
#[derive(Debug)]
pub(super) struct List<'l> {
    pub(super) out: &'l mut Vec<u8>,
    /// Whether it has items.
    pub(super) open: bool,
}

impl List<'_> {
    /// Begins an item.
    fn item(&mut self, key: &'static str) -> &mut Vec<u8> {
        Members::resume(self.out).key(if self.open { "" } else { key });
        self.open = true;
        self.out
    }

    pub(super) fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) {
        write_attribute(self.item(ATTRIBUTES), key, value);
    }

    /// Adds an attribute that is encoded already.
    pub(super) fn encoded(&mut self, attribute: &AttributeHead) {
        attribute.write(self.item(ATTRIBUTES));
    }

    /// Ends the list and says how many items were dropped.
    pub(super) fn close(&mut self, dropped_key: &'static str, dropped: u32) {
        if self.open {
            self.out.push(b']');
            self.open = false;
        }
        Members::resume(self.out).number(dropped_key, dropped);
    }
}
