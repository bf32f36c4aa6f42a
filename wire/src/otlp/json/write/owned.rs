//! Lines of spans that are already in memory.

use super::{LineWriter, ResourceHead, SpanStart, Title};
use crate::span::{Resource, Scope, Span};

/// Writes spans as one line, under the resource and scope given. Without spans nothing is written.
pub fn write_spans(resource: &Resource, scope: &Scope, spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::new();
    append_line(&mut out, resource, scope, spans);
    out
}

/// Writes spans in order, each run of the same resource and scope as one line.
pub fn write_lines(spans: &[Span]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in spans.chunk_by(Span::has_origin_of) {
        append_line(&mut out, &run[0].resource, &run[0].scope, run);
    }
    out
}

fn append_line(out: &mut Vec<u8>, resource: &Resource, scope: &Scope, spans: &[Span]) {
    let head = ResourceHead::new(resource, scope);
    let mut line = LineWriter::begin(out, &head);
    for span in spans {
        append_span(&mut line, span);
    }
    line.finish();
}

fn append_span(line: &mut LineWriter<'_>, span: &Span) {
    let mut writer = line.span(&SpanStart {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_span_id: span.parent_span_id,
        trace_state: &span.trace_state,
        flags: span.flags,
        title: Title::Plain(&span.name, span.kind),
        start_unix_nano: span.start_unix_nano,
        end_unix_nano: span.end_unix_nano,
    });
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
