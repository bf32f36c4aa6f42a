//! Attribute values: from Rust types to the words of a recording, without allocating.
//!
//! What a value becomes is OpenTelemetry's choice of types: integers, doubles, booleans, texts, bytes and homogeneous
//! arrays of these. An absent option is an absent attribute. This is the one file that writes values into a chunk.

mod bytes;
mod numbers;

use bytes::{byte_words, put_bytes};
use stagetrace_wire::recording::value::Tag;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

/// A type whose values can be recorded as attributes: integers, floats, `bool`, texts, bytes, [`Duration`] (seconds, as
/// a double), `Option` of these (absent when `None`), slices and vectors of numbers, booleans and texts, and references
/// to all of these.
///
/// An unsigned integer above `i64::MAX`, which OpenTelemetry cannot hold as a number, is recorded as decimal text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be recorded as an attribute",
    label = "not a number, `bool`, text, `Duration`, or an option or slice of these",
    note = "record its text with `display` or `debug`, its length with `len`, or convert it with `with = path`"
)]
pub trait Value: sealed::Sealed {
    /// How the value is encoded, `None` if it is absent.
    #[doc(hidden)]
    fn tag(&self) -> Option<Tag>;

    /// How many words it takes.
    #[doc(hidden)]
    fn words(&self) -> usize;

    /// Writes it.
    ///
    /// # Safety
    /// `out` points to as many words as [`Value::words`] says, which nobody else writes or reads.
    #[doc(hidden)]
    unsafe fn put(&self, out: *mut u64);

    /// How many words it takes inline behind a slot; more than there ever are if it cannot stand there.
    #[doc(hidden)]
    #[inline(always)]
    fn inline_words(&self) -> usize {
        self.words()
    }

    /// The tag and the words of a value that can stand inline behind a slot.
    ///
    /// # Safety
    /// `out` points to as many words as [`Value::inline_words`] says, which nobody else writes or reads.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn put_inline(&self, out: *mut u64) -> Option<Tag> {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.put(out) };
        self.tag()
    }

    /// The value if it is text, which can be cut.
    #[doc(hidden)]
    fn text(&self) -> Option<&str> {
        None
    }
}

/// Only this module implements [`Value`]: `put` relies on `words`.
mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for str {}

