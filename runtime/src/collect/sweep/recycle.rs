//! Chunks that are done with: their spans are safe, and their room is used anew.

use super::{Chunk, PAGES, Sweep, chunks_of};
use crate::chunk::generation;
use crate::collect::details::Pin;
use stagetrace_wire::recording::layout::{SMALL_CHUNK, chunk, slot};
use std::sync::atomic::Ordering;

impl Sweep {
    /// Says that every span handed out so far is safe: marks them if `mark`, and recycles the chunks that are done.
    pub(crate) fn acknowledge(&mut self, mark: bool) {
        if mark {
            for place in &self.handed.marks {
                let (block, page) = (place.page as usize / PAGES, place.page as usize % PAGES);
                let at = page * (SMALL_CHUNK / 8) + place.offset as usize / 8 + slot::LIFE;
                let life = &self.pool.block(block)[at];
                // No exchange: what its thread may still count there, side records, matters no more, and the mark is
                // not lost, since its thread does exchange.
                life.store(life.load(Ordering::Relaxed) | slot::EXPORTED, Ordering::Relaxed);
            }
        }
        self.handed.marks.clear();
        for (page, spans) in self.handed.runs.drain(..) {
            if let Some(known) = self.chunks.get_mut(page as usize) {
                known.unsafe_spans = known.unsafe_spans.saturating_sub(spans);
            }
        }
        for number in self.handed.slots.drain(..) {
            generation::release(self.pool.slot(number));
            self.freed.give(self.pool, self.pool.slots(), number);
        }
        self.freed.empty(self.pool, self.pool.slots());
        self.recycle();
    }

    /// Nothing waits for spans that nobody exports: their memory need not be safe elsewhere.
    pub(super) fn forget_done(&mut self) {
        for (page, spans) in self.done.runs.drain(..) {
            if let Some(known) = self.chunks.get_mut(page as usize) {
                known.unsafe_spans = known.unsafe_spans.saturating_sub(spans);
            }
        }
        if self.done.slots.is_empty() {
            return;
        }
        for number in self.done.slots.drain(..) {
            generation::release(self.pool.slot(number));
            self.freed.give(self.pool, self.pool.slots(), number);
        }
        self.freed.empty(self.pool, self.pool.slots());
    }

    fn recycle(&mut self) {
        let (mut held, most) = (0, self.pool.limit() / 4);
        for (page, words) in chunks_of(self.pool, self.pool.blocks()) {
            let Some(known) = self.chunks.get_mut(page) else { continue };
            let done = known.unsafe_spans == 0 && known.progress.is_done(words);
            // Details of spans that are not exported stay where a kill leaves them, in a quarter of the room.
            if done && known.wanted > 0 && held + size_of_val(words) <= most {
                held += size_of_val(words);
            } else if done {
                *known = Chunk::of(known.epoch + 1);
                self.pool.recycle(words);
            }
        }
    }

    /// Says that a span no longer needs the details in these chunks, once it is out if it is exported.
    pub(super) fn let_go(&mut self, pins: &[Pin], is_exported: bool) {
        for pin in pins {
            if is_exported && let Some(held) = &mut self.held {
                // It is only on its way.
                held.pins.push(*pin);
                continue;
            }
            let Some(chunk) = self.chunks.get_mut(pin.page as usize) else { continue };
            if chunk.epoch == pin.epoch {
                chunk.wanted -= 1;
            } else if let Some(held) = &mut self.held {
                // They are in the spool.
                held.wanted -= 1;
            }
        }
    }

    /// Recycles everything that no open span is in; nothing more will be exported.
    pub(crate) fn let_all_go(&mut self) {
        for chunk in &mut self.chunks {
            chunk.wanted = 0;
        }
        self.acknowledge(false);
    }

    /// Whether no thread has a chunk or a span in the pool.
    pub(crate) fn is_empty(&self) -> bool {
        let is_free = |page: usize| {
            let (block, at) = (page / PAGES, page % PAGES * (SMALL_CHUNK / 8));
            self.pool.block(block)[at + chunk::STATE].load(Ordering::Acquire) == chunk::FREE
        };
        let used = |(page, chunk): (usize, &Chunk)| chunk.progress.has_begun() && !is_free(page);
        self.open() == 0 && !self.chunks.iter().enumerate().any(used)
    }
}
