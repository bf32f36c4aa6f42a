//! A span of its own, as readers of the exported file would see it: for captures and tests.

use super::view::SpanView;
use stagetrace_wire::span::{Attributes, Event, Link, Resource, Scope, Span, Status, Value};
use std::sync::Arc;

/// The span with everything in it.
pub(crate) fn to_span(view: &SpanView<'_>, resource: &Arc<Resource>, scope: &Arc<Scope>) -> Span {
    let mut attributes = Attributes::new();
    let dropped_attributes = view.attributes(|key, value| {
        if let Some(key) = view.text(key) {
            attributes.push((key.to_owned(), Value::from(value)));
        }
    });
    let keyed = |list: &mut dyn Iterator<Item = (&str, _)>, limit: usize| -> Attributes {
        list.take(limit).map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
    };
    let limit = view.limits.attributes_per_event;
    let events = view.events().map(|event| Event {
        time_unix_nano: event.time,
        name: event.name.to_owned(),
        attributes: keyed(&mut event.attributes(), limit),
        dropped_attributes: event.attributes().count().saturating_sub(limit) as u32,
    });
    let limit = view.limits.attributes_per_link;
    let links = view.links().map(|link| Link {
        trace_id: link.trace_id,
        span_id: link.span_id,
        trace_state: String::new(),
        attributes: keyed(&mut link.attributes(), limit),
        dropped_attributes: link.attributes().count().saturating_sub(limit) as u32,
        flags: link.flags,
    });
    let (code, message) = view.status();
    Span {
        trace_id: view.trace_id,
        span_id: view.span_id,
        parent_span_id: view.parent,
        trace_state: view.trace_state().to_owned(),
        flags: view.flags(),
        name: view.site.stage().name().to_owned(),
        kind: view.site.kind(),
        start_unix_nano: view.begin,
        end_unix_nano: view.end,
        attributes,
        dropped_attributes,
        events: events.collect(),
        dropped_events: view.dropped_events,
        links: links.collect(),
        dropped_links: view.dropped_links,
        status: Status { code, message: message.to_owned() },
        resource: resource.clone(),
        scope: scope.clone(),
    }
}
