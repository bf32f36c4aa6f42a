//! Chunks: who gets which, and what becomes of them afterwards.
//!
//! A thread's first chunk is small, later ones are large. Three rules let a thousand threads live in one pool:
//!
//! - A thread that ends leaves what is left of its small chunk to the next one, so that threads of one span each do not
//!   take a chunk each.
//! - Once threads hold a quarter of the pool in large chunks, others get small ones: a large chunk is held for as long as
//!   it is not full, which on an idle thread is for ever.
//! - The last blocks are kept for the [shared](super::Shared) chunks of those who got none.

use super::{Pool, SMALL_PER_BLOCK};
use crate::sync::{AtomicU64, Ordering, fence};
use stagetrace_wire::recording::layout::{BLOCK, SMALL_CHUNK, chunk};

/// Pages of full chunks that wake the collector: eight large chunks.
const WAKE_AT: u32 = 8 * SMALL_PER_BLOCK as u32;
/// Bytes of a chunk that are worth being left to another thread.
const WORTH: usize = SMALL_CHUNK / 4;
/// Blocks that are kept for shared chunks at most.
const KEPT: u32 = 8;

/// A chunk's head.
pub(crate) type Head = [AtomicU64; chunk::HEAD / 8];

impl Pool {
    /// Takes a chunk for a thread: a small one if it is the thread's `first`, else a large one, but any rather than none
    /// as long as it has room for `bytes`. Records may stand in it already.
    #[cold]
    pub(crate) fn take_chunk(&self, first: bool, bytes: usize) -> Option<&[AtomicU64]> {
        let fits_small = bytes + chunk::HEAD <= SMALL_CHUNK;
        let small = || self.take_left(bytes).or_else(|| self.take_small());
        if fits_small
            && (first || self.is_crowded())
            && let Some(page) = small()
        {
            return Some(self.own(page));
        }
        let large = self.take_spare();
        let page = large.or_else(|| if fits_small && !first { small() } else { None });
        page.map(|page| self.own(page))
    }

    /// Takes a chunk with room for `bytes` that threads without one are going to share.
    #[cold]
    pub(crate) fn take_shared_chunk(&self, bytes: usize) -> Option<&[AtomicU64]> {
        let fits_small = bytes + chunk::HEAD <= SMALL_CHUNK;
        let page = self
            .take_large()
            .or_else(|| fits_small.then(|| self.small.pop(&self.space)).flatten())
            .or_else(|| fits_small.then(|| self.take_left(bytes)).flatten());
        page.map(|page| self.own(page))
    }

    fn own(&self, page: usize) -> &[AtomicU64] {
        let words = self.chunk_at(page);
        if words.len() == BLOCK / 8 {
            self.owned_large.fetch_add(1, Ordering::Relaxed);
        }
        // Whoever sees the new owner's records must see the sequence number that says so.
        fence(Ordering::Release);
        words[chunk::STATE].store(chunk::OWNED, Ordering::Release);
        words
    }

    /// Whether threads hold so much in large chunks that others must do with small ones.
    fn is_crowded(&self) -> bool {
        self.owned_large.load(Ordering::Relaxed) as usize >= self.space.blocks() / 4
    }

    /// Says that nobody writes into a chunk any more; wakes the collector when eight large ones have come together.
    #[cold]
    pub(crate) fn hand_over(&self, head: &Head) {
        let size = size_of_chunk(head);
        if size == BLOCK {
            self.owned_large.fetch_sub(1, Ordering::Relaxed);
        }
        let pages = (size / SMALL_CHUNK) as u32;
        head[chunk::STATE].store(chunk::FULL, Ordering::Release);
        let before = self.waiting.fetch_add(pages, Ordering::AcqRel);
        if before < WAKE_AT && before + pages >= WAKE_AT {
            self.wake();
        }
    }

    /// Leaves a chunk to the next thread, if it is a small one with enough room; else hands it over.
    #[cold]
    pub(crate) fn leave(&self, head: &Head) {
        let tail = head[chunk::TAIL].load(Ordering::Relaxed) as usize;
        let worth = size_of_chunk(head) == SMALL_CHUNK && tail + WORTH <= SMALL_CHUNK;
        // A sixteenth of the pool at most, but one always.
        let most = (self.space.blocks() / 16 * SMALL_PER_BLOCK).max(1) as u32;
        if worth && self.left_count.load(Ordering::Relaxed) < most {
            self.left_count.fetch_add(1, Ordering::Relaxed);
            self.left.push(&self.space, self.page_of(head));
        } else {
            self.hand_over(head);
        }
    }

