//! Attributes that are handed over one by one, being collected for a place of so many words.

use super::local::Local;
use super::side::{self, Owner};
use super::value::{Value, encode};
use super::write::SlotRef;
use std::mem::MaybeUninit;

/// Most attributes that stand in one place: their tags share a word.
const MOST: u8 = 16;

/// A word of tags, then values, in `ROOM` words at most.
#[derive(Debug)]
pub(crate) struct Inline<const ROOM: usize> {
    /// Written up to `used`. Not zeroed, since few of a large place are.
    words: [MaybeUninit<u64>; ROOM],
    used: usize,
    tags: u64,
    count: u8,
}

impl<const ROOM: usize> Inline<ROOM> {
    /// None yet.
    pub(crate) fn new() -> Self {
        let mut words = [const { MaybeUninit::uninit() }; ROOM];
        words[0].write(0);
        Inline { words, used: 1, tags: 0, count: 0 }
    }

    /// The words so far, none without attributes.
    pub(crate) fn words(&self) -> &[u64] {
        if self.count == 0 {
            return &[];
        }
        // SAFETY: the first word was written in `new`, and `fit` has written the others up to `used`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.used) }
    }

    /// How many places are taken, absent ones included.
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    /// Adds the attribute of the next place. One that does not fit is recorded beside; of a text that does not fit, as
    /// much as does stands here as well.
    pub(crate) fn add(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value) {
        if !self.fit(value) {
            side::attributes(local, Owner::of(slot), &[(key, value)]);
        }
    }

    /// Puts the value, or as much of a text as there is room for, into the next place. Whether it is whole.
    pub(crate) fn fit(&mut self, value: &dyn Value) -> bool {
        if self.count >= MOST {
            return value.tag().is_none();
        }
        let place = self.count;
        self.count += 1;
        let room = &mut self.words[self.used..];
        let fits = value.tag().is_none() || value.words() <= room.len();
        let encoded = encode(value, room).or_else(|| {
            let bytes = room.len().checked_sub(1)? * 8;
            let text = crate::request::cut(value.text()?, bytes);
            (!text.is_empty()).then(|| encode(text, room))?
        });
        if let Some((tag, words)) = encoded {
            self.tags |= (tag as u64) << (4 * place);
            self.words[0].write(self.tags);
            self.used += words;
        }
        fits
    }
}
