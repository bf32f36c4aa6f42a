//! The one pool of a recorder: chunks for threads, slab slots for long-lived spans, blocks for the stage table.
//!
//! Threads take; only the collector gives back and grows. Taking a chunk is one compare-and-swap, and when nothing is
//! free the answer is at once "no": the caller drops its span and counts it.

use super::drop_cause::DropCause;
use super::shelf::{self, Links, Shelf};
use super::space::Space;
use super::stack::Stack;
use crate::clock::Clock;
use stagetrace_wire::recording::layout::{BLOCK, MAGIC, SMALL_CHUNK, chunk, header, slab, slot};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;

/// Blocks by which a pool grows: 1 MiB.
pub(crate) const STEP_BLOCKS: usize = 1024 * 1024 / BLOCK;
const SMALL_PER_BLOCK: usize = BLOCK / SMALL_CHUNK;
/// Pages of full chunks that wake the collector: eight large chunks.
const WAKE_AT: u32 = 8 * SMALL_PER_BLOCK as u32;
/// Free blocks below which the collector is woken to provide more.
const LOW: u32 = 12;

/// A recorder's memory and what is free in it.
#[derive(Debug)]
pub(crate) struct Pool {
    space: Space,
    clock: Clock,
    /// Usable blocks, the header's included; the header shows it to other processes.
    blocks: AtomicUsize,
    small: Stack,
    large: Stack,
    free_large: AtomicU32,
    slots: Shelf,
    /// Pages of full chunks since the collector last looked.
    waiting: AtomicU32,
    ended_in_place: AtomicU32,
    collector: OnceLock<Thread>,
    table: Mutex<Table>,
}

/// Where the stage table goes on.
#[derive(Debug, Default)]
struct Table {
    block: Option<usize>,
}

impl Pool {
    /// A pool in `space`, with its first step provided and its header written.
    pub(crate) fn new(space: Space, clock: Clock, identity: &str) -> io::Result<Pool> {
        let pool = Pool {
            space,
            clock,
            blocks: AtomicUsize::new(0),
            small: Stack::new(),
            large: Stack::new(),
            free_large: AtomicU32::new(0),
            slots: Shelf::new(),
            waiting: AtomicU32::new(0),
            ended_in_place: AtomicU32::new(0),
            collector: OnceLock::new(),
            table: Mutex::default(),
        };
        pool.grow()?;
        pool.write_identity(identity);
        pool.header(header::CLOCK).store(clock.code(), Ordering::Relaxed);
        pool.header(header::PID).store(u64::from(std::process::id()), Ordering::Relaxed);
        pool.header(header::STATE).store(header::RUNNING, Ordering::Relaxed);
        pool.header(header::MAGIC).store(MAGIC, Ordering::Release);
        Ok(pool)
    }

    /// The memory it lies in.
    #[cfg(unix)]
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The clock whose ticks its records hold.
    #[inline]
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// A word of the header.
    pub(crate) fn header(&self, word: usize) -> &AtomicU64 {
        self.space.word(word)
    }

