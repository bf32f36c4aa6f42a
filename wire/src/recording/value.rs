//! Attribute values as they stand in a recording: a four-bit tag, and words.
//!
//! Numbers take one word; texts and byte strings their length and their bytes, padded; arrays their count and
//! their elements. Decoding borrows and never trusts: what does not fit is `None`.

/// Kind of an encoded value. 0 means absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// A signed 64-bit integer.
    I64 = 1,
    /// A double.
    F64 = 2,
    /// A boolean.
    Bool = 3,
    /// UTF-8 text.
    Str = 4,
    /// Bytes.
    Bytes = 5,
    /// Signed 64-bit integers.
    I64s = 6,
    /// Doubles.
    F64s = 7,
    /// Booleans, a word each.
    Bools = 8,
    /// Texts: count (high half) and words in all (low half), then each as a text.
    Strs = 9,
}

impl Tag {
    /// The tag of a code, if there is one.
    pub const fn from_code(code: u8) -> Option<Tag> {
        Some(match code {
            1 => Tag::I64,
            2 => Tag::F64,
            3 => Tag::Bool,
            4 => Tag::Str,
            5 => Tag::Bytes,
            6 => Tag::I64s,
            7 => Tag::F64s,
            8 => Tag::Bools,
            9 => Tag::Strs,
            _ => return None,
        })
    }
}

/// An attribute value, borrowed from where it was recorded.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// Text.
    Str(&'a str),
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    I64(i64),
    /// A double.
    F64(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A homogeneous array.
    Array(ArrayRef<'a>),
}

/// A homogeneous array of values, borrowed from where it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a> {
    element: Tag,
    len: usize,
    words: &'a [u64],
}

impl<'a> ArrayRef<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = ValueRef<'a>> + use<'a> {
        let ArrayRef { element, len, mut words } = *self;
        (0..len).map_while(move |_| {
            let (value, rest) = decode(element, words)?;
            words = rest;
            Some(value)
        })
    }
}

/// Takes one value of kind `tag` from the front of `words`; gives it and the rest. `None` if it does not fit.
#[inline]
pub fn decode(tag: Tag, words: &[u64]) -> Option<(ValueRef<'_>, &[u64])> {
    let (&first, rest) = words.split_first()?;
    Some(match tag {
        Tag::I64 => (ValueRef::I64(first as i64), rest),
        Tag::F64 => (ValueRef::F64(f64::from_bits(first)), rest),
        Tag::Bool => (ValueRef::Bool(first != 0), rest),
        Tag::Str => {
            let (text, rest) = decode_str(words)?;
            (ValueRef::Str(text), rest)
        }
        Tag::Bytes => {
            let (bytes, rest) = decode_bytes(words)?;
            (ValueRef::Bytes(bytes), rest)
        }
        Tag::I64s => array(Tag::I64, first, rest)?,
        Tag::F64s => array(Tag::F64, first, rest)?,
        Tag::Bools => array(Tag::Bool, first, rest)?,
        Tag::Strs => {
            let (len, size) = ((first >> 32) as usize, first as u32 as usize);
            let (words, rest) = rest.split_at_checked(size)?;
            (ValueRef::Array(ArrayRef { element: Tag::Str, len, words }), rest)
        }
    })
}

/// Takes a text from the front of `words`. `None` if it does not fit or is not UTF-8.
#[inline]
pub fn decode_str(words: &[u64]) -> Option<(&str, &[u64])> {
    let (bytes, rest) = decode_bytes(words)?;
    Some((str::from_utf8(bytes).ok()?, rest))
}

#[inline]
fn decode_bytes(words: &[u64]) -> Option<(&[u8], &[u64])> {
    let (&len, rest) = words.split_first()?;
    let len = usize::try_from(len).ok()?;
    let (words, rest) = rest.split_at_checked(len.div_ceil(8))?;
    Some((&bytemuck::cast_slice(words)[..len], rest))
}

fn array(element: Tag, len: u64, rest: &[u64]) -> Option<(ValueRef<'_>, &[u64])> {
    let len = usize::try_from(len).ok()?;
    let (words, rest) = rest.split_at_checked(len)?;
    Some((ValueRef::Array(ArrayRef { element, len, words }), rest))
}

/// The attributes inline behind a slot: a word of tags (four bits each, the first in the low bits), then the values.
/// Absent ones (tag 0) are skipped; each comes with its place in the list of keys.
#[inline]
pub fn inline(count: u8, words: &[u64]) -> impl Iterator<Item = (usize, ValueRef<'_>)> {
    let (tags, mut rest) = match words.split_first() {
        Some((&tags, rest)) if count > 0 => (tags, rest),
        _ => (0, words),
    };
    (0..usize::from(count.min(16))).filter_map(move |at| {
        let tag = Tag::from_code((tags >> (4 * at)) as u8 & 15)?;
        let (value, after) = decode(tag, rest)?;
        rest = after;
        Some((at, value))
    })
}

/// The attributes of a side record: count, then key, tag and value of each.
pub fn keyed(words: &[u64]) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
    let (count, mut rest) = words.split_first().map_or((0, words), |(&count, rest)| (count, rest));
    (0..count).map_while(move |_| {
        let (key, after) = decode_str(rest)?;
        let (&tag, after) = after.split_first()?;
        let (value, after) = decode(Tag::from_code(u8::try_from(tag).ok()?)?, after)?;
        rest = after;
        Some((key, value))
    })
}
