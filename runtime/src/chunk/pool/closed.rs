//! What is left of a recording after its process.

use super::Pool;
use crate::sync::{AtomicU64, Ordering};
use stagetrace_wire::recording::layout::{chunk, header, slab, slot};

impl Pool {
    /// The header, the stage table and what holds spans that stay, as bytes: the small recording that is left after the
    /// process. Open spans stay, and with `unwritten` those that have ended without a mark: a thread that went on beside
    /// the shutdown may have ended them when nobody looked any more.
    pub(crate) fn closed_image(&self, unwritten: bool) -> Vec<u8> {
        let stays = |block: &usize| self.stays(*block, unwritten);
        let blocks: Vec<usize> = (0..self.blocks()).filter(stays).collect();
        let words = blocks.iter().flat_map(|block| self.space.block(*block));
        let mut words: Vec<u64> = words.map(|word| word.load(Ordering::Relaxed)).collect();
        words[header::BLOCKS] = blocks.len() as u64;
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn stays(&self, block: usize, unwritten: bool) -> bool {
        let words = self.space.block(block);
        let kind = words[chunk::KIND].load(Ordering::Acquire);
        match kind as u32 {
            _ if block == 0 => true,
            chunk::TABLE => true,
            chunk::SLAB => Pool::slots_of(block).any(|number| {
                let slot = self.slot(number);
                slot[slab::GENERATION].load(Ordering::Acquire).is_multiple_of(2)
                    && span_stays(slot, unwritten)
            }),
            chunk::RECORDS => words
                .chunks((kind >> 32) as usize / 8)
                .any(|chunk| holds_span_that_stays(chunk, unwritten)),
            _ => false,
        }
    }
}

fn holds_span_that_stays(words: &[AtomicU64], unwritten: bool) -> bool {
    if words[chunk::STATE].load(Ordering::Acquire) == chunk::FREE {
        return false;
    }
    let tail = (words[chunk::TAIL].load(Ordering::Acquire) as usize / 8).min(words.len());
    let mut at = chunk::HEAD / 8;
    while at + slot::WORDS <= tail {
        let meta = words[at + slot::META].load(Ordering::Relaxed);
        // What goes on in the slab is found there.
        let is_left = words[at + slot::LIFE].load(Ordering::Relaxed) & slot::TAKEN != 0;
        let is_span = (meta >> 56) as u8 & slot::SIDE == 0 && !is_left;
        if is_span && span_stays(&words[at..], unwritten) {
            return true;
        }
        at += ((meta >> 32) as u16 as usize).max(slot::WORDS);
    }
    false
}

/// Whether a span is open or, if `unwritten`, has ended and is neither written nor one that nobody writes.
fn span_stays(slot: &[AtomicU64], unwritten: bool) -> bool {
    const DONE: u64 = slot::EXPORTED | slot::DISCARDED | slot::UNSAMPLED;
    let is_open = slot[slot::END].load(Ordering::Acquire) == 0;
    let done = slot[slot::LIFE].load(Ordering::Relaxed) & DONE != 0;
    is_open || unwritten && !done
}
