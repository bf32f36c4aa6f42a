//! Numbers: one word each, and those too large to be one as text.

use super::bytes::put_bytes;
use super::{Value, sealed};
use stagetrace_wire::recording::value::Tag;
use std::num::NonZero;
use std::time::Duration;

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
