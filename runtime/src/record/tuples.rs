//! Attributes of a site: tuples of values.

use super::value::Value;

/// Attributes whose keys are those of their site: a tuple of up to eight values.
#[doc(hidden)]
pub trait Attributes {
    /// How many there are.
    const COUNT: u8;
    /// Words of all values inline, without the tags; more than ever stand there if one of them cannot.
    fn words(&self) -> usize;
    /// The word of tags and the values, in order.
    ///
    /// # Safety
    /// `out` points to `1 + words()` words of the caller's own, which is not more than may stand inline.
    unsafe fn put(&self, out: *mut u64);
    /// Calls `with` for each value and its place.
    fn each(&self, with: &mut dyn FnMut(usize, &dyn Value));
}

impl Attributes for () {
    const COUNT: u8 = 0;
    #[inline(always)]
    fn words(&self) -> usize {
        0
    }
    #[inline(always)]
    unsafe fn put(&self, _: *mut u64) {}
    fn each(&self, _: &mut dyn FnMut(usize, &dyn Value)) {}
}

macro_rules! tuples {
    ($($count:literal: $($name:ident $at:tt),*;)*) => {$(
        impl<$($name: Value),*> Attributes for ($($name,)*) {
            const COUNT: u8 = $count;
            #[inline(always)]
            fn words(&self) -> usize {
                0 $(+ self.$at.inline_words())*
            }
            #[inline(always)]
            unsafe fn put(&self, out: *mut u64) {
                let mut tags = 0;
                // SAFETY: one word of tags, then each value's words, one after the other.
                unsafe {
                    let at = out.add(1);
                    $(
                        let tag = self.$at.put_inline(at);
                        tags |= tag.map_or(0, |tag| tag as u64) << (4 * $at);
                        let at = at.add(self.$at.inline_words());
                    )*
                    let _ = at;
                    out.write(tags);
                }
            }
            fn each(&self, with: &mut dyn FnMut(usize, &dyn Value)) {
                $(with($at, &self.$at);)*
            }
        }
    )*};
}

tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
