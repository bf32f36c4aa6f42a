//! The cases, and spans in the form in which they expect them.

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use stagetrace_wire::span::{Event, Link, Span, Value};

pub(crate) fn assert_same_spans(file: &str, spans: &[Span], expected: &Json) {
    let expected = expected.as_array().unwrap();
    assert_eq!(spans.len(), expected.len(), "spans of {file}");
    for (span, expected) in spans.iter().zip(expected) {
        let read = span_json(span);
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&read[field], value, "`{field}` of {:?} in {file}", span.name);
        }
    }
}

fn span_json(span: &Span) -> Json {
    json!({
        "trace_id": span.trace_id.to_string(),
        "span_id": span.span_id.to_string(),
        "parent_span_id": span.parent_span_id.map(|id| id.to_string()),
        "trace_state": span.trace_state,
        "flags": span.flags,
        "name": span.name,
        "kind": span.kind.name(),
        "start_unix_nano": span.start_unix_nano.to_string(),
        "end_unix_nano": span.end_unix_nano.to_string(),
        "attributes": attributes_json(&span.attributes),
        "dropped_attributes": span.dropped_attributes,
        "events": span.events.iter().map(event_json).collect::<Json>(),
        "dropped_events": span.dropped_events,
        "links": span.links.iter().map(link_json).collect::<Json>(),
        "dropped_links": span.dropped_links,
        "status": {"code": span.status.code.name(), "message": span.status.message},
        "service": span.resource.service_name(),
        "resource": attributes_json(&span.resource.attributes),
        "scope": {
            "name": span.scope.name,
            "version": span.scope.version,
            "attributes": attributes_json(&span.scope.attributes),
        },
    })
}

fn event_json(event: &Event) -> Json {
    json!({
        "time_unix_nano": event.time_unix_nano.to_string(),
        "name": event.name,
        "attributes": attributes_json(&event.attributes),
        "dropped_attributes": event.dropped_attributes,
    })
}

fn link_json(link: &Link) -> Json {
    json!({
        "trace_id": link.trace_id.to_string(),
        "span_id": link.span_id.to_string(),
        "trace_state": link.trace_state,
        "attributes": attributes_json(&link.attributes),
        "dropped_attributes": link.dropped_attributes,
        "flags": link.flags,
    })
}

fn attributes_json(attributes: &[(String, Value)]) -> Json {
    attributes.iter().map(|(key, value)| json!([key, value_json(value)])).collect()
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Str(text) => json!({"string": text}),
        Value::Bool(value) => json!({"bool": value}),
        Value::I64(value) => json!({"int": value.to_string()}),
        Value::F64(value) => double_json(*value),
        Value::Bytes(bytes) => json!({"bytes": STANDARD.encode(bytes)}),
        Value::Array(values) => json!({"array": values.iter().map(value_json).collect::<Json>()}),
        Value::Map(map) => json!({"kvlist": attributes_json(map)}),
        Value::Empty => json!({"empty": true}),
    }
}

/// The expectations print doubles as Python does, so with a plus sign in the exponent.
fn double_json(value: f64) -> Json {
    let text = format!("{value:?}").replace('e', "e+").replace("e+-", "e-");
    let bits = if value.is_nan() { "nan".to_owned() } else { format!("{:016x}", value.to_bits()) };
    json!({"double": text, "bits": bits})
}

pub(crate) fn span_ids(spans: &[Span]) -> Json {
    spans.iter().map(|span| span.span_id.to_string()).collect()
}

pub(crate) fn expectation(name: &str) -> Json {
    serde_json::from_slice(&bytes(name)).unwrap()
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "wire", "tests", "cases", "otlp"].iter().collect()
}
