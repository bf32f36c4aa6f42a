//! Slab slots: blocks of them, for spans that live long.

use super::super::shelf::{self, Links, Shelf};
use super::{Pool, SMALL_PER_BLOCK};
use crate::sync::{AtomicU64, Ordering};
use stagetrace_wire::recording::layout::{BLOCK, chunk, slab};
use std::ops::Range;

/// Numbers of a block's slots, of which the last are those of none: a power of two, so that a slot is found by shifts.
const NUMBERS: usize = slab::SLOTS.next_power_of_two();

impl Pool {
    /// The shelf of free slab slots.
    pub(crate) fn slots(&self) -> &Shelf {
        &self.slots
    }

    /// The words of a slab slot.
    #[inline]
    pub(crate) fn slot(&self, number: u32) -> &[AtomicU64] {
        let (block, at) = (number as usize / NUMBERS, number as usize % NUMBERS);
        let from = chunk::HEAD / 8 + at * slab::WORDS;
        &self.space.block(block)[from..from + slab::WORDS]
    }

    /// The numbers of a slab block's slots.
    pub(crate) fn slots_of(block: usize) -> Range<u32> {
        let first = (block * NUMBERS) as u32;
        first..first + slab::SLOTS as u32
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
        let slots = Pool::slots_of(block);
        for number in slots.clone() {
            self.slot(number)[slab::GENERATION].store(1, Ordering::Relaxed);
        }
        let kind = u64::from(chunk::SLAB) | (BLOCK as u64) << 32;
        self.space.block(block)[chunk::KIND].store(kind, Ordering::Release);
        shelf::stock(self, &self.slots, slots);
        true
    }
}

impl Links for Pool {
    fn link(&self, thing: u32) -> &AtomicU64 {
        &self.slot(thing)[slab::ATTRIBUTES]
    }
}
