//! A slab slot's generation: who may read it, and when it may be used anew.
//!
//! Odd while the slot is free or being written, even while it holds a span that may be read. A reader that finds the
//! same even number before and after it copied the slot has one span whole. Whoever writes into a slot owns it: the
//! taker until it is published and again from its release on, the collector once it took a span that ended in place.

use crate::sync::{AtomicU64, Ordering, fence};
use stagetrace_wire::recording::layout::{slab, slot};

/// Before the first word is written into a slot that was taken from the shelf.
#[inline]
pub(crate) fn before_writing() {
    // A reader that still copies the slot's last span must see the odd generation.
    fence(Ordering::Release);
}

/// Lets readers see the span that was written.
#[inline]
pub(crate) fn publish(words: &[AtomicU64]) {
    let generation = &words[slab::GENERATION];
    generation.store((generation.load(Ordering::Relaxed) + 1) & !1, Ordering::Release);
}

/// Makes a slot unreadable before it is given back.
#[inline]
pub(crate) fn release(words: &[AtomicU64]) {
    let generation = &words[slab::GENERATION];
    // Odd, and another than before, even if the span was never published.
    generation.store((generation.load(Ordering::Relaxed) + 2) | 1, Ordering::Release);
    // What is written into the free slot, its link first of all, must not be seen before that.
    fence(Ordering::Release);
}

/// Ends a span where it is; `life` says how. It is the collector's from then on.
pub(crate) fn end_in_place(words: &[AtomicU64], life: u64, ticks: u64) {
    words[slot::LIFE].store(life, Ordering::Relaxed);
    words[slot::END].store(ticks, Ordering::Release);
}

/// Whether the slot holds a span that is open.
pub(crate) fn is_open(words: &[AtomicU64]) -> bool {
    is_used(words) && words[slot::END].load(Ordering::Acquire) == 0
}

/// Whether the slot holds a span that ended in place and was not taken before; then it is taken now.
pub(crate) fn take_ended(words: &[AtomicU64]) -> bool {
    let ended = is_used(words) && words[slot::END].load(Ordering::Acquire) != 0;
    ended && words[slot::LIFE].fetch_or(slot::TAKEN, Ordering::Relaxed) & slot::TAKEN == 0
}

fn is_used(words: &[AtomicU64]) -> bool {
    words[slab::GENERATION].load(Ordering::Acquire).is_multiple_of(2)
}
