//! The little of protobuf's encoding that Perfetto's trace needs.

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

/// How the value of a field is encoded.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

impl Message {
    /// A `uint32`, `uint64`, `bool` or enumeration, or an `int64` as its two's complement.
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, Wire::Varint);
        self.varint(value);
        self
    }

    /// A `fixed64`, or the bits of a `double`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, Wire::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `string`.
    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.tag(field, Wire::Bytes);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// A message, which `write` fills.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Self {
        self.tag(field, Wire::Bytes);
        let mut inner = Message::default();
        write(&mut inner);
        self.varint(inner.0.len() as u64);
        self.0.extend_from_slice(&inner.0);
        self
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field << 3 | wire as u32));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn fields_are_encoded_as_protobuf_specifies() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing").message(3, |inner| {
            inner.number(1, 150);
        });
        message.number(16, u64::MAX).fixed64(1, 1);
        let mut expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x80\x01".to_vec();
        expected.extend([0xff; 9]);
        expected.extend([1, 9, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(message.0, expected);
    }
}
