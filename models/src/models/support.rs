//! How a model is run, and what most of them need.

use crate::chunk::{Pool, Space, Writer, end};
use crate::clock::Clock;
use crate::recording::layout::slot;
use crate::sync::{AtomicU64, Ordering};
use std::ops::Deref;
use std::slice;

/// Runs every interleaving with at most two preemptions, or `LOOM_MAX_PREEMPTIONS`.
pub(super) fn explore(model: impl Fn() + Sync + Send + 'static) {
    explore_up_to(2, model);
}

/// The same with another number of preemptions, for a model whose loads may give many values.
pub(super) fn explore_up_to(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 50_000;
    builder.check(model);
}

/// A pool that lives as long as the process, as far as threads know; it goes when they have ended.
pub(super) struct Memory(&'static Pool);

impl Memory {
    /// A pool of so many blocks, the header's included.
    pub(super) fn new(blocks: usize) -> Memory {
        Memory::growing(blocks, blocks)
    }

    /// A pool that uses `now` of its blocks at first.
    pub(super) fn growing(blocks: usize, now: usize) -> Memory {
        let pool = Pool::new(Space::new(blocks, now), Clock::Counter, "{}");
        Memory(Box::leak(Box::new(pool.expect("the memory is there"))))
    }

    /// The pool.
    pub(super) fn pool(&self) -> &'static Pool {
        self.0
    }
}

impl Deref for Memory {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        self.0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made by `Box::leak`; the model joins its threads before.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self.0).cast_mut()) });
    }
}

/// Begins and publishes a span some of whose words are its number.
pub(super) fn begin(writer: &Writer, number: u64) -> &'static [AtomicU64] {
    let at = writer.reserve_fast(slot::WORDS).expect("the caller made room").as_ptr();
    // SAFETY: so many words are reserved, and the pool outlives the model's threads.
    let words = unsafe { slice::from_raw_parts(at, slot::WORDS) };
    put(words, number, slot::WORDS);
    writer.publish_to(words.as_ptr_range().end);
    words
}

/// Ends it with its number.
pub(super) fn end_span(words: &[AtomicU64], number: u64) {
    words[slot::LIFE].store(number, Ordering::Relaxed);
    end(&words[slot::END], number);
}

/// Writes a slot of a record of so many words. Its life word is as it was.
pub(super) fn put(words: &[AtomicU64], number: u64, size: usize) {
    let store = |word: usize, value| words[word].store(value, Ordering::Relaxed);
    store(slot::END, 0);
    store(slot::BEGIN, number);
    store(slot::SPAN, number);
    store(slot::META, number | (size as u64) << 32);
}

/// The number of a span, of which all words must be.
pub(super) fn number_of(words: &[u64]) -> u64 {
    let number = words[slot::SPAN];
    assert_ne!(number, 0, "a span without its words: {words:?}");
    assert_eq!(words[slot::BEGIN], number, "mixed: {words:?}");
    assert_eq!(words[slot::META] & 0xFFFF_FFFF, number, "mixed: {words:?}");
    if words[slot::END] != 0 {
        assert_eq!(words[slot::END], number, "ended as another: {words:?}");
        assert_eq!(words[slot::LIFE], number, "ended without its outcome: {words:?}");
    }
    number
}

/// The numbers of what a reader found, sorted.
pub(super) fn numbers(spans: &[Vec<u64>]) -> Vec<u64> {
    let mut numbers: Vec<u64> = spans.iter().map(|span| number_of(span)).collect();
    numbers.sort_unstable();
    numbers
}

/// The words of a record as they are now, the end first as every reader takes it.
pub(super) fn copy(record: &[AtomicU64]) -> Vec<u64> {
    let end = record[slot::END].load(Ordering::Acquire);
    let mut words: Vec<u64> =
        record[..slot::WORDS].iter().map(|word| word.load(Ordering::Relaxed)).collect();
    words[slot::END] = end;
    words
}
