//! Spans that live long or move between threads: in a slab slot while open, copied to a chunk at their end.
//!
//! A slot belongs to whoever holds its [`SlabSpan`]. Its generation is odd while it is free or being written, so that a
//! reader who finds it even before and after has read one span whole. If no chunk is free at the end, the span ends in
//! place, and the collector gives the slot back when it has exported it.

use super::Context;
use super::context::State;
use super::live;
use super::local::Local;
use super::register::register;
use super::side::{self, Owner};
use super::tuples::Attributes;
use super::value::{Value, encode};
use super::write::SlotRef;
use crate::chunk::{DropCause, Pool};
use crate::request::{Judged, Outcome};
use crate::stage::{Site, StageInfo};
use stagetrace_wire::recording::layout::{slab, slot};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of attributes in a slot, the tags' included.
const ROOM: usize = slab::WORDS - slab::ATTRIBUTES;

/// An open span in a slab slot. Whoever holds it ends it; dropping it leaves the span open.
#[derive(Debug)]
pub(crate) struct SlabSpan {
    pool: &'static Pool,
    number: u32,
}

impl SlabSpan {
    /// Begins a span under the current context, in a slot that is not visible before [`SlabSpan::publish`].
    pub(crate) fn begin(local: &Local, site: &'static Site, flags: u8) -> Option<SlabSpan> {
        let pool = local.pool()?;
        let number = local.slots.take(pool, pool.slots()).or_else(|| {
            pool.add_slots();
            local.slots.take(pool, pool.slots())
        });
        local.keep_nothing_after_exit(pool);
        let Some(number) = number else {
            pool.count_dropped(DropCause::SlabFull);
            return None;
        };
        let span = SlabSpan { pool, number };
        let site_number = match site.number() {
            0 => register(site),
            number => number,
        };
        let state = local.state.get();
        let mut flags = flags | state.slot_flags();
        if let Some(within) = site.within()
            && within.address() != local.stage.get()
            && super::guard::is_misplaced(local, within)
        {
            flags |= slot::MISPLACED;
        }
        let [upper, lower] = local.trace();
        let meta = u64::from(site_number) | (slot::WORDS as u64) << 32 | u64::from(flags) << 56;
        let words = span.words();
        // A reader that still copies the slot's last span must see the odd generation.
        fence(Ordering::Release);
        let store = |word: usize, value: u64| words[word].store(value, Ordering::Relaxed);
        store(slot::END, 0);
        store(slot::SPAN, local.next_id());
        store(slot::PARENT, local.span.get());
        store(slot::TRACE, upper);
        store(slot::TRACE + 1, lower);
        store(slot::META, meta);
        store(slot::LIFE, state.root());
        store(slot::BEGIN, local.ticks());
        Some(span)
    }

    /// The open span in this slot. The caller has the right to end it.
    pub(crate) fn of(pool: &'static Pool, number: u32) -> SlabSpan {
        SlabSpan { pool, number }
    }

