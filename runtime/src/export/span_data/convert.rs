//! A span as `opentelemetry_sdk` knows it.
//!
//! What is constant stays borrowed: names, the keys of sites, the scope. Other keys are allocated
//! once.

use crate::collect::{self, SpanView};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, Key, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use stagetrace_wire::recording::value::ValueRef;
use stagetrace_wire::span::{self, StatusCode, flags};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How many keys are remembered at most: whoever makes up keys at run time may make up any number.
const KEYS: usize = 1024;

/// Makes [`SpanData`] of spans.
#[derive(Debug)]
pub(super) struct Converter {
    scope: InstrumentationScope,
    keys: Keys,
}

impl Converter {
    pub(super) fn new() -> Converter {
        let scope = InstrumentationScope::builder("stagetrace");
        let scope = scope.with_version(env!("CARGO_PKG_VERSION")).build();
        Converter { scope, keys: Keys::default() }
    }

    /// The span with everything in it.
    pub(super) fn convert(&mut self, view: &SpanView<'_>) -> SpanData {
        let trace_id = TraceId::from(view.trace_id.to_u128());
        let own_flags = trace_flags(view.flags());
        let mut attributes = Vec::with_capacity(view.site.keys().len() + 1);
        let dropped_attributes_count = view.attributes(|key, value| {
            let key = match key {
                collect::Key::OfSite(place) => {
                    view.site.keys().get(place).map(|key| Key::from_static_str(key))
                }
                collect::Key::Function => Some(Key::from_static_str(collect::Key::FUNCTION)),
                collect::Key::Text(text) => Some(self.keys.key(text)),
            };
            if let Some(key) = key {
                attributes.push(KeyValue::new(key, to_value(value, view.site.function())));
            }
        });
        SpanData {
            span_context: context(trace_id, view.span_id, own_flags, false),
            parent_span_id: view.parent.map_or(SpanId::INVALID, |id| SpanId::from(id.to_u64())),
            parent_span_is_remote: view.has_remote_parent(),
            span_kind: kind(view.site.kind()),
            name: view.site.stage().name().into(),
            start_time: time(view.begin),
            end_time: time(view.end),
            attributes,
            dropped_attributes_count,
            events: self.events(view),
            links: self.links(view),
            status: match view.status() {
                (StatusCode::Unset, _) => Status::Unset,
                (StatusCode::Ok, _) => Status::Ok,
                (StatusCode::Error, message) => Status::error(message.to_owned()),
            },
            instrumentation_scope: self.scope.clone(),
        }
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
            let trace_id = TraceId::from(link.trace_id.to_u128());
            let is_remote = link.flags & flags::IS_REMOTE != 0;
            let to = context(trace_id, link.span_id, trace_flags(link.flags), is_remote);
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

/// Keys that are not constant.
#[derive(Debug, Default)]
struct Keys(HashSet<Arc<str>>);

impl Keys {
    fn key(&mut self, text: &str) -> Key {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known).into();
        }
        let key: Arc<str> = text.into();
        if self.0.len() < KEYS {
            self.0.insert(Arc::clone(&key));
        }
        key.into()
    }
}

/// The resource, without what these types cannot hold: maps, arrays of several types, nothing.
pub(super) fn resource(resource: &span::Resource) -> opentelemetry_sdk::Resource {
    let attributes = resource
        .attributes
        .iter()
        .filter_map(|(key, value)| Some(KeyValue::new(key.clone(), of_wire(value)?)));
    opentelemetry_sdk::Resource::builder_empty()
        .with_schema_url(attributes.collect::<Vec<_>>(), resource.schema_url.clone())
        .build()
}

/// About how many bytes a span takes: more than its encoded form, unless it holds many numbers of
/// many digits.
pub(super) fn weight(span: &SpanData) -> usize {
    let of_attributes = |attributes: &[KeyValue]| -> usize {
        attributes
            .iter()
            .map(|attribute| {
                let key = attribute.key.as_str().len();
                size_of::<KeyValue>() + key + value_weight(&attribute.value)
            })
            .sum()
    };
    let of_events: usize = span
        .events
        .iter()
        .map(|event| size_of::<Event>() + event.name.len() + of_attributes(&event.attributes))
        .sum();
    let of_links: usize =
        span.links.iter().map(|link| size_of::<Link>() + of_attributes(&link.attributes)).sum();
    let message = match &span.status {
        Status::Error { description } => description.len(),
        _ => 0,
    };
    size_of::<SpanData>() + of_attributes(&span.attributes) + of_events + of_links + message
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_str().len(),
        Value::Array(Array::String(texts)) => {
            texts.iter().map(|text| size_of::<StringValue>() + text.as_str().len()).sum()
        }
        Value::Array(Array::I64(values)) => size_of_val(values.as_slice()),
        Value::Array(Array::F64(values)) => size_of_val(values.as_slice()),
        Value::Array(Array::Bool(values)) => size_of_val(values.as_slice()),
        _ => 0,
    }
}

