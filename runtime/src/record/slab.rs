//! Spans that live long or move between threads: in a slab slot while open, copied to a chunk at their end.
//!
//! A slot belongs to whoever holds its [`SlabSpan`]. Its generation is odd while it is free or being written, so that a
//! reader who finds it even before and after has read one span whole. If no chunk is free at the end, the span ends in
//! place, and the collector gives the slot back when it has exported it.

use super::Context;
use super::guard::is_misplaced;
use super::inline::{Inline, room};
use super::live;
use super::local::Local;
use super::register::register;
use super::side::{self, Owner};
use super::tuples::Attributes;
use super::write::SlotRef;
use crate::chunk::{DropCause, Pool, Writer, generation};
use crate::request::{Judged, Outcome};
use crate::stage::Site;
use stagetrace_wire::recording::layout::{slab, slot};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of attributes in a slot, the tags' included.
pub(crate) const ROOM: usize = slab::WORDS - slab::ATTRIBUTES;

/// An open span in a slab slot. Whoever holds it ends it; dropping it leaves the span open.
#[derive(Debug)]
pub(crate) struct SlabSpan {
    pool: &'static Pool,
    words: &'static [AtomicU64; slab::WORDS],
    number: u32,
}

impl SlabSpan {
    /// Begins a span under `under`, in a slot that is not visible before [`SlabSpan::publish`].
    #[inline]
    pub(crate) fn begin(
        local: &Local,
        site: &'static Site,
        flags: u8,
        under: &Context,
    ) -> Option<SlabSpan> {
        let pool = local.pool()?;
        let Some(number) = take_slot(local, pool) else {
            pool.count_dropped(DropCause::SlabFull);
            return None;
        };
        local.keep_nothing_after_exit(pool);
        let span = SlabSpan::of(pool, number);
        if site.number() == 0 {
            register(site);
        }
        let mut meta = site.meta() | u64::from(flags) << 56;
        if let Some(within) = site.within()
            && is_misplaced(under.stage, under.state, within)
        {
            meta |= u64::from(slot::MISPLACED) << 56;
        }
        generation::before_writing();
        let store = |word: usize, value: u64| span.words[word].store(value, Ordering::Relaxed);
        store(slot::END, 0);
        store(slot::SPAN, local.next_id());
        store(slot::PARENT, under.span);
        store(slot::TRACE, under.trace[0]);
        store(slot::TRACE + 1, under.trace[1]);
        store(slot::META, meta);
        store(slot::LIFE, under.state.to_word());
        if under.span != local.span() {
            local.arrive_at(under.span);
        }
        store(slot::BEGIN, local.ticks());
        Some(span)
    }

    /// Goes on with a span that has begun in a chunk, and leaves there that it has. `None` if no slot is free.
    pub(crate) fn taken_over(local: &Local, from: SlotRef) -> Option<SlabSpan> {
        let pool = local.pool()?;
        let number = take_slot(local, pool)?;
        let span = SlabSpan::of(pool, number);
        generation::before_writing();
        for (to, from) in span.words.iter().zip((0..slot::WORDS).map(|at| from.word(at))) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        span.publish();
        from.word(slot::LIFE).fetch_or(slot::TAKEN, Ordering::Relaxed);
        from.end(from.word(slot::BEGIN).load(Ordering::Relaxed));
        Some(span)
    }

