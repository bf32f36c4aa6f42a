//! How many bytes spans take.

use super::batch::Waiting;
use crate::collect::Key;
use crate::stage::Site;
use opentelemetry::trace::{Event, Link, Status};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SpanData;

/// What an attribute takes beside its key and the digits of its value: tags and lengths.
const ATTRIBUTE: usize = 16;

/// What is constant of a span that waits as its record and has all the attributes of its site: more than its encoded
/// form takes for it.
pub(super) fn of_site(site: &Site) -> usize {
    let function = site.function();
    let function = (!function.is_empty()).then_some(Key::FUNCTION.len() + function.len());
    let texts = site.keys().iter().map(|key| key.len()).chain(function);
    let attributes: usize = texts.map(|text| ATTRIBUTE + text).sum();
    size_of::<Waiting>() + site.stage().name().len() + attributes
}

/// About how many bytes a span takes: more than its encoded form, unless it holds many numbers of
/// many digits.
pub(super) fn of_span(span: &SpanData) -> usize {
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
