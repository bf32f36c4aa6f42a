//! Attributes that are handed over one by one, being collected for a place of so many words.

use super::value::{Value, encode};
use std::mem::MaybeUninit;

/// Most attributes that stand in one place: their tags share a word.
const MOST: u8 = 16;

/// Where attributes are collected, of so many words. Not zeroed, since few of a large one are used.
pub(crate) type Room<const WORDS: usize> = [MaybeUninit<u64>; WORDS];

/// An empty one.
pub(crate) const fn room<const WORDS: usize>() -> Room<WORDS> {
    [const { MaybeUninit::uninit() }; WORDS]
}

/// A word of tags, then values.
#[derive(Debug)]
pub(crate) struct Inline<'a> {
    /// Written from 1 to `used`; the first is for the tags.
    words: &'a mut [MaybeUninit<u64>],
    used: usize,
    tags: u64,
    count: u8,
}

impl<'a> Inline<'a> {
    /// None yet, and room for the tags at least.
    pub(crate) fn new<const WORDS: usize>(room: &'a mut Room<WORDS>) -> Self {
        const { assert!(WORDS > 0) };
        Inline { words: room, used: 1, tags: 0, count: 0 }
    }

    /// The words, none without attributes, and how many places are taken, absent ones included.
    pub(crate) fn finish(self) -> (&'a [u64], u8) {
        let Inline { words, used, tags, count } = self;
        if count == 0 {
            return (&[], 0);
        }
        words[0].write(tags);
        // SAFETY: the first word was just written, and `fit` has written the others up to `used`.
        (unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), used) }, count)
    }

    /// How many places are taken, absent ones included.
    #[inline]
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    /// Puts the value, or as much of a text as there is room for, into the next place. Whether it is whole.
    #[inline]
    pub(crate) fn fit<V: Value + ?Sized>(&mut self, value: &V) -> bool {
        let place = self.count;
        if place >= MOST {
            return value.tag().is_none();
        }
        self.count += 1;
        if value.tag().is_none() {
            return true;
        }
        let is_whole = self.put(place, value);
        if !is_whole && let Some(text) = value.text() {
            self.fit_beginning(place, text);
        }
        is_whole
    }

    /// Puts the value there if there is room for all of it.
    #[inline]
    fn put<V: Value + ?Sized>(&mut self, place: u8, value: &V) -> bool {
        let Some((tag, words)) = encode(value, &mut self.words[self.used..]) else { return false };
        self.tags |= (tag as u64) << (4 * place);
        self.used += words;
        true
    }

    #[cold]
    fn fit_beginning(&mut self, place: u8, text: &str) {
        let room = self.words.len() - self.used;
        let text = crate::request::cut(text, room.saturating_sub(1) * 8);
        if !text.is_empty() {
            self.put(place, text);
        }
    }
}
