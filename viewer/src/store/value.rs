//! Attribute values as bytes: short, and in one piece.

use stagetrace_wire::span::Value;

/// What a value's first byte says of it.
pub(super) mod tag {
    pub(crate) const EMPTY: u8 = 0;
    pub(crate) const FALSE: u8 = 1;
    pub(crate) const TRUE: u8 = 2;
    /// A zigzag number follows.
    pub(crate) const INT: u8 = 3;
    /// Eight bytes follow.
    pub(crate) const DOUBLE: u8 = 4;
    /// Length and UTF-8 follow.
    pub(crate) const TEXT: u8 = 5;
    /// Length and bytes follow.
    pub(crate) const BYTES: u8 = 6;
    /// A count and values follow.
    pub(crate) const ARRAY: u8 = 7;
    /// A count, and for each member its key (length and UTF-8) and value follow.
    pub(crate) const MAP: u8 = 8;
    /// The number of a value in the table of those that repeat follows.
    pub(crate) const REPEATED: u8 = 9;
}

/// Writes a number in as few bytes as it takes.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_text_value(out: &mut Vec<u8>, text: &str) {
    out.push(tag::TEXT);
    put_bytes(out, text.as_bytes());
}

pub(crate) fn put_int_value(out: &mut Vec<u8>, value: i64) {
    out.push(tag::INT);
    put_number(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(crate) fn put_double_value(out: &mut Vec<u8>, value: f64) {
    out.push(tag::DOUBLE);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

pub(crate) fn put_bool_value(out: &mut Vec<u8>, value: bool) {
    out.push(if value { tag::TRUE } else { tag::FALSE });
}

/// Writes what an array begins with; its elements follow.
pub(crate) fn put_array_head(out: &mut Vec<u8>, count: u64) {
    out.push(tag::ARRAY);
    put_number(out, count);
}

/// Writes a value with all it owns.
pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Empty => out.push(tag::EMPTY),
        Value::Bool(value) => put_bool_value(out, *value),
        Value::I64(value) => put_int_value(out, *value),
        Value::F64(value) => put_double_value(out, *value),
        Value::Str(text) => put_text_value(out, text),
        Value::Bytes(bytes) => {
            out.push(tag::BYTES);
            put_bytes(out, bytes);
        }
        Value::Array(values) => {
            put_array_head(out, values.len() as u64);
            values.iter().for_each(|value| put_value(out, value));
        }
        Value::Map(members) => {
            out.push(tag::MAP);
            put_number(out, members.len() as u64);
            for (key, value) in members {
                put_bytes(out, key.as_bytes());
                put_value(out, value);
            }
        }
    }
}

/// Reads what the functions above wrote. Nothing else is ever given to it, so an end that comes too
/// early is read as zeros instead of being reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 63 {
                return number;
            }
        }
    }

    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = (self.number() as usize).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes
    }

    pub(crate) fn text(&mut self) -> &'a str {
        str::from_utf8(self.bytes()).unwrap_or_default()
    }

    /// Reads a value; `repeated` gives the bytes of those that repeat.
    pub(crate) fn value<'t>(&mut self, repeated: &impl Fn(u64) -> &'t [u8]) -> Value {
        match self.byte() {
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT => {
                let number = self.number();
                Value::I64((number >> 1) as i64 ^ -((number & 1) as i64))
            }
            tag::DOUBLE => {
                let mut bits = [0; 8];
                bits.iter_mut().for_each(|byte| *byte = self.byte());
                Value::F64(f64::from_bits(u64::from_le_bytes(bits)))
            }
            tag::TEXT => Value::Str(self.text().to_owned()),
            tag::BYTES => Value::Bytes(self.bytes().to_vec()),
            tag::ARRAY => {
                let count = self.number();
                Value::Array((0..count).map(|_| self.value(repeated)).collect())
            }
            tag::MAP => {
                let count = self.number();
                let mut member = |_| (self.text().to_owned(), self.value(repeated));
                Value::Map((0..count).map(&mut member).collect())
            }
            tag::REPEATED => Bytes(repeated(self.number())).value(repeated),
            _ => Value::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_reads_as_it_was_written() {
        let texts = ["", "plain", "Grüße 世界", &"x".repeat(300)];
        let mut values: Vec<Value> = texts.iter().map(|text| (*text).into()).collect();
        values.extend([0, 1, -1, 63, 64, i64::MAX, i64::MIN].map(Value::I64));
        values.extend([0.0, -0.0, 0.1, f64::INFINITY, 5e-324].map(Value::F64));
        values.extend([Value::Empty, Value::Bool(true), Value::Bool(false)]);
        values.push(Value::Bytes((0..=255).collect()));
        values.push(Value::Array(values.clone()));
        values.push(Value::Map(vec![("key".into(), values.last().cloned().unwrap())]));
        let mut out = Vec::new();
        values.iter().for_each(|value| put_value(&mut out, value));
        let mut bytes = Bytes(&out);
        for value in &values {
            assert_eq!(bytes.value(&|_| &[]), *value);
        }
        assert!(bytes.0.is_empty());
    }
}
