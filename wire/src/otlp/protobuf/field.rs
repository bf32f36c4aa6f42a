//! Fields: numbers in as few bytes as they need, texts, messages whose length is known last.

use super::span::ATTRIBUTES;
use super::value::{AttributeValue, Scalar};
use crate::span::Value;

/// An attribute's key, encoded once.
#[derive(Clone, Debug)]
pub struct KeyHead {
    /// A span's attribute up to the length of its value: tag, room for its own length, key, tag of the value. Zeros
    /// follow, up to [`SHORT`] bytes.
    padded: Vec<u8>,
    len: usize,
}

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

/// Bytes of which all are copied, though some are not wanted: that takes less than a copy of unknown length.
const SHORT: usize = 32;

const KEY: u8 = super::tag(1);
const VALUE: u8 = super::tag(2);

impl KeyHead {
    /// Encodes a key.
    pub fn new(key: &str) -> Self {
        let mut padded = vec![ATTRIBUTES, 0];
        put_text(&mut padded, KEY, key);
        padded.push(VALUE);
        let len = padded.len();
        padded.resize(len.max(SHORT), 0);
        Self { padded, len }
    }

    /// The key's own field.
    #[inline]
    fn field(&self) -> &[u8] {
        &self.padded[2..self.len - 1]
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
    #[inline]
    fn encoded_len(self) -> usize {
        self.len - 3
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.field());
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

/// Bytes of the field with a length that stands at the beginning, tag and length included.
pub(super) fn len_of_message(bytes: &[u8]) -> usize {
    let mut len = 0;
    let mut at = 1;
    loop {
        let byte = bytes[at];
        len |= usize::from(byte & 0x7f) << (7 * (at - 1));
        at += 1;
        if byte < 0x80 {
            return at + len;
        }
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
    let value_len = value.encoded_len();
    let len = key.encoded_len() + 2 + value_len;
    if len < 0x80 {
        out.extend_from_slice(&[tag, len as u8]);
        key.write(out);
        out.extend_from_slice(&[VALUE, value_len as u8]);
    } else {
        out.push(tag);
        put_varint(out, attribute_len(key, value_len) as u64);
        key.write(out);
        out.push(VALUE);
        put_varint(out, value_len as u64);
    }
    value.write(out);
}

/// Puts a value that is encoded already as an attribute of a span: all but what follows its first bytes.
#[inline]
pub(super) fn put_encoded(out: &mut Vec<u8>, key: &KeyHead, value: Scalar, behind: usize) -> bool {
    let value_len = value.len + behind;
    let len = key.len - 1 + value_len;
    let (true, Some(short)) = (key.len <= SHORT && len < 0x80, key.padded.first_chunk::<SHORT>())
    else {
        return false;
    };
    let at = out.len();
    put_short(out, short, key.len);
    out[at + 1] = len as u8;
    // A message of so few bytes ends in the upper half.
    let field = value.word << 8 | value_len as u128;
    put_short(out, &field.to_le_bytes(), 1 + value.len);
    true
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
#[inline]
pub(super) fn put_message(out: &mut Vec<u8>, tag: u8, message: &[u8]) {
    match message.len() {
        len @ ..0x80 => out.extend_from_slice(&[tag, len as u8]),
        len => {
            out.push(tag);
            put_varint(out, len as u64);
        }
    }
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
        let varint = Varint::of(number);
        put_short(out, &varint.padded(), varint.len);
    }
}

/// Puts the first `len` bytes.
#[inline]
pub(super) fn put_short<const MOST: usize>(out: &mut Vec<u8>, bytes: &[u8; MOST], len: usize) {
    let end = out.len() + len;
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// A number as it is encoded.
pub(super) struct Varint {
    /// Its bytes, the first in the low bits.
    pub(super) word: u128,
    pub(super) len: usize,
}

impl Varint {
    #[inline]
    pub(super) fn of(number: u64) -> Self {
        let len = varint_len(number);
        if len > 8 {
            return Self::long(number);
        }
        // Its groups of seven bits apart from each other by one: first two of four groups, then four of two, then all.
        let spread = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
        let spread = spread & 0x0000_3fff_0000_3fff | (spread & 0x0fff_c000_0fff_c000) << 2;
        let spread = spread & 0x007f_007f_007f_007f | (spread & 0x3f80_3f80_3f80_3f80) << 1;
        let more = 0x8080_8080_8080_8080 & ((1 << (8 * (len - 1))) - 1);
        Self { word: (spread | more).into(), len }
    }

    #[cold]
    fn long(mut number: u64) -> Self {
        let (mut word, mut len) = (0, 0);
        while number >= 0x80 {
            word |= u128::from(number as u8 | 0x80) << (8 * len);
            number >>= 7;
            len += 1;
        }
        Self { word: word | u128::from(number) << (8 * len), len: len + 1 }
    }

    /// Its bytes, and zeros behind them.
    #[inline]
    pub(super) fn padded(&self) -> [u8; 16] {
        self.word.to_le_bytes()
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
        out[at..at + length.len].copy_from_slice(&length.padded()[..length.len]);
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
        for shift in 0..64 {
            for number in
                [1 << shift, (1 << shift) - 1, u64::MAX >> shift, 0x9e37_79b9_7f4a_7c15 >> shift]
            {
                let (fast, plain) = (Varint::of(number), Varint::long(number));
                assert_eq!((fast.word, fast.len), (plain.word, plain.len), "{number:#x}");
            }
        }
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
