//! Fields: numbers in as few bytes as they need, texts, messages whose length is known last.

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
    pub trait Key: Copy {
        /// Bytes of the field.
        fn encoded_len(self) -> usize;
        /// Writes the field `key`.
        fn write(self, out: &mut Vec<u8>);
    }
}

const KEY: u8 = super::tag(1);
const VALUE: u8 = super::tag(2);

impl KeyHead {
    /// Encodes a key.
    pub fn new(key: &str) -> Self {
        let mut encoded = Vec::with_capacity(key.len() + 2);
        put_text(&mut encoded, KEY, key);
        Self(encoded)
    }
}

impl AttributeHead {
    /// Encodes an attribute.
    pub fn new(key: impl AttributeKey, value: impl AttributeValue) -> Self {
        let mut encoded = Vec::new();
        put_attribute_content(&mut encoded, key, value);
        Self(encoded)
    }

    /// The message `KeyValue`.
    pub(super) fn content(&self) -> &[u8] {
        &self.0
    }
}

impl AttributeKey for &KeyHead {}
impl AttributeKey for &str {}

impl sealed::Key for &KeyHead {
    fn encoded_len(self) -> usize {
        self.0.len()
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl sealed::Key for &str {
    fn encoded_len(self) -> usize {
        text_len(self)
    }

    fn write(self, out: &mut Vec<u8>) {
        put_text(out, KEY, self);
    }
}

/// Bytes of a `KeyValue`, for a value of so many bytes.
pub(super) fn attribute_len(key: impl AttributeKey, value: usize) -> usize {
    key.encoded_len() + 1 + varint_len(value as u64) + value
}

/// Puts a `KeyValue` as a field.
#[inline]
pub(super) fn put_attribute(
    out: &mut Vec<u8>,
    tag: u8,
    key: impl AttributeKey,
    value: impl AttributeValue,
) {
    let len = value.encoded_len();
    out.push(tag);
    put_varint(out, attribute_len(key, len) as u64);
    key.write(out);
    out.push(VALUE);
    put_varint(out, len as u64);
    value.write(out);
}

fn put_attribute_content(out: &mut Vec<u8>, key: impl AttributeKey, value: impl AttributeValue) {
    key.write(out);
    out.push(VALUE);
    put_varint(out, value.encoded_len() as u64);
    value.write(out);
}

/// Puts each attribute as a field.
pub(super) fn put_attributes(out: &mut Vec<u8>, tag: u8, attributes: &[(String, Value)]) {
    for (key, value) in attributes {
        put_attribute(out, tag, &**key, value);
    }
}

/// Bytes of a text's field; none if it is empty.
pub(super) fn text_len(text: &str) -> usize {
    if text.is_empty() { 0 } else { 1 + varint_len(text.len() as u64) + text.len() }
}

/// Puts a text, unless it is empty.
pub(super) fn put_text(out: &mut Vec<u8>, tag: u8, text: &str) {
    if !text.is_empty() {
        put_message(out, tag, text.as_bytes());
    }
}

/// Puts a message or bytes, also empty ones.
pub(super) fn put_message(out: &mut Vec<u8>, tag: u8, message: &[u8]) {
    out.push(tag);
    put_varint(out, message.len() as u64);
    out.extend_from_slice(message);
}

/// Puts a number, unless it is 0.
pub(super) fn put_uint(out: &mut Vec<u8>, tag: u8, number: u32) {
    if number != 0 {
        out.push(tag);
        put_varint(out, number.into());
    }
}

/// Bytes of a number: seven bits each.
#[inline]
pub(super) fn varint_len(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}

/// Puts a number, the low bits first.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        out.push(number as u8);
    } else {
        out.extend_from_slice(Varint::of(number).bytes());
    }
}

/// A number as it is encoded.
pub(super) struct Varint {
    bytes: [u8; 10],
    len: usize,
}

impl Varint {
    pub(super) fn of(mut number: u64) -> Self {
        let mut bytes = [0; 10];
        let mut len = 0;
        while number >= 0x80 {
            bytes[len] = number as u8 | 0x80;
            number >>= 7;
            len += 1;
        }
        bytes[len] = number as u8;
        Self { bytes, len: len + 1 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A message whose length is put in front of it when it is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Where the length begins.
    at: usize,
    /// Bytes that are kept for it.
    width: usize,
}

impl Part {
    /// Begins a message; its length is thought to take `width` bytes, up to 10.
    #[inline]
    pub(super) fn begin(out: &mut Vec<u8>, tag: u8, width: usize) -> Self {
        let at = out.len() + 1;
        match width {
            1 => out.extend_from_slice(&[tag, 0]),
            2 => out.extend_from_slice(&[tag, 0, 0]),
            _ => {
                out.push(tag);
                out.extend_from_slice(&[0; 10][..width]);
            }
        }
        Self { at, width }
    }

    /// Ends it; gives how many bytes its length took. If others were kept, it is moved.
    #[inline]
    pub(super) fn end(self, out: &mut Vec<u8>) -> usize {
        let Self { at, width } = self;
        let length = out.len() - at - width;
        match (width, &mut out[at..]) {
            (1, [first, ..]) if length < 0x80 => *first = length as u8,
            (2, [first, second, ..]) if (0x80..0x4000).contains(&length) => {
                (*first, *second) = (length as u8 | 0x80, (length >> 7) as u8);
            }
            _ => return self.end_anyhow(out),
        }
        width
    }

    #[cold]
    fn end_anyhow(self, out: &mut Vec<u8>) -> usize {
        let Self { at, width } = self;
        let length = Varint::of((out.len() - at - width) as u64);
        if length.len != width {
            move_message(out, at + width, at + length.len);
        }
        out[at..at + length.len].copy_from_slice(length.bytes());
        length.len
    }
}

fn move_message(out: &mut Vec<u8>, from: usize, to: usize) {
    let end = out.len();
    if to > from {
        out.extend_from_slice(&[0; 10][..to - from]);
    }
    out.copy_within(from..end, to);
    out.truncate(end - from + to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_takes_as_few_bytes_as_it_needs() {
        for (number, expected) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 1]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!((&*out, varint_len(number)), (expected, expected.len()), "{number}");
        }
    }

    #[test]
    fn a_message_is_whole_however_many_bytes_were_kept_for_its_length() {
        for len in [0, 1, 127, 128, 300, 20_000] {
            let message: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            let mut expected = Vec::new();
            put_message(&mut expected, 7, &message);
            for width in 1..5 {
                let mut out = Vec::new();
                let part = Part::begin(&mut out, 7, width);
                out.extend_from_slice(&message);
                assert_eq!(part.end(&mut out), varint_len(len));
                assert_eq!(out, expected, "{len} bytes, {width} kept");
            }
        }
    }
}
