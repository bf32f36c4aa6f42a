//! What Jaeger's query API answers: traces with processes, times in microseconds, tags.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{
    Attributes, Event, Link, Resource, Scope, Span, SpanKind, StatusCode, Value,
};

use crate::store::{Encoder, Standing};

/// An answer, or one of its traces alone.
#[derive(Deserialize)]
struct Answer {
    #[serde(default, deserialize_with = "or_default")]
    data: Vec<Trace>,
    #[serde(flatten)]
    trace: Trace,
}

#[derive(Default, Deserialize)]
struct Trace {
    #[serde(default, deserialize_with = "or_default")]
    spans: Vec<JaegerSpan>,
    #[serde(default, deserialize_with = "or_default")]
    processes: HashMap<String, Process>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Process {
    service_name: String,
    #[serde(deserialize_with = "or_default")]
    tags: Vec<Tag>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JaegerSpan {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
    #[serde(rename = "parentSpanID")]
    parent_span_id: String,
    operation_name: String,
    #[serde(deserialize_with = "or_default")]
    references: Vec<Reference>,
    start_time: u64,
    duration: u64,
    #[serde(deserialize_with = "or_default")]
    tags: Vec<Tag>,
    #[serde(deserialize_with = "or_default")]
    logs: Vec<Log>,
    #[serde(rename = "processID")]
    process_id: String,
    process: Option<Process>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    ref_type: String,
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

#[derive(Deserialize)]
struct Tag {
    key: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    value: Json,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    timestamp: u64,
    #[serde(default, deserialize_with = "or_default")]
    fields: Vec<Tag>,
}

/// Go writes `null` for an empty list.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads an answer or a trace. Returns how many spans were left out for want of valid ids.
pub(super) fn read(text: &[u8], encoder: &mut Encoder<'_>) -> Result<u64, String> {
    each(text, |span| encoder.span(&span, Standing::WrittenEnd))
}

/// Hands out each span of an answer or a trace. Returns how many were left out for want of valid ids.
pub(super) fn each(text: &[u8], mut take: impl FnMut(Span)) -> Result<u64, String> {
    let mut answer: Answer = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    answer.data.push(answer.trace);
    let mut refused = 0;
    for trace in answer.data {
        let processes: HashMap<String, Arc<Resource>> = trace
            .processes
            .into_iter()
            .map(|(id, process)| (id, Arc::new(resource(process))))
            .collect();
        for mut span in trace.spans {
            let own = span.process.take().map(|process| Arc::new(resource(process)));
            let process = own.or_else(|| processes.get(&span.process_id).cloned());
            match convert(span, process.unwrap_or_default()) {
                Some(span) => take(span),
                None => refused += 1,
            }
        }
    }
    Ok(refused)
}

fn resource(process: Process) -> Resource {
    let mut attributes = vec![("service.name".to_owned(), Value::Str(process.service_name))];
    attributes.extend(process.tags.into_iter().map(attribute));
    Resource { attributes, ..Resource::default() }
}

fn convert(jaeger: JaegerSpan, resource: Arc<Resource>) -> Option<Span> {
    let trace_id = trace_id(&jaeger.trace_id)?;
    let mut span = Span::new(trace_id, span_id(&jaeger.span_id)?);
    span.parent_span_id = span_id(&jaeger.parent_span_id);
    span.name = jaeger.operation_name;
    span.start_unix_nano = jaeger.start_time.saturating_mul(1000);
    span.end_unix_nano = span.start_unix_nano.saturating_add(jaeger.duration.saturating_mul(1000));
    span.resource = resource;
    for reference in jaeger.references {
        let other = (self::trace_id(&reference.trace_id), span_id(&reference.span_id));
        let (Some(other_trace), Some(other_span)) = other else { continue };
        let is_child = reference.ref_type == "CHILD_OF" && other_trace == trace_id;
        if is_child && span.parent_span_id.is_none_or(|parent| parent == other_span) {
            span.parent_span_id = Some(other_span);
        } else {
            span.links.push(Link {
                trace_id: other_trace,
                span_id: other_span,
                trace_state: String::new(),
                attributes: Attributes::new(),
                dropped_attributes: 0,
                flags: 0,
            });
        }
    }
    let mut scope = Scope::default();
    for tag in jaeger.tags {
        add_tag(&mut span, &mut scope, attribute(tag));
    }
    if span.status.code == StatusCode::Error {
        // Jaeger adds it; who recorded it himself loses nothing, as the status says the same.
        let marker = ("error".to_owned(), Value::Bool(true));
        if let Some(at) = span.attributes.iter().rposition(|attribute| *attribute == marker) {
            span.attributes.remove(at);
        }
    }
    if scope != Scope::default() {
        span.scope = Arc::new(scope);
    }
    span.events = jaeger.logs.into_iter().map(event).collect();
    Some(span)
}

/// Tags that Jaeger makes of OpenTelemetry's own fields become these again.
fn add_tag(span: &mut Span, scope: &mut Scope, (key, value): (String, Value)) {
    match (&*key, value.as_str()) {
        ("otel.scope.name" | "otel.library.name", Some(text)) => scope.name = text.to_owned(),
        ("otel.scope.version" | "otel.library.version", Some(text)) => {
            scope.version = text.to_owned();
        }
        ("w3c.tracestate", Some(text)) => span.trace_state = text.to_owned(),
        ("otel.status_description", Some(text)) => span.status.message = text.to_owned(),
        ("otel.status_code", Some(text)) => {
            let codes = [StatusCode::Ok, StatusCode::Error];
            let code = codes.into_iter().find(|code| code.name().eq_ignore_ascii_case(text));
            span.status.code = code.unwrap_or_default();
        }
        ("span.kind", Some(text)) => {
            let kinds = (1..=5).map(SpanKind::from_number);
            let kind = kinds.into_iter().find(|kind| kind.name() == text);
            span.kind = kind.unwrap_or_default();
        }
        ("internal.span.format", _) => {}
        _ => span.attributes.push((key, value)),
    }
}

fn event(log: Log) -> Event {
    let mut event =
        Event { time_unix_nano: log.timestamp.saturating_mul(1000), ..Event::default() };
    for (key, value) in log.fields.into_iter().map(attribute) {
        match value {
            Value::Str(name) if key == "event" && event.name.is_empty() => event.name = name,
            value => event.attributes.push((key, value)),
        }
    }
    event
}

fn attribute(tag: Tag) -> (String, Value) {
    let value = match (&*tag.kind, tag.value) {
        ("int64", Json::String(text)) => text.parse().map_or(Value::Str(text), Value::I64),
        ("float64", Json::String(text)) => text.parse().map_or(Value::Str(text), Value::F64),
        ("bool", Json::String(text)) => text.parse().map_or(Value::Str(text), Value::Bool),
        ("binary", Json::String(text)) => {
            STANDARD.decode(&text).map_or(Value::Str(text), Value::Bytes)
        }
        ("float64", Json::Number(number)) => number.as_f64().map_or(Value::Empty, Value::F64),
        (_, Json::Number(number)) => match number.as_i64() {
            Some(integer) => Value::I64(integer),
            None => number.as_f64().map_or(Value::Empty, Value::F64),
        },
        (_, Json::Bool(value)) => Value::Bool(value),
        (_, Json::String(text)) => Value::Str(text),
        (_, Json::Null) => Value::Empty,
        (_, other) => Value::Str(other.to_string()),
    };
    (tag.key, value)
}

/// An id of up to 32 digits: Jaeger leaves out the upper half if that is zero.
fn trace_id(text: &str) -> Option<TraceId> {
    TraceId::from_hex(padded(text, TraceId::HEX_LEN)?).ok()
}

fn span_id(text: &str) -> Option<SpanId> {
    SpanId::from_hex(padded(text, SpanId::HEX_LEN)?).ok()
}

fn padded(text: &str, digits: usize) -> Option<String> {
    let is_id = (1..=digits).contains(&text.len()) && text.is_ascii();
    is_id.then(|| format!("{text:0>digits$}"))
}
