//! Attribute values, borrowed from a recording or owned.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::members::write_attribute;
use super::text::write_text;
use crate::recording::value::ValueRef;
use crate::span::Value;

/// How deeply arrays and maps may be nested. Those deeper are written without a value, as readers
/// refuse JSON that is nested too deeply.
pub const MAX_VALUE_DEPTH: usize = 16;

/// The value of an attribute: a [`ValueRef`] or a reference to a [`Value`].
pub trait AttributeValue: sealed::Value {}

pub(super) mod sealed {
    pub trait Value {
        /// Writes an `AnyValue`.
        fn write(self, out: &mut Vec<u8>);
    }
}

impl AttributeValue for ValueRef<'_> {}
impl AttributeValue for &Value {}

impl sealed::Value for ValueRef<'_> {
    fn write(self, out: &mut Vec<u8>) {
        match self {
            ValueRef::Str(text) => write_string(out, text),
            ValueRef::Bool(value) => write_bool(out, value),
            ValueRef::I64(value) => write_integer(out, value),
            ValueRef::F64(value) => write_double(out, value),
            ValueRef::Bytes(bytes) => write_bytes(out, bytes),
            // Arrays of a recording are flat.
            ValueRef::Array(values) => {
                write_array(out, values.iter(), |out, value| value.write(out))
            }
        }
    }
}

impl sealed::Value for &Value {
    fn write(self, out: &mut Vec<u8>) {
        write_nested(out, self, MAX_VALUE_DEPTH);
    }
}

/// A value that may be nested so many levels further.
fn write_nested(out: &mut Vec<u8>, value: &Value, levels: usize) {
    match value {
        Value::Str(text) => write_string(out, text),
        Value::Bool(value) => write_bool(out, *value),
        Value::I64(value) => write_integer(out, *value),
        Value::F64(value) => write_double(out, *value),
        Value::Bytes(bytes) => write_bytes(out, bytes),
        Value::Array(values) if levels > 0 => {
            write_array(out, values, |out, value| write_nested(out, value, levels - 1));
        }
        Value::Map(map) if levels > 0 => {
            write_list(out, br#"{"kvlistValue":{"values":["#, map, |out, (key, value)| {
                write_attribute(out, &**key, Nested { value, levels: levels - 1 });
            });
        }
        Value::Empty | Value::Array(_) | Value::Map(_) => out.extend_from_slice(b"{}"),
    }
}

struct Nested<'a> {
    value: &'a Value,
    levels: usize,
}

impl AttributeValue for Nested<'_> {}

impl sealed::Value for Nested<'_> {
    fn write(self, out: &mut Vec<u8>) {
        write_nested(out, self.value, self.levels);
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#"{"stringValue":"#);
    write_text(out, text);
    out.push(b'}');
}

fn write_bool(out: &mut Vec<u8>, value: bool) {
    let text: &[u8] = if value { br#"{"boolValue":true}"# } else { br#"{"boolValue":false}"# };
    out.extend_from_slice(text);
}

fn write_integer(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(br#"{"intValue":""#);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    out.extend_from_slice(br#""}"#);
}

/// The shortest digits that read back to the same double. What JSON has no number for is a text.
fn write_double(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(br#"{"doubleValue":"#);
    let mut buffer = zmij::Buffer::new();
    let text = if value.is_finite() {
        buffer.format_finite(value)
    } else if value.is_nan() {
        r#""NaN""#
    } else if value > 0.0 {
        r#""Infinity""#
    } else {
        r#""-Infinity""#
    };
    out.extend_from_slice(text.as_bytes());
    out.push(b'}');
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(br#"{"bytesValue":""#);
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]);
    debug_assert_eq!(written, Ok(out.len() - start));
    out.extend_from_slice(br#""}"#);
}

fn write_array<T>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    write_list(out, br#"{"arrayValue":{"values":["#, values, write);
}

fn write_list<T>(
    out: &mut Vec<u8>,
    head: &[u8],
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    out.extend_from_slice(head);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.extend_from_slice(b"]}}");
}
