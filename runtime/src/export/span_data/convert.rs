//! A span as `opentelemetry_sdk` knows it.
//!
//! What is constant stays borrowed: names, the keys of sites, the scope. Other keys are allocated once. So a span costs
//! one allocation, that of its attributes, and one for each text among their values.

use super::keys::Keys;
use super::value::to_value;
use crate::collect::{self, SpanView};
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, Key, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use stagetrace_wire::id;
use stagetrace_wire::recording::value::ValueRef;
use stagetrace_wire::span::{self, StatusCode, flags};
use std::time::{Duration, SystemTime};

const FUNCTION: Key = Key::from_static_str(collect::Key::FUNCTION);

/// Makes [`SpanData`] of spans.
#[derive(Debug, Default)]
pub(super) struct Converter {
    keys: Keys,
}

impl Converter {
    /// The span with everything in it.
    pub(super) fn convert(&mut self, view: &SpanView<'_>) -> SpanData {
        let attributes = self.attributes_of(view);
        let (events, links) = (self.events(view), self.links(view));
        let status = match view.status() {
            (StatusCode::Unset, _) => Status::Unset,
            (StatusCode::Ok, _) => Status::Ok,
            (StatusCode::Error, message) => Status::error(message.to_owned()),
        };
        let trace_state = trace_state(view.trace_state());
        SpanData { events, links, status, ..head(view, trace_state, attributes) }
    }

    /// A span that has nothing but inline attributes and did not fail.
    #[inline]
    pub(super) fn convert_plain(&mut self, view: &SpanView<'_>) -> SpanData {
        let (site, limits) = (view.site, view.limits);
        let function = site.function();
        let count = view.record.attributes() + usize::from(!function.is_empty());
        if count > limits.attributes || limits.attribute_length.is_some() {
            let attributes = self.attributes_of(view);
            return head(view, TraceState::NONE, attributes);
        }
        let mut attributes = Vec::with_capacity(count);
        for (place, value) in view.record.inline() {
            if let Some(key) = site.keys().get(place) {
                attributes.push(KeyValue::new(Key::from_static_str(key), to_value(value, "")));
            }
        }
        if !function.is_empty() {
            attributes.push(KeyValue::new(FUNCTION, function));
        }
        head(view, TraceState::NONE, (attributes, 0))
    }

    /// The span's own attributes, and how many the limits cut off.
    #[cold]
    fn attributes_of(&mut self, view: &SpanView<'_>) -> (Vec<KeyValue>, u32) {
        let mut attributes = Vec::with_capacity(view.record.attributes() + 1);
        let dropped = view.attributes(|key, value| {
            let key = match key {
                collect::Key::OfSite(place) => {
                    view.site.keys().get(place).map(|key| Key::from_static_str(key))
                }
                collect::Key::Function => Some(FUNCTION),
                collect::Key::Text(text) => Some(self.keys.key(text)),
            };
            if let Some(key) = key {
                attributes.push(KeyValue::new(key, to_value(value, view.site.function())));
            }
        });
        (attributes, dropped)
    }

    fn events(&mut self, view: &SpanView<'_>) -> SpanEvents {
        let limit = view.limits.attributes_per_event;
        let mut events = SpanEvents::default();
        events.events.extend(view.events().map(|event| {
            let (attributes, dropped) = self.attributes(event.attributes(), limit);
            Event::new(event.name.to_owned(), time(event.time), attributes, dropped)
        }));
        events.dropped_count = view.dropped_events;
        events
    }

    fn links(&mut self, view: &SpanView<'_>) -> SpanLinks {
        let limit = view.limits.attributes_per_link;
        let mut links = SpanLinks::default();
        links.links.extend(view.links().map(|link| {
            let (attributes, dropped) = self.attributes(link.attributes(), limit);
            let is_remote = link.flags & flags::IS_REMOTE != 0;
            let flags = trace_flags(link.flags);
            let to = context(link.trace_id, link.span_id, flags, is_remote, TraceState::NONE);
            Link::new(to, attributes, dropped)
        }));
        links.dropped_count = view.dropped_links;
        links
    }

    /// The first `limit` attributes, and how many more there were.
    fn attributes<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a str, ValueRef<'a>)>,
        limit: usize,
    ) -> (Vec<KeyValue>, u32) {
        let mut kept = Vec::new();
        let mut dropped = 0;
        for (key, value) in all {
            match kept.len() < limit {
                true => kept.push(KeyValue::new(self.keys.key(key), to_value(value, ""))),
                false => dropped += 1,
            }
        }
        (kept, dropped)
    }
}

/// The span with this trace state and these attributes, without events, links and status.
#[inline(always)]
fn head(
    view: &SpanView<'_>,
    trace_state: TraceState,
    (attributes, dropped): (Vec<KeyValue>, u32),
) -> SpanData {
    SpanData {
        span_context: context(
            view.trace_id,
            view.span_id,
            trace_flags(view.flags()),
            false,
            trace_state,
        ),
        parent_span_id: view.parent.map_or(SpanId::INVALID, |id| SpanId::from(id.to_u64())),
        parent_span_is_remote: view.has_remote_parent(),
        span_kind: kind(view.site.kind()),
        name: view.site.stage().name().into(),
        start_time: time(view.begin),
        end_time: time(view.end),
        attributes,
        dropped_attributes_count: dropped,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: scope(),
    }
}

/// Made anew for each span, which takes less than a copy.
#[inline]
fn scope() -> InstrumentationScope {
    let scope = InstrumentationScope::builder("stagetrace");
    scope.with_version(env!("CARGO_PKG_VERSION")).build()
}

fn context(
    trace_id: id::TraceId,
    span_id: id::SpanId,
    flags: TraceFlags,
    is_remote: bool,
    trace_state: TraceState,
) -> SpanContext {
    let trace_id = TraceId::from(trace_id.to_u128());
    let span_id = SpanId::from(span_id.to_u64());
    SpanContext::new(trace_id, span_id, flags, is_remote, trace_state)
}

/// None for a text that these types refuse: they know the keys of several tenants in an older form only.
fn trace_state(text: &str) -> TraceState {
    match text.is_empty() {
        true => TraceState::NONE,
        false => text.parse().unwrap_or_default(),
    }
}

fn trace_flags(flags: u32) -> TraceFlags {
    TraceFlags::new((flags & flags::TRACE_FLAGS) as u8)
}

fn time(unix_nano: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_nano)
}

fn kind(kind: span::SpanKind) -> SpanKind {
    match kind {
        span::SpanKind::Unspecified | span::SpanKind::Internal => SpanKind::Internal,
        span::SpanKind::Server => SpanKind::Server,
        span::SpanKind::Client => SpanKind::Client,
        span::SpanKind::Producer => SpanKind::Producer,
        span::SpanKind::Consumer => SpanKind::Consumer,
    }
}
