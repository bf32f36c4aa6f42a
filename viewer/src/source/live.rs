//! XTuner's `live.jsonl`: a record when a span begins, and one when it ends.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{SpanKind, StatusCode, Value};

use crate::store::{Encoder, Head, Standing, part, put_number, put_value, seen};

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    time_s: f64,
    #[serde(borrow)]
    span_name: Cow<'a, str>,
    #[serde(default)]
    span_name_path: Vec<String>,
    #[serde(default)]
    attributes: Map<String, Json>,
    #[serde(borrow)]
    trace_id: Cow<'a, str>,
    #[serde(borrow)]
    span_id: Cow<'a, str>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    duration_ms: Option<f64>,
}

/// Longest path that is kept.
const MAX_PATH: usize = 255;

/// Reads a record. It says of a span that it began, or that it has ended; the span itself is in
/// traces.jsonl, or never comes.
pub(super) fn read(line: &[u8], encoder: &mut Encoder<'_>) -> Result<(), String> {
    let record: Record<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let trace_id = TraceId::from_hex(&*record.trace_id).map_err(|error| error.to_string())?;
    let span_id = SpanId::from_hex(&*record.span_id).map_err(|error| error.to_string())?;
    let time = nanoseconds(record.time_s);
    let has_ended = match &*record.event {
        "start" => false,
        "end" => true,
        other => return Err(format!("`event` is `{}`", other.escape_debug())),
    };
    let start = match record.duration_ms {
        Some(duration) if has_ended => time.saturating_sub(nanoseconds(duration / 1e3)),
        _ => time,
    };
    encoder.begin();
    for (key, json) in &record.attributes {
        let value = value(json);
        put_value(encoder.value(), &value);
        encoder.attribute(key, seen(&value));
    }
    let path = record.span_name_path.len().min(MAX_PATH);
    let path: Vec<_> =
        record.span_name_path[..path].iter().map(|name| encoder.name(name)).collect();
    encoder.part(part::PATH, |out| {
        put_number(out, path.len() as u64);
        path.iter().for_each(|name| put_number(out, name.0.into()));
    });
    let is_error = has_ended && record.status.as_deref() == Some("error");
    let origin = encoder.no_origin();
    encoder.finish(&Head {
        trace_id,
        span_id,
        parent: None,
        start,
        end: if has_ended { time } else { 0 },
        name: &record.span_name,
        kind: SpanKind::Unspecified,
        code: if is_error { StatusCode::Error } else { StatusCode::Unset },
        message: record.error_message.as_deref().unwrap_or_default(),
        origin,
        standing: if has_ended { Standing::Over } else { Standing::Announced },
    });
    if let Some(span) = encoder.last() {
        span.depth = path.len().max(1) as u8;
    }
    Ok(())
}

/// Saturates at the limits of the type.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Empty,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::I64(integer),
            None => number.as_f64().map_or(Value::Empty, Value::F64),
        },
        Json::String(text) => Value::Str(text.clone()),
        Json::Array(values) => Value::Array(values.iter().map(value).collect()),
        Json::Object(members) => {
            Value::Map(members.iter().map(|(key, json)| (key.clone(), value(json))).collect())
        }
    }
}
