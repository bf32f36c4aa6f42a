//! Fields of a message, one after the other.

use super::{MAX_DEPTH, Malformed};

/// What fields are put into.
pub(super) trait Message<'a> {
    /// Takes a field. Those it does not know it ignores.
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed>;
}

/// The value of a field, and how deep its message lies.
#[derive(Clone, Copy)]
pub(super) struct FieldValue<'a> {
    number: u32,
    raw: Raw<'a>,
    depth: u32,
}

#[derive(Clone, Copy)]
enum Raw<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(&'a [u8]),
    /// The old form of a message, of which OTLP has none.
    Group,
}

/// Adds the fields of an encoded message.
pub(super) fn merge<'a>(
    message: &mut impl Message<'a>,
    bytes: &'a [u8],
    depth: u32,
) -> Result<(), Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed::Depth);
    }
    let mut reader = Reader { bytes };
    while !reader.bytes.is_empty() {
        let (number, raw) = reader.field()?;
        message.field(number, FieldValue { number, raw, depth })?;
    }
    Ok(())
}

impl<'a> FieldValue<'a> {
    pub(super) fn message(self, message: &mut impl Message<'a>) -> Result<(), Malformed> {
        merge(message, self.bytes()?, self.depth + 1)
    }

    pub(super) fn element<M: Message<'a> + Default>(
        self,
        list: &mut Vec<M>,
    ) -> Result<(), Malformed> {
        let mut element = M::default();
        self.message(&mut element)?;
        list.push(element);
        Ok(())
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self.raw {
            Raw::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong_type()),
        }
    }

    pub(super) fn text(self) -> Result<String, Malformed> {
        let text = str::from_utf8(self.bytes()?);
        text.map(str::to_owned).map_err(|_| Malformed::Utf8 { number: self.number })
    }

    /// A number of any of the types `int32`, `int64`, `uint32`, `bool` and of enumerations.
    pub(super) fn varint(self) -> Result<u64, Malformed> {
        match self.raw {
            Raw::Varint(number) => Ok(number),
            _ => Err(self.wrong_type()),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, Malformed> {
        match self.raw {
            Raw::Fixed64(bytes) => Ok(u64::from_le_bytes(bytes)),
            _ => Err(self.wrong_type()),
        }
    }

    pub(super) fn fixed32(self) -> Result<u32, Malformed> {
        match self.raw {
            Raw::Fixed32(bytes) => Ok(u32::from_le_bytes(bytes)),
            _ => Err(self.wrong_type()),
        }
    }

    #[cold]
    fn wrong_type(self) -> Malformed {
        Malformed::Type { number: self.number }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn field(&mut self) -> Result<(u32, Raw<'a>), Malformed> {
        let tag = self.varint()?;
        let (number, kind) = split(tag)?;
        let raw = match kind {
            3 => {
                self.skip_group(number)?;
                Raw::Group
            }
            4 => return Err(Malformed::Tag { tag }),
            kind => self.plain(tag, kind)?,
        };
        Ok((number, raw))
    }

    fn plain(&mut self, tag: u64, kind: u8) -> Result<Raw<'a>, Malformed> {
        match kind {
            0 => Ok(Raw::Varint(self.varint()?)),
            1 => Ok(Raw::Fixed64(self.array()?)),
            2 => {
                let len = self.varint()?;
                let len = usize::try_from(len).map_err(|_| Malformed::Truncated)?;
                let (bytes, rest) = self.bytes.split_at_checked(len).ok_or(Malformed::Truncated)?;
                self.bytes = rest;
                Ok(Raw::Bytes(bytes))
            }
            5 => Ok(Raw::Fixed32(self.array()?)),
            _ => Err(Malformed::Tag { tag }),
        }
    }

    /// Skips a group and those within it.
    fn skip_group(&mut self, number: u32) -> Result<(), Malformed> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            let tag = self.varint()?;
            match split(tag)? {
                (_, 3) if open.len() >= MAX_DEPTH as usize => return Err(Malformed::Depth),
                (number, 3) => open.push(number),
                (number, 4) if number == innermost => drop(open.pop()),
                (_, kind) => drop(self.plain(tag, kind)?),
            }
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                return Err(Malformed::Number);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed::Number)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.bytes = rest;
        Ok(*array)
    }
}

/// A tag's field number and type.
fn split(tag: u64) -> Result<(u32, u8), Malformed> {
    match u32::try_from(tag >> 3) {
        Ok(number @ 1..0x2000_0000) => Ok((number, (tag & 7) as u8)),
        _ => Err(Malformed::Tag { tag }),
    }
}