    /// Takes a chunk that another thread left, with room for `bytes`.
    fn take_left(&self, bytes: usize) -> Option<usize> {
        loop {
            let page = self.left.pop(&self.space)?;
            self.left_count.fetch_sub(1, Ordering::Relaxed);
            let words = self.chunk_at(page);
            let tail = words[chunk::TAIL].load(Ordering::Relaxed) as usize;
            if tail + bytes <= words.len() * 8 {
                return Some(page);
            }
            let head = words.first_chunk().expect("a chunk is longer than its head");
            self.hand_over(head);
        }
    }

    /// Makes a chunk ready for its next owner. Only the collector does, when every span in it is safe.
    pub(crate) fn recycle(&self, words: &[AtomicU64]) {
        let sequence = words[chunk::SEQUENCE].load(Ordering::Relaxed);
        words[chunk::SEQUENCE].store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        words[chunk::TAIL].store(chunk::HEAD as u64, Ordering::Relaxed);
        words[chunk::ACKNOWLEDGED].store(chunk::HEAD as u64, Ordering::Relaxed);
        words[chunk::STATE].store(chunk::FREE, Ordering::Relaxed);
        words[chunk::SEQUENCE].store(sequence + 2, Ordering::Release);
        let page = self.page_of(words);
        if words.len() == BLOCK / 8 {
            self.put_large(page);
        } else {
            self.small.push(&self.space, page);
        }
        self.shared.look_again();
    }

    /// Takes a free block for one thread, which leaves some for all.
    fn take_spare(&self) -> Option<usize> {
        let kept = (self.blocks() as u32 / 16).clamp(1, KEPT);
        if self.free_large.load(Ordering::Relaxed) <= kept {
            self.wake();
            return None;
        }
        self.take_large()
    }

    fn take_small(&self) -> Option<usize> {
        self.small.pop(&self.space).or_else(|| {
            // Small chunks are never large again, so half of the blocks are kept whole.
            if self.split.load(Ordering::Relaxed) as usize >= self.space.blocks() / 2 {
                return None;
            }
            let first = self.take_spare()?;
            self.split.fetch_add(1, Ordering::Relaxed);
            // From the back, so that whoever walks the block never meets a head that is not there.
            for page in (first..first + SMALL_PER_BLOCK).rev() {
                self.make_chunk(page, SMALL_CHUNK);
            }
            for page in (first + 1..first + SMALL_PER_BLOCK).rev() {
                self.small.push(&self.space, page);
            }
            Some(first)
        })
    }

    pub(super) fn make_chunk(&self, page: usize, size: usize) {
        let word = |index| self.space.word(page * (SMALL_CHUNK / 8) + index);
        word(chunk::TAIL).store(chunk::HEAD as u64, Ordering::Relaxed);
        word(chunk::ACKNOWLEDGED).store(chunk::HEAD as u64, Ordering::Relaxed);
        word(chunk::STATE).store(chunk::FREE, Ordering::Relaxed);
        // A page that was the middle of a chunk has anything here. Even, and not what it was. Whoever sees the new number
        // sees the new tail: with the old one it would read what lay here before as records.
        let sequence = word(chunk::SEQUENCE).load(Ordering::Relaxed);
        word(chunk::SEQUENCE).store(sequence.wrapping_add(2) & !1, Ordering::Release);
        let kind = u64::from(chunk::RECORDS) | (size as u64) << 32;
        word(chunk::KIND).store(kind, Ordering::Release);
    }

    fn chunk_at(&self, page: usize) -> &[AtomicU64] {
        let block = self.space.block(page / SMALL_PER_BLOCK);
        let from = (page % SMALL_PER_BLOCK) * (SMALL_CHUNK / 8);
        let size = (block[from + chunk::KIND].load(Ordering::Acquire) >> 32) as usize;
        &block[from..from + size / 8]
    }

    fn page_of(&self, words: &[AtomicU64]) -> usize {
        let start = self.space.word(0) as *const AtomicU64 as usize;
        (words.as_ptr() as usize - start) / (SMALL_CHUNK / 8 * size_of::<AtomicU64>())
    }
}

fn size_of_chunk(head: &Head) -> usize {
    (head[chunk::KIND].load(Ordering::Relaxed) >> 32) as usize
}
