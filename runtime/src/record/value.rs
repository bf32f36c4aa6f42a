//! Attribute values: from Rust types to the words of a recording, without allocating.
//!
//! What a value becomes is OpenTelemetry's choice of types: integers, doubles, booleans, texts, bytes and homogeneous
//! arrays of these. An absent option is an absent attribute. This is the one file that writes values into a chunk.

use stagetrace_wire::recording::value::Tag;
use std::mem::MaybeUninit;
use std::num::NonZero;
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

macro_rules! one_word {
    ($($type:ty: $tag:ident, |$value:ident| $word:expr;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Value for $type {
            #[inline(always)]
            fn tag(&self) -> Option<Tag> {
                Some(Tag::$tag)
            }
            #[inline(always)]
            fn words(&self) -> usize {
                1
            }
            #[inline(always)]
            unsafe fn put(&self, out: *mut u64) {
                let $value = *self;
                // SAFETY: there is room for one word.
                unsafe { out.write($word) };
            }
        }
    )*};
}

one_word! {
    i64: I64, |v| v as u64;
    i32: I64, |v| i64::from(v) as u64;
    i16: I64, |v| i64::from(v) as u64;
    i8: I64, |v| i64::from(v) as u64;
    isize: I64, |v| v as i64 as u64;
    u32: I64, |v| u64::from(v);
    u16: I64, |v| u64::from(v);
    u8: I64, |v| u64::from(v);
    f64: F64, |v| v.to_bits();
    f32: F64, |v| f64::from(v).to_bits();
    bool: Bool, |v| u64::from(v);
    Duration: F64, |v| v.as_secs_f64().to_bits();
    NonZero<i64>: I64, |v| v.get() as u64;
    NonZero<i32>: I64, |v| i64::from(v.get()) as u64;
    NonZero<i16>: I64, |v| i64::from(v.get()) as u64;
    NonZero<i8>: I64, |v| i64::from(v.get()) as u64;
    NonZero<isize>: I64, |v| v.get() as i64 as u64;
    NonZero<u32>: I64, |v| u64::from(v.get());
    NonZero<u16>: I64, |v| u64::from(v.get());
    NonZero<u8>: I64, |v| u64::from(v.get());
}

/// More words than ever stand behind a slot.
const NOT_INLINE: usize = 1 << 20;
/// Most decimal digits of a `u64`, in words.
const DIGITS: usize = 20_usize.div_ceil(8);

macro_rules! unsigned {
    ($($type:ty: |$value:ident| $as:expr;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Value for $type {
            #[inline(always)]
            fn tag(&self) -> Option<Tag> {
                let $value = *self;
                Some(if $as <= i64::MAX as u64 { Tag::I64 } else { Tag::Str })
            }
            #[inline(always)]
            fn words(&self) -> usize {
                let $value = *self;
                if $as <= i64::MAX as u64 { 1 } else { 1 + DIGITS }
            }
            #[inline(always)]
            unsafe fn put(&self, out: *mut u64) {
                let $value = *self;
                // SAFETY: there is room for the one word, or for the length and the digits.
                unsafe {
                    if $as <= i64::MAX as u64 {
                        out.write($as);
                    } else {
                        put_digits($as, out);
                    }
                }
            }
            // Text instead of a number is so rare that it goes beside the span.
            #[inline(always)]
            fn inline_words(&self) -> usize {
                let $value = *self;
                if $as <= i64::MAX as u64 { 1 } else { NOT_INLINE }
            }
            #[inline(always)]
            unsafe fn put_inline(&self, out: *mut u64) -> Option<Tag> {
                let $value = *self;
                // SAFETY: there is room for one word, which is all that such a value takes inline.
                unsafe { out.write($as) };
                Some(Tag::I64)
            }
        }
    )*};
}

unsigned! {
    u64: |v| v;
    usize: |v| v as u64;
    NonZero<u64>: |v| v.get();
    NonZero<usize>: |v| v.get() as u64;
}

/// Writes a number of 19 or 20 digits as text.
///
/// # Safety
/// `out` points to `1 + DIGITS` words of the caller's own.
#[cold]
unsafe fn put_digits(mut number: u64, out: *mut u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    // SAFETY: 20 digits and a length fit.
    unsafe { put_bytes(&digits[at..], out) };
}

/// Words of a byte string: its length and its bytes.
#[inline(always)]
fn byte_words(len: usize) -> usize {
    1 + len.div_ceil(8)
}