    /// The open span in this slot. The caller has the right to end it.
    #[inline]
    pub(crate) fn of(pool: &'static Pool, number: u32) -> SlabSpan {
        let words = pool.slot(number).first_chunk().expect("a slot has all its words");
        SlabSpan { pool, words, number }
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
    #[inline]
    pub(crate) fn publish(&self) {
        generation::publish(self.words);
    }

    /// The span's slot.
    #[inline]
    pub(crate) fn slot(&self) -> SlotRef {
        // SAFETY: a slot of the pool, whose space lives as long as the process.
        unsafe { SlotRef::new(self.words.as_ptr()) }
    }

    /// The span's id.
    pub(crate) fn id(&self) -> u64 {
        self.words[slot::SPAN].load(Ordering::Relaxed)
    }

    /// The id of its trace.
    #[inline]
    pub(crate) fn trace(&self) -> [u64; 2] {
        [slot::TRACE, slot::TRACE + 1].map(|word| self.words[word].load(Ordering::Relaxed))
    }

    /// Attributes of a span that is not published: inline as far as there is room, the rest in side records.
    pub(crate) fn set_attributes<A: Attributes>(&self, local: &Local, site: &Site, attributes: &A) {
        let mut room = room::<ROOM>();
        let mut inline = Inline::new(&mut room);
        attributes.each(&mut |at, value| {
            if let Some(key) = site.keys().get(at)
                && !inline.fit(value)
            {
                side::attributes(local, Owner::of(self.slot()), &[(key, value)]);
            }
        });
        let (attributes, count) = inline.finish();
        self.store_inline(attributes, count);
    }

    /// Puts attributes into the slot.
    #[inline]
    pub(crate) fn store_inline(&self, attributes: &[u64], count: u8) {
        let words = self.words;
        for (word, value) in words[slab::ATTRIBUTES..].iter().zip(attributes) {
            word.store(*value, Ordering::Relaxed);
        }
        let meta = words[slot::META].load(Ordering::Relaxed) & !(0xFF_FFFF << 32);
        let size = (slot::WORDS + attributes.len()) as u64;
        words[slot::META].store(meta | size << 32 | u64::from(count) << 48, Ordering::Relaxed);
    }

    /// Ends the span as it was judged, with the attributes it has.
    #[inline]
    pub(crate) fn end(self, local: &Local, judged: &Judged) {
        let words = self.words;
        let meta = words[slot::META].load(Ordering::Relaxed);
        let used = ((meta >> 32) as u16 as usize).saturating_sub(slot::WORDS).min(ROOM);
        let attributes = &words[slab::ATTRIBUTES..slab::ATTRIBUTES + used];
        self.finish(local, judged, (meta >> 48) as u8, attributes, |word| {
            word.load(Ordering::Relaxed)
        });
    }

    /// Ends the span with these attributes instead.
    pub(crate) fn end_with(self, local: &Local, judged: &Judged, attributes: &[u64], count: u8) {
        self.finish(local, judged, count, attributes, |word| *word);
    }

    #[inline]
    fn finish<W>(
        self,
        local: &Local,
        judged: &Judged,
        count: u8,
        attributes: &[W],
        value: impl Fn(&W) -> u64,
    ) {
        // Not the thread's clock: it may have recorded nothing yet.
        let ticks = self.pool.clock().ticks();
        // A span of a capture that ends outside of it, or the other way round: each recorder keeps its own.
        let is_ours = local.pool().is_some_and(|pool| ptr::eq(pool, self.pool));
        let word = |at: usize| self.words[at].load(Ordering::Relaxed);
        if judged.outcome() != Outcome::Ok {
            self.note_failure(local, judged, is_ours);
        }
        // Roots say that they ended well; other spans say nothing.
        let meta = word(slot::META);
        let outcome = match judged.outcome() {
            Outcome::Ok if meta >> 56 & u64::from(slot::ROOT) == 0 => 0,
            outcome => outcome as u64 + 1,
        };
        let life = word(slot::LIFE) | outcome << slot::OUTCOME_SHIFT;
        let size = (slot::WORDS + attributes.len()).next_multiple_of(slot::WORDS);
        let meta = meta & !(0xFF_FFFF << 32) | (size as u64) << 32 | u64::from(count) << 48;
        let ended = Ended { meta, life, ticks, size };
        let copied = is_ours
            && match local.writer().reserve_fast(size) {
                Some(at) => {
                    // SAFETY: as many words are reserved.
                    unsafe { ended.copy(self.words, attributes, value, at.as_ptr()) };
                    local.writer().publish_to(at.as_ptr().wrapping_add(size));
                    true
                }
                None => self.copy_anywhere(local, ended, attributes, value),
            };
        if copied {
            generation::release(self.words);
            local.slots.give(self.pool, self.pool.slots(), self.number);
            local.keep_nothing_after_exit(self.pool);
        } else {
            self.end_in_place(life, ticks);
        }
    }

    /// Copies the span with nothing at hand. Whether there was room.
    #[cold]
    #[inline(never)]
    fn copy_anywhere<W>(
        &self,
        local: &Local,
        ended: Ended,
        attributes: &[W],
        value: impl Fn(&W) -> u64,
    ) -> bool {
        let write = |writer: &Writer| {
            let at = writer.reserve(ended.size)?.start();
            // SAFETY: as many words are reserved.
            unsafe { ended.copy(self.words, attributes, value, at.cast_mut()) };
            writer.publish();
            Some(())
        };
        local.if_room(self.pool, ended.size, write).is_some()
    }

    /// Says why it failed, and tells its request.
    #[cold]
    #[inline(never)]
    fn note_failure(&self, local: &Local, judged: &Judged, is_ours: bool) {
        if is_ours && (judged.outcome() == Outcome::Error || judged.message().is_some()) {
            side::failure(local, Owner::of(self.slot()), judged);
        }
        if judged.outcome().is_failure() {
            let root = self.words[slot::LIFE].load(Ordering::Relaxed) & slot::ROOT_MASK;
            live::note_outcome(root, self.trace(), judged.outcome());
        }
    }

    /// Nothing was free for a copy: the collector finds the span where it is.
    #[cold]
    #[inline(never)]
    fn end_in_place(&self, life: u64, ticks: u64) {
        generation::end_in_place(self.words, life, ticks);
        self.pool.note_ended_in_place();
    }

    /// Throws the span away; nobody exports it.
    pub(crate) fn discard(self, local: &Local) {
        self.words[slot::LIFE].fetch_or(slot::DISCARDED, Ordering::Relaxed);
        self.end(local, &Judged::OK);
    }
}

/// A free slot; has the pool make more if there is none.
#[inline]
fn take_slot(local: &Local, pool: &'static Pool) -> Option<u32> {
    local.slots.take(pool, pool.slots()).or_else(|| {
        pool.add_slots();
        local.slots.take(pool, pool.slots())
    })
}

/// What the copy of a span that has ended says otherwise than its slot.
#[derive(Clone, Copy)]
struct Ended {
    meta: u64,
    life: u64,
    ticks: u64,
    size: usize,
}

impl Ended {
    /// Writes the copy.
    ///
    /// # Safety
    /// `self.size` words are reserved at `at`, which suffice for a slot and the attributes, and not yet published.
    #[inline(always)]
    unsafe fn copy<W>(
        self,
        from: &[AtomicU64; slab::WORDS],
        attributes: &[W],
        value: impl Fn(&W) -> u64,
        at: *mut AtomicU64,
    ) {
        let out = at.cast::<u64>();
        // SAFETY: the caller's promise; what is not published nobody else touches.
        unsafe {
            for word in [slot::BEGIN, slot::SPAN, slot::PARENT, slot::TRACE, slot::TRACE + 1] {
                out.add(word).write(from[word].load(Ordering::Relaxed));
            }
            out.add(slot::END).write(self.ticks);
            out.add(slot::META).write(self.meta);
            out.add(slot::LIFE).write(self.life);
            for (place, attribute) in attributes.iter().enumerate() {
                out.add(slot::WORDS + place).write(value(attribute));
            }
        }
    }
}
