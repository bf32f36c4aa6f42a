//! Recycling where no sink is a file: a chunk waits until every sink has let its spans go, or goes to the spool.
//!
//! It goes there when a sink has lost some of its spans, and when those that wait hold half of the pool or little is left.

use super::{Chunk, Sweep, chunks_of};
use crate::chunk::generation;
use crate::collect::held::{Held, Room, Step};
use crate::collect::sink::Standing;
use crate::stats::SpoolStats;
use stagetrace_wire::recording::layout::{SMALL_CHUNK, chunk, slab, slot};
use std::sync::atomic::Ordering;

impl Sweep {
    /// From now on [`Sweep::settle`] takes the place of [`Sweep::acknowledge`].
    pub(crate) fn hold(&mut self, held: Held) {
        self.held = Some(Box::new(held));
    }

    /// Whether chunks wait for sinks.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Whether all that was handed out is out, as far as the sinks were waited for.
    pub(crate) fn is_out(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_out())
    }

    /// How the spool stands.
    pub(crate) fn spool_stats(&self) -> SpoolStats {
        self.held.as_ref().map(|held| held.stats()).unwrap_or_default()
    }

    /// Removes the spool: nothing in it is missing elsewhere.
    pub(crate) fn remove_spool(&mut self) {
        if let Some(held) = &mut self.held {
            held.spool.remove();
        }
    }

    /// Says how far the sinks are with what was handed out, and recycles the chunks that are done.
    pub(crate) fn settle(&mut self, sinks: &[Standing]) {
        let Some(mut held) = self.held.take() else { return };
        for (page, spans) in &self.handed.runs {
            self.chunks[*page as usize].handed += spans;
        }
        let chunks = &self.chunks;
        held.take(&mut self.handed, |page| chunks[page as usize].epoch, sinks);
        while let Some((step, is_lost)) = held.next_gone(sinks) {
            held.wanted -= self.let_step_go(&step, is_lost);
            match is_lost {
                true => held.lost_slots.extend(&step.slots),
                false => step.slots.iter().for_each(|slot| self.free_slot(*slot)),
            }
            held.give_back(step);
        }
        self.spool_slots(&mut held);
        self.freed.empty(self.pool, self.pool.slots());
        self.recycle_held(&mut held);
        held.tidy();
        self.held = Some(held);
    }

    /// What a step came from is safe as far as this step is concerned, or goes to the spool when it is done. Gives how often
    /// its spans wanted details that are in the spool.
    fn let_step_go(&mut self, step: &Step, is_lost: bool) -> i64 {
        for run in &step.runs {
            let known = &mut self.chunks[run.page as usize];
            match known.epoch == run.epoch {
                true if is_lost => known.is_lost = true,
                true => {
                    known.handed = known.handed.saturating_sub(run.spans);
                    known.unsafe_spans = known.unsafe_spans.saturating_sub(run.spans);
                }
                // It is in the spool.
                false => {}
            }
        }
        let mut spooled = 0;
        for pin in &step.pins {
            let known = &mut self.chunks[pin.page as usize];
            match known.epoch == pin.epoch {
                true if is_lost => known.is_lost = true,
                true => known.wanted -= 1,
                false => spooled += 1,
            }
        }
        spooled
    }

    fn free_slot(&mut self, number: u32) {
        generation::release(self.pool.slot(number));
        self.freed.give(self.pool, self.pool.slots(), number);
    }

    fn recycle_held(&mut self, held: &mut Held) {
        let (mut waiting, most) = (0, self.pool.limit() / 2);
        for (page, words) in chunks_of(self.pool, self.pool.blocks()) {
            let Some(known) = self.chunks.get_mut(page) else { continue };
            // Of a span that is still to be handed out it would not be known later which use of the chunk it is of.
            if !known.progress.is_done(words) || known.unsafe_spans > known.handed {
                continue;
            }
            if known.unsafe_spans > 0 || known.wanted > 0 {
                let size = size_of_val(words);
                let room = match self.pool.is_short() {
                    true => Room::Short,
                    false if waiting + size > most => Room::Half,
                    false => Room::Enough,
                };
                let copy = words.iter().map(|word| word.load(Ordering::Relaxed));
                let leaves = known.is_lost || room != Room::Enough;
                if !leaves || !held.spool(copy, known.unsafe_spans, room) {
                    waiting += size;
                    continue;
                }
                held.wanted += i64::from(known.wanted);
            }
            *known = Chunk::of(known.epoch + 1);
            self.pool.recycle(words);
        }
    }

    /// Spools spans that ended in their slab slots and that a sink has lost, as small chunks.
    fn spool_slots(&mut self, held: &mut Held) {
        const MOST: usize = (SMALL_CHUNK - chunk::HEAD) / 8 / slab::WORDS;
        while !held.lost_slots.is_empty() {
            let mut words = vec![0; chunk::HEAD / 8];
            let from = held.lost_slots.len().saturating_sub(MOST);
            for number in &held.lost_slots[from..] {
                self.add_record(*number, &mut words);
            }
            words[chunk::KIND] = u64::from(chunk::RECORDS) | (SMALL_CHUNK as u64) << 32;
            words[chunk::TAIL] = words.len() as u64 * 8;
            words[chunk::STATE] = chunk::FULL;
            words.resize(SMALL_CHUNK / 8, 0);
            let spans = (held.lost_slots.len() - from) as u32;
            // They ended there for want of room.
            let room = if self.pool.is_short() { Room::Short } else { Room::Half };
            if !held.spool(words.into_iter(), spans, room) {
                return;
            }
            for number in held.lost_slots.split_off(from) {
                self.free_slot(number);
            }
        }
    }

    /// Appends the span of a slab slot as a record.
    fn add_record(&self, number: u32, words: &mut Vec<u64>) {
        let word = |at: usize| self.pool.slot(number)[at].load(Ordering::Relaxed);
        let size = ((word(slot::META) >> 32) as u16 as usize).clamp(slot::WORDS, slab::WORDS - 1);
        let at = words.len();
        words.extend((0..slot::WORDS).chain(slab::ATTRIBUTES..size + 1).map(word));
        words.resize(words.len().next_multiple_of(slot::WORDS), 0);
        let size = (words.len() - at) as u64;
        words[at + slot::META] = words[at + slot::META] & !(0xFFFF << 32) | size << 32;
        // In a chunk it would say that the span goes on in the slab.
        words[at + slot::LIFE] &= !slot::TAKEN;
    }
}
