//! Members of an object, with their commas; the empty ones left out.

use super::text::write_text;
use super::value::AttributeValue;
use crate::span::Value;

/// An attribute's key, encoded once.
#[derive(Clone, Debug)]
pub struct KeyHead(Vec<u8>);

/// An attribute with its value, encoded once.
#[derive(Clone, Debug)]
pub struct AttributeHead(Vec<u8>);

/// The key of an attribute: a [`KeyHead`] or plain text.
pub trait AttributeKey: sealed::Key {}

mod sealed {
    pub trait Key {
        /// Writes `{"key":"…"`.
        fn write(self, out: &mut Vec<u8>);
    }
}

impl KeyHead {
    /// Encodes a key.
    pub fn new(key: &str) -> Self {
        let mut encoded = Vec::with_capacity(key.len() + 10);
        sealed::Key::write(key, &mut encoded);
        Self(encoded)
    }
}

impl AttributeHead {
    /// Encodes an attribute.
    pub fn new(key: impl AttributeKey, value: impl AttributeValue) -> Self {
        let mut encoded = Vec::new();
        write_attribute(&mut encoded, key, value);
        Self(encoded)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl AttributeKey for &KeyHead {}
impl AttributeKey for &str {}

impl sealed::Key for &KeyHead {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl sealed::Key for &str {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"key":"#);
        write_text(out, self);
    }
}

/// Writes a `KeyValue`.
pub(super) fn write_attribute(
    out: &mut Vec<u8>,
    key: impl AttributeKey,
    value: impl AttributeValue,
) {
    key.write(out);
    out.extend_from_slice(br#","value":"#);
    value.write(out);
    out.push(b'}');
}

/// Writes the members of an object. Keys are given as they stand in JSON, with quotes and colon.
pub(super) struct Members<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Members<'o> {
    /// Begins an object.
    pub(super) fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Goes on with an object that has members already.
    pub(super) fn resume(out: &'o mut Vec<u8>) -> Self {
        Self { out, empty: false }
    }

    /// Begins a member, whose value is for the caller to write.
    pub(super) fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    /// A text, unless it is empty.
    pub(super) fn text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            write_text(self.key(key), text);
        }
    }

    /// A 32-bit number, unless it is 0.
    pub(super) fn number(&mut self, key: &'static str, number: u32) {
        if number != 0 {
            self.key(key).extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
    }

    /// A 64-bit time, unless it is 0.
    pub(super) fn nanos(&mut self, key: &'static str, nanos: u64) {
        if nanos != 0 {
            let out = self.key(key);
            out.push(b'"');
            out.extend_from_slice(itoa::Buffer::new().format(nanos).as_bytes());
            out.push(b'"');
        }
    }

    /// Attributes and the number of those dropped.
    pub(super) fn attributes(&mut self, attributes: &[(String, Value)], dropped: u32) {
        for (at, (key, value)) in attributes.iter().enumerate() {
            let out = match at {
                0 => self.key(r#""attributes":["#),
                _ => self.key(""),
            };
            write_attribute(out, &**key, value);
        }
        if !attributes.is_empty() {
            self.out.push(b']');
        }
        self.number(r#""droppedAttributesCount":"#, dropped);
    }

    /// Ends the object.
    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}
