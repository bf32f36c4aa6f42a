//! The one pool of a recorder: chunks for threads, slab slots for long-lived spans, blocks for the stage table.
//!
//! Threads take; only the collector gives back and grows. Taking a chunk is one compare-and-swap, and when nothing is
//! free the answer is at once "no": the caller drops its span and counts it.

mod chunks;
mod closed;
mod slots;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use chunks::Head;

use super::drop_cause::DropCause;
use super::shared::Shared;
use super::shelf::Shelf;
use super::space::Space;
use super::stack::Stack;
use crate::clock::Clock;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering};
use stagetrace_wire::recording::layout::{BLOCK, MAGIC, SMALL_CHUNK, header};
use std::io;
use std::sync::OnceLock;
use std::thread::Thread;

/// Blocks by which a pool grows: 1 MiB.
pub(crate) const STEP_BLOCKS: usize = 1024 * 1024 / BLOCK;
const SMALL_PER_BLOCK: usize = BLOCK / SMALL_CHUNK;
/// Free blocks below which the collector is woken to provide more, or, in a pool that cannot have so many, to give some
/// back.
const LOW: u32 = 40;

/// A recorder's memory and what is free in it.
#[derive(Debug)]
pub(crate) struct Pool {
    space: Space,
    clock: Clock,
    /// Usable blocks, the header's included; the header shows it to other processes.
    blocks: AtomicUsize,
    /// The file system gave no more when it was last asked.
    refused: AtomicBool,
    small: Stack,
    large: Stack,
    free_large: AtomicU32,
    /// Free blocks below which the collector is woken.
    low: u32,
    /// Small chunks that dead threads left half empty, for the next threads.
    left: Stack,
    left_count: AtomicU32,
    /// Blocks that have become small chunks.
    split: AtomicU32,
    /// Large chunks that threads write into.
    owned_large: AtomicU32,
    /// Where threads write that have no chunk of their own.
    shared: Shared,
    slots: Shelf,
    /// Pages of full chunks since the collector last looked.
    waiting: AtomicU32,
    ended_in_place: AtomicU32,
    collector: OnceLock<Thread>,
    table: Mutex<table::Table>,
}

impl Pool {
    /// A pool in `space`, with its first step provided and its header written.
    pub(crate) fn new(space: Space, clock: Clock, identity: &str) -> io::Result<Pool> {
        let low = LOW.min(space.blocks() as u32 * 3 / 4);
        let pool = Pool {
            space,
            clock,
            low,
            blocks: AtomicUsize::new(0),
            refused: AtomicBool::new(false),
            small: Stack::new(AtomicU64::new(0)),
            large: Stack::new(AtomicU64::new(0)),
            free_large: AtomicU32::new(0),
            left: Stack::new(AtomicU64::new(0)),
            left_count: AtomicU32::new(0),
            split: AtomicU32::new(0),
            owned_large: AtomicU32::new(0),
            shared: Shared::new(),
            slots: Shelf::new(AtomicU64::new(0)),
            waiting: AtomicU32::new(0),
            ended_in_place: AtomicU32::new(0),
            collector: OnceLock::new(),
            table: Mutex::new(table::Table::default()),
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
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The clock whose ticks its records hold.
    #[inline]
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Where threads write that have no chunk of their own.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
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

    /// Losses of a cause so far.
    pub(crate) fn dropped(&self, cause: DropCause) -> u64 {
        self.header(header::DROPPED + cause as usize).load(Ordering::Relaxed)
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

    /// The thread to wake when chunks wait.
    pub(crate) fn set_collector(&self, thread: Thread) {
        self.collector.get_or_init(|| thread);
    }

    /// Forgets which chunks wait, and takes back shared ones that nobody uses. The collector calls it before it looks.
    pub(crate) fn reset_waiting(&self) {
        self.shared.close_unused(self);
        self.shared.look_again();
        self.waiting.store(0, Ordering::Release);
    }

    /// Has the collector look now.
    pub(super) fn wake(&self) {
        if let Some(collector) = self.collector.get() {
            collector.unpark();
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
        let is_greatest = blocks >= self.space.blocks() || self.refused.load(Ordering::Relaxed);
        is_greatest && self.free_large.load(Ordering::Relaxed) <= little
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
        let provided = self.space.provide(first, count);
        self.refused.store(provided.is_err(), Ordering::Relaxed);
        provided?;
        for block in first.max(1)..first + count {
            self.make_chunk(block * SMALL_PER_BLOCK, BLOCK);
        }
        self.blocks.store(first + count, Ordering::Release);
        self.header(header::BLOCKS).store((first + count) as u64, Ordering::Release);
        // The lowest comes to lie on top.
        for block in (first.max(1)..first + count).rev() {
            self.put_large(block * SMALL_PER_BLOCK);
        }
        self.shared.look_again();
        Ok(())
    }

    /// Gives a free block back.
    fn put_large(&self, page: usize) {
        self.large.push(&self.space, page);
        self.free_large.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a free block, by its first page.
    fn take_large(&self) -> Option<usize> {
        let page = self.large.pop(&self.space)?;
        if self.free_large.fetch_sub(1, Ordering::Relaxed) == self.low {
            self.wake();
        }
        Some(page)
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
