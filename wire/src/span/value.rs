//! Attribute values.

use crate::recording::value::ValueRef;

/// Attributes in order of recording. Keys should be unique, but nothing relies on it.
pub type Attributes = Vec<(String, Value)>;

/// The value of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Text.
    Str(String),
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    I64(i64),
    /// A double, perhaps not finite.
    F64(f64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Values of any kinds.
    Array(Vec<Value>),
    /// Named values, in order.
    Map(Attributes),
    /// No value.
    #[default]
    Empty,
}

/// The value of a key; of several the first.
pub fn find<'a>(attributes: &'a [(String, Value)], key: &str) -> Option<&'a Value> {
    attributes.iter().find_map(|(other, value)| (other == key).then_some(value))
}

impl Value {
    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The integer, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::I64(value) => Some(value),
            _ => None,
        }
    }

    /// The number, if it is an integer or a double. Integers beyond 2^53 are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F64(value) => Some(value),
            Self::I64(value) => Some(value as f64),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Str(text) => Self::Str(text.to_owned()),
            ValueRef::Bool(value) => Self::Bool(value),
            ValueRef::I64(value) => Self::I64(value),
            ValueRef::F64(value) => Self::F64(value),
            ValueRef::Bytes(bytes) => Self::Bytes(bytes.to_owned()),
            ValueRef::Array(values) => Self::Array(values.iter().map(Self::from).collect()),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}