/// Writes a byte string: its length and its bytes, the last word padded with zeros.
///
/// # Safety
/// `out` points to `byte_words(bytes.len())` words of the caller's own.
#[inline(always)]
unsafe fn put_bytes(bytes: &[u8], out: *mut u64) {
    // SAFETY: the bytes' words, of which the last, or without bytes the length's, is zeroed first for its padding; then the
    // length's word.
    unsafe {
        let len = bytes.len();
        out.add(len.div_ceil(8)).write(0);
        out.write(len as u64);
        copy(bytes.as_ptr(), out.add(1).cast(), len);
    }
}

/// Copies bytes; of short texts, which most are, by two moves that overlap, without a call.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both moves lie within the `len` bytes.
    unsafe {
        if (8..=16).contains(&len) {
            let (first, last) = (from.cast::<u64>(), from.add(len - 8).cast::<u64>());
            let (first, last) = (first.read_unaligned(), last.read_unaligned());
            to.cast::<u64>().write_unaligned(first);
            to.add(len - 8).cast::<u64>().write_unaligned(last);
        } else {
            to.copy_from_nonoverlapping(from, len);
        }
    }
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
mod tests {
    use super::super::tuples::Attributes;
    use super::*;
    use stagetrace_wire::recording::value::{ValueRef, decode, inline};

    fn show<V: Value + ?Sized>(value: &V) -> String {
        let mut words = [MaybeUninit::new(0xAA); 64];
        let Some((tag, used)) = encode(value, &mut words) else { return "absent".into() };
        // SAFETY: all were written above.
        let words = words.map(|word| unsafe { word.assume_init() });
        let (value, rest) = decode(tag, &words[..used]).expect("what was encoded decodes");
        assert!(rest.is_empty(), "all words belong to the value");
        text(value)
    }

    fn text(value: ValueRef<'_>) -> String {
        match value {
            ValueRef::Array(array) => {
                let items: Vec<String> = array.iter().map(text).collect();
                format!("[{}]", items.join(", "))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_type_keeps_its_kind() {
        assert_eq!(show(&-7_i32), "I64(-7)");
        assert_eq!(show(&7_usize), "I64(7)");
        assert_eq!(show(&0.5_f32), "F64(0.5)");
        assert_eq!(show(&true), "Bool(true)");
        assert_eq!(show("text"), "Str(\"text\")");
        assert_eq!(show(&String::from("eight by")), "Str(\"eight by\")");
        assert_eq!(show(""), "Str(\"\")");
        assert_eq!(show(&Duration::from_millis(1_500)), "F64(1.5)");
        assert_eq!(show(&NonZero::new(3_u64).unwrap()), "I64(3)");
        assert_eq!(show(&[1_u8, 2][..]), "Bytes([1, 2])");
        assert_eq!(show(&vec![1_i64, -2]), "[I64(1), I64(-2)]");
        assert_eq!(show(&[0.5_f64, 1.0]), "[F64(0.5), F64(1.0)]");
        assert_eq!(
            show(&["stop", "", "a longer one"]),
            "[Str(\"stop\"), Str(\"\"), Str(\"a longer one\")]"
        );
        assert_eq!(show(&Vec::<String>::new()), "[]");
    }

    #[test]
    fn an_absent_option_is_absent() {
        assert_eq!(show(&None::<u32>), "absent");
        assert_eq!(show(&Some(Some(4_u32))), "I64(4)");
    }

    #[test]
    fn an_unsigned_integer_above_the_signed_range_is_exact() {
        assert_eq!(show(&(i64::MAX as u64)), "I64(9223372036854775807)");
        assert_eq!(show(&(i64::MAX as u64 + 1)), "Str(\"9223372036854775808\")");
        assert_eq!(show(&u64::MAX), "Str(\"18446744073709551615\")");
    }

    #[test]
    fn a_number_becomes_the_text_that_it_is_displayed_as() {
        let numbers = [0, 7, 42, 12_345_678, 123_456_789, 9_999_999_999_999_999];
        for number in numbers {
            let decimal = Decimal::of(number).map(|decimal| show(&decimal));
            assert_eq!(decimal, Some(format!("Str(\"{number}\")")));
        }
        assert!([-1, i64::MIN, 10_i64.pow(16)].iter().all(|&other| Decimal::of(other).is_none()));
    }

    #[test]
    fn a_tuple_keeps_places_over_absent_values() {
        let values = (1_i64, None::<f64>, "three");
        let mut words = [0; 8];
        // SAFETY: the tuple takes one word of tags, one of the integer and two of the text.
        unsafe { values.put(words.as_mut_ptr()) };
        assert_eq!(Attributes::words(&values), 3);
        let seen: Vec<_> = inline(3, &words).map(|(at, value)| (at, text(value))).collect();
        assert_eq!(seen, [(0, "I64(1)".to_owned()), (2, "Str(\"three\")".to_owned())]);
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        assert_eq!(encode("much longer than two words", &mut [MaybeUninit::new(0); 2]), None);
    }
}