fn context(
    trace_id: TraceId,
    span_id: stagetrace_wire::id::SpanId,
    flags: TraceFlags,
    is_remote: bool,
) -> SpanContext {
    let span_id = SpanId::from(span_id.to_u64());
    SpanContext::new(trace_id, span_id, flags, is_remote, TraceState::NONE)
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

/// The value; the text `constant`, if it is that very one, stays borrowed.
fn to_value(value: ValueRef<'_>, constant: &'static str) -> Value {
    match value {
        ValueRef::Str(text) if std::ptr::eq(text, constant) => constant.into(),
        ValueRef::Str(text) => text.to_owned().into(),
        ValueRef::Bool(value) => value.into(),
        ValueRef::I64(value) => value.into(),
        ValueRef::F64(value) => value.into(),
        // There are no bytes: OpenTelemetry maps them to base64 outside OTLP.
        ValueRef::Bytes(bytes) => BASE64.encode(bytes).into(),
        ValueRef::Array(array) => {
            let len = array.len();
            let mut values = array.iter().peekable();
            Value::Array(match values.peek() {
                Some(ValueRef::I64(_)) => Array::I64(gather(len, values, |value| match value {
                    ValueRef::I64(value) => Some(value),
                    _ => None,
                })),
                Some(ValueRef::F64(_)) => Array::F64(gather(len, values, |value| match value {
                    ValueRef::F64(value) => Some(value),
                    _ => None,
                })),
                Some(ValueRef::Bool(_)) => Array::Bool(gather(len, values, |value| match value {
                    ValueRef::Bool(value) => Some(value),
                    _ => None,
                })),
                _ => Array::String(gather(len, values, |value| match value {
                    ValueRef::Str(text) => Some(text.to_owned().into()),
                    _ => None,
                })),
            })
        }
    }
}

fn gather<'a, T>(
    len: usize,
    values: impl Iterator<Item = ValueRef<'a>>,
    of: impl FnMut(ValueRef<'a>) -> Option<T>,
) -> Vec<T> {
    let mut gathered = Vec::with_capacity(len);
    gathered.extend(values.filter_map(of));
    gathered
}

fn of_wire(value: &span::Value) -> Option<Value> {
    Some(match value {
        span::Value::Str(text) => text.clone().into(),
        span::Value::Bool(value) => (*value).into(),
        span::Value::I64(value) => (*value).into(),
        span::Value::F64(value) => (*value).into(),
        span::Value::Bytes(bytes) => BASE64.encode(bytes).into(),
        span::Value::Array(values) => Value::Array(match values.first() {
            Some(span::Value::I64(_)) => {
                Array::I64(values.iter().map(span::Value::as_i64).collect::<Option<_>>()?)
            }
            Some(span::Value::F64(_)) => {
                Array::F64(values.iter().map(span::Value::as_f64).collect::<Option<_>>()?)
            }
            Some(span::Value::Bool(_)) => {
                Array::Bool(values.iter().map(span::Value::as_bool).collect::<Option<_>>()?)
            }
            _ => {
                let text = |value: &span::Value| Some(value.as_str()?.to_owned().into());
                Array::String(values.iter().map(text).collect::<Option<_>>()?)
            }
        }),
        span::Value::Map(_) | span::Value::Empty => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_allocated_once_and_made_up_keys_take_no_memory_for_ever() {
        let mut keys = Keys::default();
        let before = keys.key("a");
        assert_eq!(keys.key("a"), before);
        let known = keys.0.get("a").expect("it was remembered");
        assert_eq!(Arc::strong_count(known), 2, "the set's and the first key's");
        for made_up in 0..2 * KEYS {
            assert_eq!(keys.key(&made_up.to_string()).as_str(), made_up.to_string());
        }
        assert_eq!(keys.0.len(), KEYS);
    }

    #[test]
    fn a_constant_text_is_borrowed_and_any_other_is_copied() {
        let constant: &'static str = "server::forward";
        let same = to_value(ValueRef::Str(constant), constant);
        let Value::String(same) = same else { panic!("a text stays one") };
        assert!(std::ptr::eq(same.as_str(), constant));
        let equal = "server::forward".to_owned();
        assert_eq!(to_value(ValueRef::Str(&equal), constant), Value::from("server::forward"));
    }

    #[test]
    fn the_resource_keeps_its_types_and_leaves_out_what_has_none_here() {
        use span::Value::{Array as Values, Bool, Bytes, Empty, F64, I64, Map, Str};
        let wire = span::Resource {
            attributes: [
                ("text", Str("a".into())),
                ("int", I64(-1)),
                ("double", F64(0.5)),
                ("bool", Bool(true)),
                ("bytes", Bytes(vec![1, 2])),
                ("ints", Values(vec![I64(1), I64(2)])),
                ("texts", Values(vec![Str("a".into()), Str("b".into())])),
                ("mixed", Values(vec![I64(1), Str("b".into())])),
                ("map", Map(vec![])),
                ("empty", Empty),
            ]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
            schema_url: "https://opentelemetry.io/schemas/1.44.0".to_owned(),
            ..span::Resource::default()
        };
        let converted = resource(&wire);
        let of = |key: &'static str| converted.get(&Key::from_static_str(key));
        assert_eq!(of("text"), Some("a".into()));
        assert_eq!(of("int"), Some((-1_i64).into()));
        assert_eq!(of("double"), Some(0.5.into()));
        assert_eq!(of("bool"), Some(true.into()));
        assert_eq!(of("bytes"), Some("AQI=".into()));
        assert_eq!(of("ints"), Some(Value::Array(vec![1_i64, 2].into())));
        let texts: Vec<StringValue> = vec!["a".into(), "b".into()];
        assert_eq!(of("texts"), Some(Value::Array(texts.into())));
        assert_eq!(converted.len(), 7);
        assert_eq!(converted.schema_url(), Some("https://opentelemetry.io/schemas/1.44.0"));
    }
}
