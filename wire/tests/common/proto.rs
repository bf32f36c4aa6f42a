//! Spans as the crate of OpenTelemetry holds them.

use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value,
};
use opentelemetry_proto::tonic::resource::v1 as resource;
use opentelemetry_proto::tonic::trace::v1 as proto;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{
    Attributes, Event, Link, Resource, Scope, Span, SpanKind, Status, StatusCode, Value,
};

/// Each run of spans of the same resource and scope becomes one `ResourceSpans`.
pub(crate) fn to_proto(spans: &[Span]) -> proto::TracesData {
    let same =
        |one: &Span, other: &Span| (&one.resource, &one.scope) == (&other.resource, &other.scope);
    let runs = spans.chunk_by(same).map(|run| {
        let (of_resource, of_scope) = (&*run[0].resource, &*run[0].scope);
        proto::ResourceSpans {
            resource: Some(resource::Resource {
                attributes: to_attributes(&of_resource.attributes),
                dropped_attributes_count: of_resource.dropped_attributes,
                entity_refs: Vec::new(),
            }),
            scope_spans: vec![proto::ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: of_scope.name.clone(),
                    version: of_scope.version.clone(),
                    attributes: to_attributes(&of_scope.attributes),
                    dropped_attributes_count: of_scope.dropped_attributes,
                }),
                spans: run.iter().map(to_span).collect(),
                schema_url: of_scope.schema_url.clone(),
            }],
            schema_url: of_resource.schema_url.clone(),
        }
    });
    proto::TracesData { resource_spans: runs.collect() }
}

/// An unset status without a message is left out, as proto3 does with what is default.
fn to_span(span: &Span) -> proto::Span {
    let Status { code, message } = &span.status;
    let status = proto::Status { code: *code as i32, message: message.clone() };
    proto::Span {
        trace_id: span.trace_id.to_bytes().to_vec(),
        span_id: span.span_id.to_bytes().to_vec(),
        trace_state: span.trace_state.clone(),
        parent_span_id: span.parent_span_id.map_or_else(Vec::new, |id| id.to_bytes().to_vec()),
        flags: span.flags,
        name: span.name.clone(),
        kind: span.kind as i32,
        start_time_unix_nano: span.start_unix_nano,
        end_time_unix_nano: span.end_unix_nano,
        attributes: to_attributes(&span.attributes),
        dropped_attributes_count: span.dropped_attributes,
        events: span.events.iter().map(to_event).collect(),
        dropped_events_count: span.dropped_events,
        links: span.links.iter().map(to_link).collect(),
        dropped_links_count: span.dropped_links,
        status: (span.status != Status::default()).then_some(status),
    }
}

fn to_event(event: &Event) -> proto::span::Event {
    proto::span::Event {
        time_unix_nano: event.time_unix_nano,
        name: event.name.clone(),
        attributes: to_attributes(&event.attributes),
        dropped_attributes_count: event.dropped_attributes,
    }
}

fn to_link(link: &Link) -> proto::span::Link {
    proto::span::Link {
        trace_id: link.trace_id.to_bytes().to_vec(),
        span_id: link.span_id.to_bytes().to_vec(),
        trace_state: link.trace_state.clone(),
        attributes: to_attributes(&link.attributes),
        dropped_attributes_count: link.dropped_attributes,
        flags: link.flags,
    }
}

fn to_attributes(attributes: &Attributes) -> Vec<KeyValue> {
    let pair = |(key, value): &(String, Value)| KeyValue {
        key: key.clone(),
        value: Some(to_value(value)),
        ..KeyValue::default()
    };
    attributes.iter().map(pair).collect()
}

fn to_value(value: &Value) -> AnyValue {
    use any_value::Value::*;
    let value = match value {
        Value::Empty => None,
        Value::Str(text) => Some(StringValue(text.clone())),
        Value::Bool(value) => Some(BoolValue(*value)),
        Value::I64(value) => Some(IntValue(*value)),
        Value::F64(value) => Some(DoubleValue(*value)),
        Value::Bytes(bytes) => Some(BytesValue(bytes.clone())),
        Value::Array(values) => {
            Some(ArrayValue(self::ArrayValue { values: values.iter().map(to_value).collect() }))
        }
        Value::Map(map) => Some(KvlistValue(KeyValueList { values: to_attributes(map) })),
    };
    AnyValue { value }
}

