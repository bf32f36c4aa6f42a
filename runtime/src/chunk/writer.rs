//! A thread's place in its chunk: reserve, write, publish.

use super::pool::{Head, Pool};
use super::thread_id;
use crate::clock::Clock;
use crate::sync::{AtomicU64, Ordering};
use stagetrace_wire::recording::layout::chunk;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// Bytes of a word: 8, but those of a model are larger.
const WORD: usize = size_of::<AtomicU64>();

/// Where a thread writes next. Belongs to one thread.
#[derive(Debug)]
pub(crate) struct Writer {
    cursor: Cell<*const AtomicU64>,
    limit: Cell<*const AtomicU64>,
    head: Cell<*const AtomicU64>,
    /// The limit where ticks are those of the processor's counter, else null: see [`Writer::reserve_fast`].
    fast_limit: Cell<*const AtomicU64>,
}

/// Words reserved in a chunk, not yet published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved(*const AtomicU64);

impl Writer {
    /// A writer without a chunk.
    pub(crate) const fn new() -> Writer {
        Writer {
            cursor: Cell::new(ptr::null()),
            limit: Cell::new(ptr::null()),
            head: Cell::new(ptr::null()),
            fast_limit: Cell::new(ptr::null()),
        }
    }

    /// Room for `words` in the current chunk of a recorder whose ticks are those of the processor's counter; `None` without
    /// either, so that one comparison answers both. What is written there is published by [`Writer::publish_to`].
    #[inline(always)]
    pub(crate) fn reserve_fast(&self, words: usize) -> Option<NonNull<AtomicU64>> {
        let cursor = self.cursor.get();
        let next = cursor.wrapping_add(words);
        if next > self.fast_limit.get() {
            return None;
        }
        self.cursor.set(next);
        // SAFETY: the limit is not null, so there is a chunk, in which the cursor is.
        Some(unsafe { NonNull::new_unchecked(cursor.cast_mut()) })
    }

    /// Lets every reader see all up to `end`, which is where the next reservation begins.
    #[inline(always)]
    pub(crate) fn publish_to(&self, end: *const AtomicU64) {
        debug_assert_eq!(end, self.cursor.get());
        let head = self.head.get();
        let bytes = (end as usize).wrapping_sub(head as usize);
        let tail = if WORD == 8 { bytes } else { bytes / WORD * 8 };
        // SAFETY: something was reserved, so there is a chunk, whose head is valid for the life of the process.
        unsafe { &*head.add(chunk::TAIL) }.store(tail as u64, Ordering::Release);
    }

    /// Room for `words` in the current chunk, `None` if it has not so much.
    #[inline(always)]
    pub(crate) fn reserve(&self, words: usize) -> Option<Reserved> {
        let cursor = self.cursor.get();
        let room = (self.limit.get() as usize).wrapping_sub(cursor as usize);
        if words * WORD > room {
            return None;
        }
        self.cursor.set(cursor.wrapping_add(words));
        Some(Reserved(cursor))
    }

    /// Whether there is room for `words` in the current chunk.
    pub(crate) fn has_room(&self, words: usize) -> bool {
        (self.limit.get() as usize).wrapping_sub(self.cursor.get() as usize) >= words * WORD
    }

    /// Exchanges places with another writer.
    pub(crate) fn swap(&self, other: &Writer) {
        self.cursor.swap(&other.cursor);
        self.limit.swap(&other.limit);
        self.head.swap(&other.head);
        self.fast_limit.swap(&other.fast_limit);
    }

    /// Lets every reader see all that was reserved and written so far.
    #[inline(always)]
    pub(crate) fn publish(&self) {
        self.publish_to(self.cursor.get());
    }

    /// Takes a new chunk with room for `words`, and hands over the old one. Whether there was one; if not, the old one
    /// stays, since less may still fit.
    #[cold]
    pub(crate) fn refill(&self, pool: &'static Pool, words: usize) -> bool {
        let taken = pool.take_chunk(self.head.get().is_null(), words * 8);
        self.go_on_in(taken, pool, thread_id::this())
    }

    /// The same for a writer that several threads use in turn.
    #[cold]
    pub(crate) fn refill_shared(&self, pool: &'static Pool, words: usize) -> bool {
        self.go_on_in(pool.take_shared_chunk(words * 8), pool, 0)
    }

    fn go_on_in(&self, taken: Option<&[AtomicU64]>, pool: &Pool, thread: u64) -> bool {
        let Some(words) = taken else { return false };
        self.close(pool);
        words[chunk::THREAD].store(thread, Ordering::Relaxed);
        // Another thread may have begun it.
        let tail = words[chunk::TAIL].load(Ordering::Relaxed) as usize;
        let range = words.as_ptr_range();
        self.head.set(range.start);
        self.cursor.set(range.start.wrapping_add(tail / 8));
        self.limit.set(range.end);
        let is_counter = pool.clock() == Clock::Counter;
        self.fast_limit.set(if is_counter { range.end } else { ptr::null() });
        true
    }

    /// Forgets the chunk without a word; the next reservation finds none.
    #[cfg(unix)]
    pub(crate) fn forget(&self) {
        self.cursor.set(ptr::null());
        self.limit.set(ptr::null());
        self.fast_limit.set(ptr::null());
        self.head.set(ptr::null());
    }

    /// Hands the chunk over, if there is one; the next reservation finds none.
    pub(crate) fn close(&self, pool: &Pool) {
        if let Some(head) = self.let_go() {
            pool.hand_over(head);
        }
    }

    /// The same, but what is left of the chunk is for the next thread.
    pub(crate) fn leave(&self, pool: &Pool) {
        if let Some(head) = self.let_go() {
            pool.leave(head);
        }
    }

    fn let_go(&self) -> Option<&'static Head> {
        let head = self.head.replace(ptr::null());
        self.cursor.set(ptr::null());
        self.limit.set(ptr::null());
        self.fast_limit.set(ptr::null());
        // SAFETY: a chunk's head is valid for the life of the process, and atomic.
        unsafe { head.cast::<Head>().as_ref() }
    }
}

/// Ends the span whose end word this is. All that belongs to the end is stored before: whoever sees the end sees it.
#[inline(always)]
pub(crate) fn end(word: &AtomicU64, ticks: u64) {
    word.store(ticks, Ordering::Release);
}

impl Reserved {
    /// The first reserved word, as an address that stays valid for the life of the process.
    #[inline(always)]
    pub(crate) fn start(self) -> *const AtomicU64 {
        self.0
    }
}