    /// The pool it is in.
    pub(crate) fn pool(&self) -> &'static Pool {
        self.pool
    }

    /// The number of its slot.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Lets readers see the span.
    pub(crate) fn publish(&self) {
        let generation = &self.words()[slab::GENERATION];
        generation.store((generation.load(Ordering::Relaxed) + 1) & !1, Ordering::Release);
    }

    /// The span's slot.
    #[inline]
    pub(crate) fn slot(&self) -> SlotRef {
        // SAFETY: a slot of the pool, whose space lives as long as the process.
        unsafe { SlotRef::new(self.words().as_ptr()) }
    }

    /// The span's id.
    pub(crate) fn id(&self) -> u64 {
        self.words()[slot::SPAN].load(Ordering::Relaxed)
    }

    fn words(&self) -> &'static [AtomicU64] {
        self.pool.slot(self.number)
    }

    /// The context in which it is current.
    pub(crate) fn inside(&self, state: State, stage: *const StageInfo) -> Context {
        let words = self.words();
        let word = |at: usize| words[at].load(Ordering::Relaxed);
        Context {
            trace: [word(slot::TRACE), word(slot::TRACE + 1)],
            span: word(slot::SPAN),
            state,
            stage,
            slot: words.as_ptr(),
        }
    }

    /// Attributes of a span that is not published: inline as far as there is room, the rest in side records.
    pub(crate) fn set_attributes<A: Attributes>(&self, local: &Local, site: &Site, attributes: &A) {
        let mut inline = Inline::<ROOM>::new();
        attributes.each(&mut |at, value| {
            if let Some(key) = site.keys().get(at) {
                inline.add(local, self.slot(), key, value);
            }
        });
        self.store_inline(&inline);
    }

    /// Puts attributes into the slot.
    pub(crate) fn store_inline<const ROOM: usize>(&self, inline: &Inline<ROOM>) {
        let words = self.words();
        for (word, value) in words[slab::ATTRIBUTES..].iter().zip(inline.words()) {
            word.store(*value, Ordering::Relaxed);
        }
        let used = inline.words().len();
        let meta = words[slot::META].load(Ordering::Relaxed) & !(0xFF_FFFF << 32);
        let meta = meta | ((slot::WORDS + used) as u64) << 32 | u64::from(inline.count) << 48;
        words[slot::META].store(meta, Ordering::Relaxed);
    }

    /// Ends the span as it was judged, with the attributes it has.
    pub(crate) fn end(self, local: &Local, judged: &Judged) {
        let meta = self.words()[slot::META].load(Ordering::Relaxed);
        let used = ((meta >> 32) as u16 as usize).saturating_sub(slot::WORDS).min(ROOM);
        let mut attributes = [0; ROOM];
        for (value, word) in attributes.iter_mut().zip(&self.words()[slab::ATTRIBUTES..]) {
            *value = word.load(Ordering::Relaxed);
        }
        self.end_with(local, judged, &attributes[..used], (meta >> 48) as u8);
    }

    /// Ends the span with these attributes instead.
    pub(crate) fn end_with(self, local: &Local, judged: &Judged, attributes: &[u64], count: u8) {
        // Not the thread's clock: it may have recorded nothing yet.
        let ticks = self.pool.clock().ticks();
        let words = self.words();
        let slot = self.slot();
        // A span of a capture that ends outside of it, or the other way round: each recorder keeps its own.
        let is_ours = local.pool().is_some_and(|pool| std::ptr::eq(pool, self.pool));
        if is_ours && (judged.outcome() == Outcome::Error || judged.message().is_some()) {
            side::failure(local, Owner::of(slot), judged);
        }
        let size = (slot::WORDS + attributes.len()).next_multiple_of(slot::WORDS);
        let life = words[slot::LIFE].load(Ordering::Relaxed)
            | u64::from(outcome_code(judged, slot)) << slot::OUTCOME_SHIFT;
        if judged.outcome().is_failure() {
            let trace = [0, 1].map(|half| words[slot::TRACE + half].load(Ordering::Relaxed));
            live::note_outcome(life & slot::ROOT_MASK, trace, judged.outcome());
        }
        let copied = is_ours.then(|| {
            local.with_room(size, DropCause::PoolFull, |writer| {
                let at = writer.reserve(size)?.start();
                let meta = words[slot::META].load(Ordering::Relaxed) & !(0xFF_FFFF << 32);
                // SAFETY: `size` words are reserved at `at` and not yet published.
                let store = |word: usize, value: u64| unsafe {
                    (*at.add(word)).store(value, Ordering::Relaxed);
                };
                for word in [slot::BEGIN, slot::SPAN, slot::PARENT, slot::TRACE, slot::TRACE + 1] {
                    store(word, words[word].load(Ordering::Relaxed));
                }
                store(slot::END, ticks);
                store(slot::META, meta | (size as u64) << 32 | u64::from(count) << 48);
                store(slot::LIFE, life);
                for (at, value) in attributes.iter().enumerate() {
                    store(slot::WORDS + at, *value);
                }
                writer.publish();
                Some(())
            })
        });
        match copied {
            Some(Some(())) => {
                release(self.pool, self.number);
                local.slots.give(self.pool, self.pool.slots(), self.number);
                local.keep_nothing_after_exit(self.pool);
            }
            in_place => {
                if in_place.is_some() {
                    // Not lost: the collector finds it where it is.
                    self.pool.uncount_dropped(DropCause::PoolFull);
                }
                words[slot::LIFE].store(life, Ordering::Relaxed);
                words[slot::END].store(ticks, Ordering::Release);
                self.pool.note_ended_in_place();
            }
        }
    }

    /// Throws the span away; nobody exports it.
    pub(crate) fn discard(self, local: &Local) {
        self.words()[slot::LIFE].fetch_or(slot::DISCARDED, Ordering::Relaxed);
        self.end(local, &Judged::OK);
    }
}

/// Roots say that they ended well; other spans say nothing.
fn outcome_code(judged: &Judged, slot: SlotRef) -> u8 {
    let is_root = slot.word(slot::META).load(Ordering::Relaxed) >> 56 & u64::from(slot::ROOT) != 0;
    match judged.outcome() {
        Outcome::Ok if !is_root => 0,
        outcome => outcome as u8 + 1,
    }
}

/// Makes a slot unreadable before it is given back.
pub(crate) fn release(pool: &Pool, number: u32) {
    let generation = &pool.slot(number)[slab::GENERATION];
    // Odd, and another than before, even if the span was never published.
    generation.store((generation.load(Ordering::Relaxed) + 2) | 1, Ordering::Release);
    // What is written into the free slot, its link first of all, must not be seen before that.
    fence(Ordering::Release);
}

/// Attributes being collected for a place of `ROOM` words: a word of tags, then values.
#[derive(Debug)]
pub(crate) struct Inline<const ROOM: usize> {
    words: [u64; ROOM],
    used: usize,
    count: u8,
}

impl<const ROOM: usize> Inline<ROOM> {
    /// None yet.
    pub(crate) fn new() -> Self {
        Inline { words: [0; ROOM], used: 1, count: 0 }
    }

    /// The words so far, none without attributes.
    pub(crate) fn words(&self) -> &[u64] {
        if self.count == 0 { &[] } else { &self.words[..self.used] }
    }

    /// How many places are taken, absent ones included.
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    /// Adds the attribute of the next place. One that does not fit is recorded beside; of a text that does not fit, as
    /// much as does stands here as well.
    pub(crate) fn add(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value) {
        if !self.fit(value) {
            side::attributes(local, Owner::of(slot), &[(key, value)]);
        }
    }

    /// Puts the value, or as much of a text as there is room for, into the next place. Whether it is whole.
    pub(crate) fn fit(&mut self, value: &dyn Value) -> bool {
        if self.count >= 16 {
            return value.tag().is_none();
        }
        let place = self.count;
        self.count += 1;
        let room = &mut self.words[self.used..];
        let fits = value.tag().is_none() || value.words() <= room.len();
        let encoded = encode(value, room).or_else(|| {
            let bytes = room.len().checked_sub(1)? * 8;
            let text = crate::request::cut(value.text()?, bytes);
            (!text.is_empty()).then(|| encode(text, room))?
        });
        if let Some((tag, words)) = encoded {
            self.words[0] |= (tag as u64) << (4 * place);
            self.used += words;
        }
        fits
    }
}
