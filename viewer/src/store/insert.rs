//! Spans of all other sources, as `stagetrace-wire` reads them.

use stagetrace_wire::span::{Attributes, Event, Link, Span, Value};

use super::batch::Standing;
use super::encode::{Encoder, Head, Seen, part};
use super::value::{put_bytes, put_number, put_value};

impl Encoder<'_> {
    /// Encodes a span. `standing` is that of an ended one, or of an open one if it has no end.
    pub(crate) fn span(&mut self, span: &Span, standing: Standing) {
        self.begin();
        for (key, value) in &span.attributes {
            put_value(self.value(), value);
            self.attribute(key, seen(value));
        }
        if !span.trace_state.is_empty() {
            self.part(part::TRACE_STATE, |out| put_bytes(out, span.trace_state.as_bytes()));
        }
        if span.flags != 0 {
            self.part(part::FLAGS, |out| put_number(out, span.flags.into()));
        }
        let dropped = [span.dropped_attributes, span.dropped_events, span.dropped_links];
        if dropped != [0; 3] {
            self.part(part::DROPPED, |out| {
                dropped.into_iter().for_each(|count| put_number(out, count.into()));
            });
        }
        if !span.events.is_empty() {
            for (key, value) in span.events.iter().flat_map(|event| &event.attributes) {
                if let Value::Str(text) = value {
                    self.exception(key, text);
                }
            }
            self.part(part::EVENTS, |out| put_events(out, &span.events));
        }
        if !span.links.is_empty() {
            self.part(part::LINKS, |out| put_links(out, &span.links));
        }
        let origin = self.origin_of(span);
        self.finish(&Head {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent: span.parent_span_id,
            start: span.start_unix_nano,
            end: span.end_unix_nano,
            name: &span.name,
            kind: span.kind,
            code: span.status.code,
            message: &span.status.message,
            origin,
            standing,
        });
    }
}

/// What facts are made of.
pub(crate) fn seen(value: &Value) -> Seen<'_> {
    match value {
        Value::Str(text) => Seen::Text(text),
        Value::Bool(value) => Seen::Bool(*value),
        Value::I64(value) => Seen::Int(*value),
        Value::F64(value) => Seen::Double(*value),
        _ => Seen::Other,
    }
}

/// Events and links name their keys in full: few spans have any, and their keys are hardly asked for.
fn put_events(out: &mut Vec<u8>, events: &[Event]) {
    put_number(out, events.len() as u64);
    for event in events {
        put_number(out, event.time_unix_nano);
        put_bytes(out, event.name.as_bytes());
        put_attributes(out, &event.attributes);
        put_number(out, event.dropped_attributes.into());
    }
}

fn put_links(out: &mut Vec<u8>, links: &[Link]) {
    put_number(out, links.len() as u64);
    for link in links {
        out.extend_from_slice(&link.trace_id.to_bytes());
        out.extend_from_slice(&link.span_id.to_bytes());
        put_bytes(out, link.trace_state.as_bytes());
        put_number(out, link.flags.into());
        put_attributes(out, &link.attributes);
        put_number(out, link.dropped_attributes.into());
    }
}

fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes) {
    put_number(out, attributes.len() as u64);
    for (key, value) in attributes {
        put_bytes(out, key.as_bytes());
        put_value(out, value);
    }
}