pub(crate) fn of_proto(data: proto::TracesData) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in data.resource_spans {
        let resource = of_resource.resource.unwrap_or_default();
        let resource = Arc::new(Resource {
            attributes: of_attributes(resource.attributes),
            dropped_attributes: resource.dropped_attributes_count,
            schema_url: of_resource.schema_url,
        });
        for of_scope in of_resource.scope_spans {
            let scope = of_scope.scope.unwrap_or_default();
            let scope = Arc::new(Scope {
                name: scope.name,
                version: scope.version,
                attributes: of_attributes(scope.attributes),
                dropped_attributes: scope.dropped_attributes_count,
                schema_url: of_scope.schema_url,
            });
            spans.extend(of_scope.spans.into_iter().map(|span| Span {
                resource: resource.clone(),
                scope: scope.clone(),
                ..of_span(span)
            }));
        }
    }
    spans
}

fn of_span(span: proto::Span) -> Span {
    let status = span.status.unwrap_or_default();
    Span {
        parent_span_id: SpanId::from_bytes(span.parent_span_id.try_into().unwrap_or_default()),
        trace_state: span.trace_state,
        flags: span.flags,
        name: span.name,
        kind: SpanKind::from_number(span.kind.into()),
        start_unix_nano: span.start_time_unix_nano,
        end_unix_nano: span.end_time_unix_nano,
        attributes: of_attributes(span.attributes),
        dropped_attributes: span.dropped_attributes_count,
        events: span.events.into_iter().map(of_event).collect(),
        dropped_events: span.dropped_events_count,
        links: span.links.into_iter().map(of_link).collect(),
        dropped_links: span.dropped_links_count,
        status: Status {
            code: StatusCode::from_number(status.code.into()),
            message: status.message,
        },
        ..Span::new(of_trace_id(span.trace_id), of_span_id(span.span_id))
    }
}

fn of_event(event: proto::span::Event) -> Event {
    Event {
        time_unix_nano: event.time_unix_nano,
        name: event.name,
        attributes: of_attributes(event.attributes),
        dropped_attributes: event.dropped_attributes_count,
    }
}

fn of_link(link: proto::span::Link) -> Link {
    Link {
        trace_id: of_trace_id(link.trace_id),
        span_id: of_span_id(link.span_id),
        trace_state: link.trace_state,
        attributes: of_attributes(link.attributes),
        dropped_attributes: link.dropped_attributes_count,
        flags: link.flags,
    }
}

fn of_trace_id(bytes: Vec<u8>) -> TraceId {
    TraceId::from_bytes(bytes.try_into().unwrap()).unwrap()
}

fn of_span_id(bytes: Vec<u8>) -> SpanId {
    SpanId::from_bytes(bytes.try_into().unwrap()).unwrap()
}

fn of_attributes(attributes: Vec<KeyValue>) -> Attributes {
    attributes.into_iter().map(|pair| (pair.key, of_value(pair.value))).collect()
}

fn of_value(value: Option<AnyValue>) -> Value {
    use any_value::Value::*;
    match value.and_then(|value| value.value) {
        None => Value::Empty,
        Some(StringValue(text)) => Value::Str(text),
        Some(BoolValue(value)) => Value::Bool(value),
        Some(IntValue(value)) => Value::I64(value),
        Some(DoubleValue(value)) => Value::F64(value),
        Some(BytesValue(bytes)) => Value::Bytes(bytes),
        Some(ArrayValue(array)) => {
            Value::Array(array.values.into_iter().map(|value| of_value(Some(value))).collect())
        }
        Some(KvlistValue(map)) => Value::Map(of_attributes(map.values)),
        Some(other) => panic!("a value of profiles: {other:?}"),
    }
}