impl Value for str {
    #[inline(always)]
    fn tag(&self) -> Option<Tag> {
        Some(Tag::Str)
    }
    #[inline(always)]
    fn words(&self) -> usize {
        byte_words(self.len())
    }
    #[inline(always)]
    unsafe fn put(&self, out: *mut u64) {
        // SAFETY: the caller's promise, passed on.
        unsafe { put_bytes(self.as_bytes(), out) };
    }
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

macro_rules! like {
    ($([$($generics:tt)*] $type:ty: |$this:ident| $as:expr;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $type {}
        impl<$($generics)*> Value for $type {
            #[inline(always)]
            fn tag(&self) -> Option<Tag> {
                let $this = self;
                $as.tag()
            }
            #[inline(always)]
            fn words(&self) -> usize {
                let $this = self;
                $as.words()
            }
            #[inline(always)]
            unsafe fn put(&self, out: *mut u64) {
                let $this = self;
                // SAFETY: the caller's promise, passed on.
                unsafe { $as.put(out) };
            }
            #[inline(always)]
            fn inline_words(&self) -> usize {
                let $this = self;
                $as.inline_words()
            }
            #[inline(always)]
            unsafe fn put_inline(&self, out: *mut u64) -> Option<Tag> {
                let $this = self;
                // SAFETY: the caller's promise, passed on.
                unsafe { $as.put_inline(out) }
            }
            fn text(&self) -> Option<&str> {
                let $this = self;
                Value::text(&$as)
            }
        }
    )*};
}

like! {
    [] String: |s| **s;
    [] std::borrow::Cow<'_, str>: |s| **s;
    [T: Value + ?Sized] &T: |v| **v;
    [T: Value + ?Sized] &mut T: |v| **v;
    [T: Value + ?Sized] Box<T>: |v| **v;
    [T: Value + ?Sized] Arc<T>: |v| **v;
    [T: Element] Vec<T>: |v| v[..];
    [T: Element, const N: usize] [T; N]: |v| v[..];
    [] Vec<u8>: |v| v[..];
    [const N: usize] [u8; N]: |v| v[..];
}

impl<T: Value> sealed::Sealed for Option<T> {}

impl<T: Value> Value for Option<T> {
    #[inline(always)]
    fn tag(&self) -> Option<Tag> {
        self.as_ref().and_then(Value::tag)
    }
    #[inline(always)]
    fn words(&self) -> usize {
        self.as_ref().map_or(0, Value::words)
    }
    #[inline(always)]
    unsafe fn put(&self, out: *mut u64) {
        if let Some(value) = self {
            // SAFETY: the caller's promise, passed on.
            unsafe { value.put(out) };
        }
    }
    #[inline(always)]
    fn inline_words(&self) -> usize {
        self.as_ref().map_or(0, Value::inline_words)
    }
    #[inline(always)]
    unsafe fn put_inline(&self, out: *mut u64) -> Option<Tag> {
        // SAFETY: the caller's promise, passed on.
        self.as_ref().and_then(|value| unsafe { value.put_inline(out) })
    }
    fn text(&self) -> Option<&str> {
        self.as_ref().and_then(Value::text)
    }
}

impl<T: Value, E> sealed::Sealed for Result<T, E> {}

/// What a fallible function returned: an error is absent here, since the span says so itself.
impl<T: Value, E> Value for Result<T, E> {
    fn tag(&self) -> Option<Tag> {
        self.as_ref().ok().and_then(Value::tag)
    }
    fn words(&self) -> usize {
        self.as_ref().map_or(0, Value::words)
    }
    unsafe fn put(&self, out: *mut u64) {
        if let Ok(value) = self {
            // SAFETY: the caller's promise, passed on.
            unsafe { value.put(out) };
        }
    }
    fn text(&self) -> Option<&str> {
        self.as_ref().ok().and_then(Value::text)
    }
}

impl sealed::Sealed for [u8] {}

impl Value for [u8] {
    fn tag(&self) -> Option<Tag> {
        Some(Tag::Bytes)
    }
    fn words(&self) -> usize {
        byte_words(self.len())
    }
    unsafe fn put(&self, out: *mut u64) {
        // SAFETY: the caller's promise, passed on.
        unsafe { put_bytes(self, out) };
    }
}

/// A type of which slices can be recorded.
#[doc(hidden)]
pub trait Element: Value {
    /// The tag of a slice.
    const SLICE: Tag;
}

macro_rules! elements {
    ($($slice:ident: $($type:ty),*;)*) => {$($(
        impl Element for $type {
            const SLICE: Tag = Tag::$slice;
        }
    )*)*};
}

elements! {
    I64s: i64, i32, i16, i8, isize, u32, u16;
    F64s: f64, f32, Duration;
    Bools: bool;
    Strs: String, &str, std::borrow::Cow<'_, str>, Box<str>, Arc<str>;
}

impl<T: Element> sealed::Sealed for [T] {}

impl<T: Element> Value for [T] {
    fn tag(&self) -> Option<Tag> {
        Some(T::SLICE)
    }
    fn words(&self) -> usize {
        1 + self.iter().map(Value::words).sum::<usize>()
    }
    unsafe fn put(&self, out: *mut u64) {
        let len = self.len() as u64;
        let first = if T::SLICE == Tag::Strs { len << 32 | (self.words() - 1) as u64 } else { len };
        // SAFETY: `words` is one for the count and the sum of the elements', which are written one after the other.
        unsafe {
            out.write(first);
            let mut at = out.add(1);
            for element in self {
                element.put(at);
                at = at.add(element.words());
            }
        }
    }
}

/// The value if it is an integer.
#[inline(always)]
pub(crate) fn integer<V: Value + ?Sized>(value: &V) -> Option<i64> {
    if value.tag() != Some(Tag::I64) {
        return None;
    }
    let mut word = 0;
    // SAFETY: an integer takes one word.
    unsafe { value.put(&mut word) };
    Some(word as i64)
}

/// The tag of an integer, as a word.
pub(crate) const INTEGER: u64 = Tag::I64 as u64;

/// Writes a value's words; gives where the next one goes.
///
/// # Safety
/// `out` points to as many words of the caller's own as the value takes.
pub(crate) unsafe fn encode_at<V: Value + ?Sized>(value: &V, out: *mut u64) -> *mut u64 {
    // SAFETY: the caller's promise.
    unsafe {
        value.put(out);
        out.add(value.words())
    }
}

/// A value's words, safely: encoded into `out`, `None` if there is no room or it is absent. Gives tag and words written.
#[inline]
pub(crate) fn encode<V: Value + ?Sized>(
    value: &V,
    out: &mut [MaybeUninit<u64>],
) -> Option<(Tag, usize)> {
    let (tag, words) = (value.tag()?, value.words());
    let room = out.get_mut(..words)?;
    // SAFETY: `room` has as many words as the value says it takes.
    unsafe { value.put(room.as_mut_ptr().cast()) };
    Some((tag, words))
}

/// A number of at most 16 digits as decimal text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    /// Its first digit in the lowest byte.
    text: u128,
    len: usize,
}

impl Decimal {
    /// Of a number that is not negative; `None` if it has more digits.
    #[inline]
    pub(crate) fn of(number: i64) -> Option<Decimal> {
        let mut rest = u64::try_from(number).ok().filter(|number| *number < 10_u64.pow(16))?;
        let mut decimal = Decimal { text: 0, len: 0 };
        loop {
            decimal.text = decimal.text << 8 | u128::from(b'0' + (rest % 10) as u8);
            decimal.len += 1;
            rest /= 10;
            if rest == 0 {
                return Some(decimal);
            }
        }
    }
}

impl sealed::Sealed for Decimal {}

impl Value for Decimal {
    #[inline]
    fn tag(&self) -> Option<Tag> {
        Some(Tag::Str)
    }
    #[inline]
    fn words(&self) -> usize {
        byte_words(self.len)
    }
    #[inline]
    unsafe fn put(&self, out: *mut u64) {
        // SAFETY: there is room for the length and as many words as the digits take, one or two.
        unsafe {
            out.write(self.len as u64);
            out.add(1).write((self.text as u64).to_le());
            if self.len > 8 {
                out.add(2).write(((self.text >> 64) as u64).to_le());
            }
        }
    }
}

#[cfg(test)]
mod tests;
