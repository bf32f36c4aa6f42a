//! Attribute values, borrowed from a recording or owned.

use super::field::{Varint, attribute_len, put_attribute, put_varint, varint_len};
use crate::otlp::json::MAX_VALUE_DEPTH;
use crate::recording::value::ValueRef;
use crate::span::Value;

/// The value of an attribute: a [`ValueRef`] or a reference to a [`Value`].
///
/// Arrays and maps nested deeper than [`MAX_VALUE_DEPTH`] are written without a value, as in JSON.
pub trait AttributeValue: sealed::Value {}

pub(super) mod sealed {
    pub trait Value: Copy {
        /// Bytes of the message `AnyValue`.
        fn encoded_len(self) -> usize;
        /// Writes that message.
        fn write(self, out: &mut Vec<u8>);
    }
}

use sealed::Value as _;

const STRING: u8 = super::tag(1);
const BOOL: u8 = 2 << 3;
const INT: u8 = 3 << 3;
const DOUBLE: u8 = 4 << 3 | 1;
const ARRAY: u8 = super::tag(5);
const MAP: u8 = super::tag(6);
const BYTES: u8 = super::tag(7);
/// The field of arrays and maps that holds their elements.
const ELEMENTS: u8 = super::tag(1);

/// A message `AnyValue` that holds a number, or what stands before a text that follows: up to eleven bytes.
#[derive(Clone, Copy)]
pub(super) struct Scalar {
    /// Its bytes, the first in the low bits.
    pub(super) word: u128,
    pub(super) len: usize,
}

impl Scalar {
    #[inline]
    pub(super) fn integer(value: i64) -> Self {
        let Varint { word, len } = Varint::of(value as u64);
        Self { word: word << 8 | u128::from(INT), len: 1 + len }
    }

    #[inline]
    pub(super) fn double(value: f64) -> Self {
        Self { word: u128::from(value.to_bits()) << 8 | u128::from(DOUBLE), len: 9 }
    }

    /// What stands before a text of less than 128 bytes.
    #[inline]
    pub(super) fn before_text(len: usize) -> Self {
        Self { word: (len as u128) << 8 | u128::from(STRING), len: 2 }
    }
}

impl AttributeValue for ValueRef<'_> {}
impl AttributeValue for &Value {}

impl sealed::Value for ValueRef<'_> {
    #[inline]
    fn encoded_len(self) -> usize {
        match self {
            ValueRef::Str(text) => message_len(text.len()),
            ValueRef::Bool(_) => 2,
            ValueRef::I64(value) => 1 + varint_len(value as u64),
            ValueRef::F64(_) => 9,
            ValueRef::Bytes(bytes) => message_len(bytes.len()),
            // Arrays of a recording are flat.
            ValueRef::Array(values) => message_len(elements_len(values.iter())),
        }
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        match self {
            ValueRef::Str(text) => put_bytes(out, STRING, text.as_bytes()),
            ValueRef::Bool(value) => put_bool(out, value),
            ValueRef::I64(value) => put_integer(out, value),
            ValueRef::F64(value) => put_double(out, value),
            ValueRef::Bytes(bytes) => put_bytes(out, BYTES, bytes),
            ValueRef::Array(values) => put_elements(out, || values.iter()),
        }
    }
}

impl sealed::Value for &Value {
    fn encoded_len(self) -> usize {
        Nested { value: self, levels: MAX_VALUE_DEPTH }.encoded_len()
    }

    fn write(self, out: &mut Vec<u8>) {
        Nested { value: self, levels: MAX_VALUE_DEPTH }.write(out);
    }
}

/// A value that may be nested so many levels further.
#[derive(Clone, Copy)]
struct Nested<'a> {
    value: &'a Value,
    levels: usize,
}

impl<'a> Nested<'a> {
    fn within(self, value: &'a Value) -> Self {
        Self { value, levels: self.levels - 1 }
    }
}

impl AttributeValue for Nested<'_> {}

impl sealed::Value for Nested<'_> {
    fn encoded_len(self) -> usize {
        match self.value {
            Value::Str(text) => message_len(text.len()),
            Value::Bool(_) => 2,
            Value::I64(value) => 1 + varint_len(*value as u64),
            Value::F64(_) => 9,
            Value::Bytes(bytes) => message_len(bytes.len()),
            Value::Array(values) if self.levels > 0 => {
                message_len(elements_len(values.iter().map(|value| self.within(value))))
            }
            Value::Map(map) if self.levels > 0 => message_len(self.map_len(map)),
            Value::Empty | Value::Array(_) | Value::Map(_) => 0,
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self.value {
            Value::Str(text) => put_bytes(out, STRING, text.as_bytes()),
            Value::Bool(value) => put_bool(out, *value),
            Value::I64(value) => put_integer(out, *value),
            Value::F64(value) => put_double(out, *value),
            Value::Bytes(bytes) => put_bytes(out, BYTES, bytes),
            Value::Array(values) if self.levels > 0 => {
                put_elements(out, || values.iter().map(|value| self.within(value)));
            }
            Value::Map(map) if self.levels > 0 => {
                out.push(MAP);
                put_varint(out, self.map_len(map) as u64);
                for (key, value) in map {
                    put_attribute(out, ELEMENTS, &**key, self.within(value));
                }
            }
            Value::Empty | Value::Array(_) | Value::Map(_) => {}
        }
    }
}

impl<'a> Nested<'a> {
    fn map_len(self, map: &'a [(String, Value)]) -> usize {
        let len = |(key, value): &'a (String, Value)| {
            message_len(attribute_len(&**key, self.within(value).encoded_len()))
        };
        map.iter().map(len).sum()
    }
}

/// Bytes of a field with a message of so many.
#[inline]
fn message_len(len: usize) -> usize {
    1 + varint_len(len as u64) + len
}

fn elements_len<V: sealed::Value>(values: impl Iterator<Item = V>) -> usize {
    values.map(|value| message_len(value.encoded_len())).sum()
}

fn put_elements<V: sealed::Value, I: Iterator<Item = V>>(
    out: &mut Vec<u8>,
    values: impl Fn() -> I,
) {
    out.push(ARRAY);
    put_varint(out, elements_len(values()) as u64);
    for value in values() {
        out.push(ELEMENTS);
        put_varint(out, value.encoded_len() as u64);
        value.write(out);
    }
}

#[inline]
fn put_bytes(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    super::field::put_message(out, tag, bytes);
}

#[inline]
fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(&[BOOL, value.into()]);
}

/// Negative ones take ten bytes, as protobuf wants it.
#[inline]
fn put_integer(out: &mut Vec<u8>, value: i64) {
    match value {
        0..0x80 => out.extend_from_slice(&[INT, value as u8]),
        _ => {
            out.push(INT);
            put_varint(out, value as u64);
        }
    }
}

#[inline]
fn put_double(out: &mut Vec<u8>, value: f64) {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    out.extend_from_slice(&[DOUBLE, a, b, c, d, e, f, g, h]);
}
