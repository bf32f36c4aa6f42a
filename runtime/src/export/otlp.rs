//! The direct way out: records → OTLP in protobuf, without a copy in between, sent by whatever the program gives.

use super::sites::Sites;
use super::supervised::{Batch, Encode, Failure, Outlet, Supervised};
use crate::collect::{Key, OpenSink, SpanView};
use stagetrace_wire::otlp::protobuf::{
    AttributeHead, KeyHead, Request, ResourceHead, SpanHead, SpanStart, SpanWriter,
};
use stagetrace_wire::recording::value::ValueRef;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Memory that a batch keeps when it is used again.
const KEPT: usize = 3 << 20;

/// A sink that encodes its spans and hands each batch to `send`, on a thread of its own.
pub(super) fn sending<E: fmt::Display>(
    name: &'static str,
    send: impl FnMut(&[u8]) -> Result<(), E> + Send + 'static,
) -> OpenSink {
    Box::new(move |resource, scope, batching| {
        let head = Arc::new(ResourceHead::new(resource, scope));
        let outlet = Sender { head: Arc::clone(&head), send };
        let encoder = Encoder { head, sites: Sites::new() };
        Box::new(Supervised::on_own_thread(name, encoder, batching, outlet))
    })
}

impl Batch for Request {
    fn spans(&self) -> usize {
        Request::spans(self)
    }

    fn bytes(&self) -> usize {
        self.span_bytes()
    }

    fn clear(&mut self) {
        Request::clear(self, KEPT);
    }
}

/// Hands requests over.
struct Sender<S> {
    head: Arc<ResourceHead>,
    send: S,
}

impl<E: fmt::Display, S: FnMut(&[u8]) -> Result<(), E> + Send> Outlet<Request> for Sender<S> {
    fn export(&mut self, batch: &mut Request, _: Duration) -> Result<(), Failure> {
        (self.send)(batch.finish(&self.head)).map_err(|error| Failure::refused(error.to_string()))
    }
}

/// Writes spans into requests.
#[derive(Debug)]
struct Encoder {
    head: Arc<ResourceHead>,
    sites: Sites<SiteHeads>,
}

/// What is constant of a site's spans, encoded.
#[derive(Debug)]
struct SiteHeads {
    span: SpanHead,
    keys: Vec<KeyHead>,
    function: AttributeHead,
}

impl SiteHeads {
    fn new(span: &SpanView<'_>) -> SiteHeads {
        let site = span.site;
        SiteHeads {
            span: SpanHead::new(site.stage().name(), site.kind()),
            keys: site.keys().iter().map(|key| KeyHead::new(key)).collect(),
            function: AttributeHead::new(Key::FUNCTION, ValueRef::Str(site.function())),
        }
    }
}

impl Encode for Encoder {
    type Batch = Request;

    fn add(&mut self, request: &mut Request, span: &SpanView<'_>) {
        let heads = self.sites.of(span, SiteHeads::new);
        let start = SpanStart {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent_span_id: span.parent,
            trace_state: "",
            flags: span.flags(),
            title: (&heads.span).into(),
            start_unix_nano: span.begin,
            end_unix_nano: span.end,
        };
        let mut writer = request.span(&self.head, &start);
        let dropped = span.attributes(|key, value| match key {
            Key::OfSite(at) => {
                if let Some(key) = heads.keys.get(at) {
                    writer.attribute(key, value);
                }
            }
            Key::Function => {
                writer.encoded(&heads.function);
            }
            Key::Text(key) => {
                writer.attribute(key, value);
            }
        });
        if span.has_details() {
            finish_with_details(writer, span, dropped);
        } else {
            let (code, message) = span.status();
            writer.events(dropped).links(0).finish(0, code, message);
        }
    }
}

#[cold]
fn finish_with_details(writer: SpanWriter<'_>, span: &SpanView<'_>, dropped: u32) {
    let mut events = writer.events(dropped);
    for event in span.events() {
        let mut item = events.event(event.name, event.time);
        let limit = span.limits.attributes_per_event;
        for (key, value) in event.attributes().take(limit) {
            item.attribute(key, value);
        }
        item.dropped_attributes(event.attributes().count().saturating_sub(limit) as u32);
    }
    let mut links = events.links(span.dropped_events);
    for link in span.links() {
        let mut item = links.link(link.trace_id, link.span_id, "", link.flags);
        let limit = span.limits.attributes_per_link;
        for (key, value) in link.attributes().take(limit) {
            item.attribute(key, value);
        }
        item.dropped_attributes(link.attributes().count().saturating_sub(limit) as u32);
    }
    let (code, message) = span.status();
    links.finish(span.dropped_links, code, message);
}
