//! Requests of spans that are already in memory.

use super::{Request, ResourceHead, SpanStart, Title};
use crate::span::Span;

/// Writes spans in order, each run of the same resource and scope as one `ResourceSpans`.
pub fn write_request(spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in spans.chunk_by(Span::has_origin_of) {
        let head = ResourceHead::new(&run[0].resource, &run[0].scope);
        let mut request = Request::new();
        for span in run {
            append_span(&mut request, &head, span);
        }
        // Requests that follow each other are one request with all their spans.
        out.extend_from_slice(request.finish(&head));
    }
    out
}

fn append_span(request: &mut Request, head: &ResourceHead, span: &Span) {
    let start = SpanStart {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_span_id: span.parent_span_id,
        trace_state: &span.trace_state,
        flags: span.flags,
        title: Title::Plain(&span.name, span.kind),
        start_unix_nano: span.start_unix_nano,
        end_unix_nano: span.end_unix_nano,
    };
    let mut writer = request.span(head, &start);
    for (key, value) in &span.attributes {
        writer.attribute(&**key, value);
    }
    let mut events = writer.events(span.dropped_attributes);
    for event in &span.events {
        let mut writer = events.event(&event.name, event.time_unix_nano);
        for (key, value) in &event.attributes {
            writer.attribute(&**key, value);
        }
        writer.dropped_attributes(event.dropped_attributes);
    }
    let mut links = events.links(span.dropped_events);
    for link in &span.links {
        let mut writer = links.link(link.trace_id, link.span_id, &link.trace_state, link.flags);
        for (key, value) in &link.attributes {
            writer.attribute(&**key, value);
        }
        writer.dropped_attributes(link.dropped_attributes);
    }
    links.finish(span.dropped_links, span.status.code, &span.status.message);
}
