//! Attribute values as `opentelemetry_sdk` knows them, and the resource.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use opentelemetry::{Array, KeyValue, Value};
use stagetrace_wire::recording::value::{ArrayRef, ValueRef};
use stagetrace_wire::span;

/// The value; the text `constant`, if it is that very one, stays borrowed.
#[inline]
pub(super) fn to_value(value: ValueRef<'_>, constant: &'static str) -> Value {
    match value {
        ValueRef::Str(text) if std::ptr::eq(text, constant) => constant.into(),
        ValueRef::Str(text) => text.to_owned().into(),
        ValueRef::Bool(value) => value.into(),
        ValueRef::I64(value) => value.into(),
        ValueRef::F64(value) => value.into(),
        // There are no bytes: OpenTelemetry maps them to base64 outside OTLP.
        ValueRef::Bytes(bytes) => BASE64.encode(bytes).into(),
        ValueRef::Array(array) => Value::Array(to_array(array)),
    }
}

#[inline(never)]
fn to_array(array: ArrayRef<'_>) -> Array {
    let len = array.len();
    let mut values = array.iter().peekable();
    match values.peek() {
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
    use opentelemetry::{Key, StringValue};

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
