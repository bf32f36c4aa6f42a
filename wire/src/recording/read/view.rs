//! How the words of a recording are read while their writer changes them.
//!
//! By relaxed atomic loads, the only ones that are allowed on memory mapped for reading; what must be ordered is ordered
//! by fences.

use crate::recording::layout::{BLOCK, header};
use crate::sync::{AtomicU64, Ordering, fence};
use std::ops::Range;

/// The words of a recording. Those that are not there read as 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a>(&'a [AtomicU64]);

impl<'a> View<'a> {
    /// These words.
    pub(super) fn of(words: &'a [AtomicU64]) -> View<'a> {
        View(words)
    }

    /// How many words there are.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// A word.
    pub(super) fn load(self, at: usize) -> u64 {
        #[cfg(all(test, not(loom)))]
        super::interleaving::step();
        self.0.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// A word that was published: all loads after this one see what its writer stored before it.
    pub(super) fn load_first(self, at: usize) -> u64 {
        let value = self.load(at);
        fence(Ordering::Acquire);
        value
    }

    /// A word that its writer changes before it changes what the word guards: if this gives the
    /// value that it had before, nothing that was loaded in between was new.
    pub(super) fn load_last(self, at: usize) -> u64 {
        fence(Ordering::Acquire);
        self.load(at)
    }

    /// Copies the words of a range to the end of `out`, as far as they are there.
    pub(super) fn copy(self, range: Range<usize>, out: &mut Vec<u64>) {
        out.extend((range.start..range.end.min(self.len())).map(|at| self.load(at)));
    }

    /// The bytes that begin with a word, as far as they are there.
    pub(super) fn bytes(self, from: usize, len: usize) -> Vec<u8> {
        let mut words = Vec::new();
        self.copy(from..from.saturating_add(len.div_ceil(8)), &mut words);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(len);
        bytes
    }

    /// Blocks in use, the header's and a torn last one included: as the header says, or as many as
    /// there are if that cannot be.
    pub(super) fn blocks(self) -> usize {
        let there = self.len().div_ceil(BLOCK / 8);
        match usize::try_from(self.load_first(header::BLOCKS)) {
            Ok(told) if (1..=there).contains(&told) => told,
            _ => there,
        }
    }
}