    /// Usable blocks, the header's included.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.load(Ordering::Acquire)
    }

    /// The words of a usable block.
    pub(crate) fn block(&self, block: usize) -> &[AtomicU64] {
        self.space.block(block)
    }

    /// Counts a loss; the recording shows it as well.
    #[cold]
    pub(crate) fn count_dropped(&self, cause: DropCause) {
        self.header(header::DROPPED + cause as usize).fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back a loss that was none after all.
    #[cold]
    pub(crate) fn uncount_dropped(&self, cause: DropCause) {
        self.header(header::DROPPED + cause as usize).fetch_sub(1, Ordering::Relaxed);
    }

    /// Says that a span ended in its slab slot, for want of a chunk; the collector looks for it there.
    #[cold]
    pub(crate) fn note_ended_in_place(&self) {
        self.ended_in_place.fetch_add(1, Ordering::Release);
    }

    /// Spans that ended in place since the last call.
    pub(crate) fn take_ended_in_place(&self) -> u32 {
        self.ended_in_place.swap(0, Ordering::Acquire)
    }

    /// Losses of a cause so far.
    pub(crate) fn dropped(&self, cause: DropCause) -> u64 {
        self.header(header::DROPPED + cause as usize).load(Ordering::Relaxed)
    }

    /// The thread to wake when chunks wait.
    pub(crate) fn set_collector(&self, thread: Thread) {
        self.collector.get_or_init(|| thread);
    }

    /// Forgets which chunks wait. The collector calls it before it looks at them.
    pub(crate) fn reset_waiting(&self) {
        self.waiting.store(0, Ordering::Release);
    }

    /// Takes a chunk for a thread: a small one if it is the thread's first, else a large one, but any rather than none
    /// as long as it holds `bytes` beyond its head.
    #[cold]
    pub(crate) fn take_chunk(&self, first: bool, bytes: usize) -> Option<&[AtomicU64]> {
        let fits_small = bytes + chunk::HEAD <= SMALL_CHUNK;
        let page = if first && fits_small {
            self.take_small().or_else(|| self.take_large())
        } else {
            self.take_large().or_else(|| fits_small.then(|| self.take_small()).flatten())
        }?;
        let words = self.chunk_at(page);
        // Whoever sees the new owner's records must see the sequence number that says so.
        fence(Ordering::Release);
        words[chunk::THREAD].store(thread_id(), Ordering::Relaxed);
        words[chunk::STATE].store(chunk::OWNED, Ordering::Release);
        Some(words)
    }

    /// Says that a thread writes no more into its chunk; wakes the collector when eight large ones have come together.
    #[cold]
    pub(crate) fn hand_over(&self, head: &[AtomicU64; chunk::HEAD / 8]) {
        let size = (head[chunk::KIND].load(Ordering::Relaxed) >> 32) as usize;
        let pages = (size / SMALL_CHUNK) as u32;
        head[chunk::STATE].store(chunk::FULL, Ordering::Release);
        let before = self.waiting.fetch_add(pages, Ordering::AcqRel);
        if before < WAKE_AT && before + pages >= WAKE_AT {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(collector) = self.collector.get() {
            collector.unpark();
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
    }

    /// Bytes that it may grow to.
    pub(crate) fn limit(&self) -> usize {
        self.space.blocks() * BLOCK
    }

    /// Whether little is free and no more can be provided.
    pub(crate) fn is_short(&self) -> bool {
        let blocks = self.blocks();
        let little = (blocks as u32 / 8).max(2);
        blocks >= self.space.blocks() && self.free_large.load(Ordering::Relaxed) <= little
    }

    /// Provides the next step if less is free than half of what is in use, or than `least` blocks. Whether it grew; an
    /// error if it should have and could not.
    pub(crate) fn grow_to_reserve(&self, least: u32) -> io::Result<bool> {
        let reserve = least.max(self.blocks() as u32 / 3);
        if self.free_large.load(Ordering::Relaxed) >= reserve
            || self.blocks() >= self.space.blocks()
        {
            return Ok(false);
        }
        self.grow().map(|()| true)
    }

    fn grow(&self) -> io::Result<()> {
        let first = self.blocks();
        let count = STEP_BLOCKS.min(self.space.blocks() - first);
        self.space.provide(first, count)?;
        for block in first.max(1)..first + count {
            self.make_chunk(block * SMALL_PER_BLOCK, BLOCK);
        }
        self.blocks.store(first + count, Ordering::Release);
        self.header(header::BLOCKS).store((first + count) as u64, Ordering::Release);
        // The lowest comes to lie on top.
        for block in (first.max(1)..first + count).rev() {
            self.put_large(block * SMALL_PER_BLOCK);
        }
        Ok(())
    }

    fn put_large(&self, page: usize) {
        self.large.push(&self.space, page);
        self.free_large.fetch_add(1, Ordering::Relaxed);
    }

    fn take_large(&self) -> Option<usize> {
        let page = self.large.pop(&self.space)?;
        if self.free_large.fetch_sub(1, Ordering::Relaxed) == LOW {
            self.wake();
        }
        Some(page)
    }

    fn take_small(&self) -> Option<usize> {
        self.small.pop(&self.space).or_else(|| {
            let first = self.take_large()?;
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

    fn make_chunk(&self, page: usize, size: usize) {
        let word = |index| self.space.word(page * (SMALL_CHUNK / 8) + index);
        word(chunk::TAIL).store(chunk::HEAD as u64, Ordering::Relaxed);
        word(chunk::ACKNOWLEDGED).store(chunk::HEAD as u64, Ordering::Relaxed);
        word(chunk::STATE).store(chunk::FREE, Ordering::Relaxed);
        // A page that was the middle of a chunk has anything here. Even, and not what it was.
        let sequence = word(chunk::SEQUENCE).load(Ordering::Relaxed);
        word(chunk::SEQUENCE).store(sequence.wrapping_add(2) & !1, Ordering::Relaxed);
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
        (words.as_ptr() as usize - start) / SMALL_CHUNK
    }

    /// The shelf of free slab slots.
    pub(crate) fn slots(&self) -> &Shelf {
        &self.slots
    }

    /// The words of a slab slot.
    #[inline]
    pub(crate) fn slot(&self, number: u32) -> &[AtomicU64] {
        let (block, at) = (number as usize / slab::SLOTS, number as usize % slab::SLOTS);
        let from = chunk::HEAD / 8 + at * slab::WORDS;
        &self.space.block(block)[from..from + slab::WORDS]
    }

    /// Turns a free block into slab slots and puts them on the shelf. Whether there was one.
    #[cold]
    pub(crate) fn add_slots(&self) -> bool {
        // Slots are never chunks again, so an eighth of the blocks is kept from them.
        let kept = (self.blocks() as u32 / 8).max(2);
        if self.free_large.load(Ordering::Relaxed) <= kept {
            self.wake();
            return false;
        }
        let Some(page) = self.take_large() else { return false };
        let block = page / SMALL_PER_BLOCK;
        let first = (block * slab::SLOTS) as u32;
        let slots = first..first + slab::SLOTS as u32;
        for number in slots.clone() {
            self.slot(number)[slab::GENERATION].store(1, Ordering::Relaxed);
        }
        let kind = u64::from(chunk::SLAB) | (BLOCK as u64) << 32;
        self.space.block(block)[chunk::KIND].store(kind, Ordering::Release);
        shelf::stock(self, &self.slots, slots);
        true
    }

    /// Appends an entry to the stage table. Whether there was room.
    pub(crate) fn add_to_table(&self, entry: &[u8]) -> bool {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let words = 1 + entry.len().div_ceil(8);
        if words > (BLOCK - chunk::HEAD) / 8 {
            return false;
        }
        for _ in 0..2 {
            if let Some(block) = table.block {
                let block = self.space.block(block);
                let tail = block[chunk::TAIL].load(Ordering::Relaxed) as usize;
                if tail + words * 8 <= BLOCK {
                    block[tail / 8].store(entry.len() as u64, Ordering::Relaxed);
                    for (word, bytes) in block[tail / 8 + 1..].iter().zip(entry.chunks(8)) {
                        let mut eight = [0; 8];
                        eight[..bytes.len()].copy_from_slice(bytes);
                        word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
                    }
                    block[chunk::TAIL].store((tail + words * 8) as u64, Ordering::Release);
                    return true;
                }
            }
            let Some(page) = self.take_large() else { return false };
            let block = page / SMALL_PER_BLOCK;
            let kind = u64::from(chunk::TABLE) | (BLOCK as u64) << 32;
            self.space.block(block)[chunk::KIND].store(kind, Ordering::Release);
            table.block = Some(block);
        }
        false
    }

    /// The header, the stage table and what holds open spans, as bytes: the small recording that stays after the process.
    pub(crate) fn closed_image(&self) -> Vec<u8> {
        let blocks: Vec<usize> = (0..self.blocks()).filter(|block| self.stays(*block)).collect();
        let words = blocks.iter().flat_map(|block| self.space.block(*block));
        let mut words: Vec<u64> = words.map(|word| word.load(Ordering::Relaxed)).collect();
        words[header::BLOCKS] = blocks.len() as u64;
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn stays(&self, block: usize) -> bool {
        let words = self.space.block(block);
        let kind = words[chunk::KIND].load(Ordering::Acquire);
        match kind as u32 {
            _ if block == 0 => true,
            chunk::TABLE => true,
            chunk::SLAB => (0..slab::SLOTS).any(|at| {
                let slot = self.slot((block * slab::SLOTS + at) as u32);
                slot[slab::GENERATION].load(Ordering::Acquire).is_multiple_of(2)
                    && slot[slot::END].load(Ordering::Acquire) == 0
            }),
            chunk::RECORDS => words.chunks((kind >> 32) as usize / 8).any(holds_open),
            _ => false,
        }
    }

    fn write_identity(&self, identity: &str) {
        let fits = identity.len() <= header::IDENTITY_MAX;
        let identity = if fits { identity } else { "{}" };
        for (at, bytes) in identity.as_bytes().chunks(8).enumerate() {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            let word = self.space.word(header::IDENTITY / 8 + at);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        self.header(header::IDENTITY_LEN).store(identity.len() as u64, Ordering::Release);
    }
}

impl Links for Pool {
    fn link(&self, thing: u32) -> &AtomicU64 {
        &self.slot(thing)[slab::ATTRIBUTES]
    }
}

/// Whether a span in a chunk is open.
fn holds_open(words: &[AtomicU64]) -> bool {
    if words[chunk::STATE].load(Ordering::Acquire) == chunk::FREE {
        return false;
    }
    let tail = (words[chunk::TAIL].load(Ordering::Acquire) as usize / 8).min(words.len());
    let mut at = chunk::HEAD / 8;
    while at + slot::WORDS <= tail {
        let meta = words[at + slot::META].load(Ordering::Relaxed);
        let is_span = (meta >> 56) as u8 & slot::SIDE == 0;
        if is_span && words[at + slot::END].load(Ordering::Acquire) == 0 {
            return true;
        }
        at += ((meta >> 32) as u16 as usize).max(slot::WORDS);
    }
    false
}

/// The operating system's id of this thread, 0 where there is none.
fn thread_id() -> u64 {
    #[cfg(target_os = "linux")]
    {
        rustix::thread::gettid().as_raw_nonzero().get() as u64
    }
    #[cfg(not(target_os = "linux"))]
    {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(blocks: usize) -> Pool {
        Pool::new(Space::in_memory(blocks), Clock::Monotonic, "{}").unwrap()
    }

    #[test]
    fn a_first_chunk_is_small_and_later_ones_are_large() {
        let pool = pool(16);
        assert_eq!(pool.take_chunk(true, 64).unwrap().len(), SMALL_CHUNK / 8);
        assert_eq!(pool.take_chunk(false, 64).unwrap().len(), BLOCK / 8);
    }

    #[test]
    fn an_empty_pool_says_no_and_a_recycled_chunk_is_taken_again() {
        let pool = pool(3);
        let chunks: Vec<_> = std::iter::from_fn(|| pool.take_chunk(false, 64)).take(9).collect();
        assert_eq!(chunks.len(), 2);
        let sequence = || chunks[0][chunk::SEQUENCE].load(Ordering::Relaxed);
        let before = sequence();
        pool.recycle(chunks[0]);
        let again = pool.take_chunk(false, 64).unwrap();
        assert_eq!(again.as_ptr(), chunks[0].as_ptr());
        assert_eq!(sequence(), before + 2, "even, and not what readers of the last use saw");
        assert!(before.is_multiple_of(2));
    }

    #[test]
    fn a_pool_grows_in_steps_up_to_its_limit() {
        let pool = pool(40);
        assert_eq!(pool.blocks(), 16);
        assert!(pool.grow_to_reserve(u32::MAX).unwrap());
        assert!(pool.grow_to_reserve(u32::MAX).unwrap());
        assert_eq!(pool.blocks(), 40);
        assert!(!pool.grow_to_reserve(u32::MAX).unwrap());
        let chunks = std::iter::from_fn(|| pool.take_chunk(false, 64)).take(99).count();
        assert_eq!(chunks, 39);
    }

    #[test]
    fn the_smallest_pool_is_short_only_when_little_is_left() {
        let pool = pool(16);
        assert!(!pool.is_short());
        let taken: Vec<_> = (0..12).filter_map(|_| pool.take_chunk(false, 64)).collect();
        assert!((taken.len(), pool.is_short()) == (12, false));
        assert!(pool.take_chunk(false, 64).is_some() && pool.is_short());
    }

    #[test]
    fn a_record_that_no_chunk_holds_finds_none() {
        let pool = pool(4);
        let small: Vec<_> = (0..3).filter_map(|_| pool.take_chunk(false, 64)).collect();
        assert_eq!(small.len(), 3);
        pool.recycle(small[0]);
        assert!(pool.take_chunk(true, SMALL_CHUNK).unwrap().len() > SMALL_CHUNK / 8);
    }

    #[test]
    fn table_entries_follow_each_other_and_open_new_blocks() {
        let pool = pool(8);
        let entry = [7; 1000];
        assert!((0..100).all(|_| pool.add_to_table(&entry)));
        assert!(!pool.add_to_table(&[0; BLOCK]));
    }
}
