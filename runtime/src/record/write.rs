//! One span, one record: begin writes all of it and publishes, end is one store.
//!
//! This is the file of the hot path. The owner writes a record with plain stores before it publishes the chunk's tail; from
//! then on others read its words, as atomics, and only the end and the life word change.

use super::context::State;
use super::local::{self, Local};
use super::register::register;
use super::side::{self, Owner};
use super::tuples::Attributes;
use super::{Context, Position};
use crate::chunk::{self, DropCause, Writer};
use crate::request::{Judged, Outcome};
use crate::stage::{Site, shape};
use stagetrace_wire::recording::layout::slot;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most words of attributes inline behind a slot.
pub(crate) const INLINE_WORDS: usize = 128;

/// Where a span goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Under {
    pub(crate) parent: u64,
    /// `None` for that of the current span.
    pub(crate) trace: Option<[u64; 2]>,
    pub(crate) state: State,
    /// Whether the parent is the current span, whose stage is known.
    pub(crate) is_current: bool,
}

impl Under {
    /// The current span.
    #[inline(always)]
    pub(crate) fn current(local: &Local) -> Under {
        let (parent, state) = (local.span(), local.state.get());
        Under { parent, trace: None, state, is_current: true }
    }
}

/// The slot of a span that has not ended, so that it stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRef(*const AtomicU64);

// SAFETY: it points to atomics that live as long as the process; a future is polled where it is.
unsafe impl Send for SlotRef {}
// SAFETY: as above.
unsafe impl Sync for SlotRef {}

impl SlotRef {
    /// The slot at this address.
    ///
    /// # Safety
    /// `address` is null, or the first word of a slot in a recorder's space, which lives as long as the process.
    #[inline(always)]
    pub(crate) unsafe fn new(address: *const AtomicU64) -> SlotRef {
        SlotRef(address)
    }

    /// Whether there is none.
    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// Its address, null for none.
    #[inline(always)]
    pub(crate) fn address(self) -> *const AtomicU64 {
        self.0
    }

    /// One of its words.
    #[inline(always)]
    pub(crate) fn word(self, at: usize) -> &'static AtomicU64 {
        debug_assert!(at < slot::WORDS && !self.is_none());
        // SAFETY: a slot has eight words, which live as long as the process.
        unsafe { &*self.0.add(at) }
    }

    /// Counts one more side record, which whoever exports the span waits for. The count stops at the most it can hold.
    pub(crate) fn add_side(self) {
        if !self.is_none() {
            let one_more = |life: u64| {
                let count = slot::sides(life);
                (count < slot::MAX_SIDES).then(|| life + (1 << slot::SIDES_SHIFT))
            };
            let life = self.word(slot::LIFE);
            let _ = life.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        }
    }

    /// Says how the span ends, before it does.
    pub(crate) fn set_outcome(self, code: u8) {
        let life = self.word(slot::LIFE);
        life.fetch_or(u64::from(code) << slot::OUTCOME_SHIFT, Ordering::Relaxed);
    }

    /// Ends the span. Nothing of it may be touched afterwards.
    #[inline(always)]
    pub(crate) fn end(self, ticks: u64) {
        chunk::end(self.word(slot::END), ticks);
    }
}

/// Begins a span where everything is at hand: a numbered site, room in the thread's own chunk, the processor's counter as
/// clock (from which `ticks` are), attributes of which there are not too many. `None` otherwise: [`begin_anywhere`] does
/// the same with nothing at hand.
#[inline(always)]
pub(crate) fn begin<const SHAPE: u8, A: Attributes>(
    local: &Local,
    site: &'static Site,
    under: Under,
    attributes: &A,
    ticks: impl FnOnce() -> u64,
) -> Option<SlotRef> {
    let meta = site.meta();
    if meta == 0 {
        return None;
    }
    let extra = attribute_words(attributes);
    if A::COUNT > 0 && extra > INLINE_WORDS {
        return None;
    }
    let words = (slot::WORDS + extra).next_multiple_of(slot::WORDS);
    let at = local.writer().reserve_fast(words)?.as_ptr().cast_const();
    let mut head = Head { meta, under, words };
    if SHAPE & shape::WITHIN != 0 && under.is_current {
        head.check_place(local, site);
    }
    // SAFETY: the words are reserved.
    unsafe {
        head.put(local, at, Some(attributes));
        put_begin(at, ticks());
    }
    local.writer().publish_to(at.wrapping_add(words));
    Some(SlotRef(at))
}

/// Begins a span under the current context: registers the site, takes another chunk, reads any clock. Counts the loss if
/// there is no room.
#[cold]
#[inline(never)]
pub(crate) fn begin_anywhere<A: Attributes>(
    local: &Local,
    site: &'static Site,
    attributes: &A,
) -> Option<SlotRef> {
    let extra = attribute_words(attributes);
    let inline = (extra <= INLINE_WORDS).then_some(attributes);
    let words = (slot::WORDS + inline.map_or(0, |_| extra)).next_multiple_of(slot::WORDS);
    let at = local.with_room(words, DropCause::PoolFull, |writer| {
        // SAFETY: the words are those of the slot and of the attributes inline.
        unsafe { put_record(local, writer, site, words, 0, inline, || local.ticks()) }
    })?;
    if inline.is_none() {
        add_all(local, site, Owner::of(at), attributes);
    }
    Some(at)
}

/// Words of the attributes behind a slot, the tags' included.
#[inline(always)]
fn attribute_words<A: Attributes>(attributes: &A) -> usize {
    if A::COUNT == 0 { 0 } else { 1 + attributes.words() }
}

/// Writes a record under the current context and publishes it.
///
/// # Safety
/// `words` are those of a slot and of `attributes`.
unsafe fn put_record<A: Attributes>(
    local: &Local,
    writer: &Writer,
    site: &'static Site,
    words: usize,
    flags: u8,
    attributes: Option<&A>,
    begin: impl FnOnce() -> u64,
) -> Option<SlotRef> {
    if site.number() == 0 {
        register(site);
    }
    let at = writer.reserve(words)?.start();
    let meta = site.meta() | u64::from(flags) << 56;
    let mut head = Head { meta, under: Under::current(local), words };
    head.check_place(local, site);
    // SAFETY: the words are reserved.
    unsafe {
        head.put(local, at, attributes);
        put_begin(at, begin());
    }
    writer.publish();
    Some(SlotRef(at))
}

/// What a slot says of a span but its times and its id.
struct Head {
    meta: u64,
    under: Under,
    words: usize,
}

impl Head {
    /// Marks the span if its stage does not lie where it is declared to.
    #[inline(always)]
    fn check_place(&mut self, local: &Local, site: &'static Site) {
        if local.current_site() != site.fits_under() && super::guard::is_out_of_place(local, site) {
            self.meta |= u64::from(slot::MISPLACED) << 56;
        }
    }

    /// Writes all of a record but its begin.
    ///
    /// # Safety
    /// `self.words` words are reserved at `at`, of which a slot takes eight and the attributes the rest, and not yet
    /// published.
    #[inline(always)]
    unsafe fn put<A: Attributes>(
        self,
        local: &Local,
        at: *const AtomicU64,
        attributes: Option<&A>,
    ) {
        let Head { mut meta, under, words } = self;
        let out = at.cast_mut().cast::<u64>();
        let id = local.next_id();
        // SAFETY: the caller's promise; what is not published nobody else touches.
        unsafe {
            if let Some(attributes) = attributes
                && A::COUNT > 0
            {
                attributes.put(out.add(slot::WORDS));
                meta += ((words - slot::WORDS) as u64) << 32 | u64::from(A::COUNT) << 48;
            }
            out.add(slot::END).write(0);
            out.add(slot::SPAN).write(id);
            out.add(slot::PARENT).write(under.parent);
            let trace = out.add(slot::TRACE).cast::<[u64; 2]>();
            match &under.trace {
                None => trace.copy_from_nonoverlapping(local.trace_at(), 1),
                Some(other) => trace.write(*other),
            }
            out.add(slot::META).write(meta);
            out.add(slot::LIFE).write(under.state.to_word());
        }
    }
}

/// # Safety
/// A record is reserved at `at` and not yet published.
#[inline(always)]
unsafe fn put_begin(at: *const AtomicU64, ticks: u64) {
    // SAFETY: the caller's promise.
    unsafe { at.cast_mut().cast::<u64>().add(slot::BEGIN).write(ticks) }
}

/// Ends a span that failed: its outcome and the error first, then the end.
#[cold]
#[inline(never)]
pub(crate) fn end_failed(local: &Local, slot: SlotRef, judged: &Judged) {
    if judged.outcome() != Outcome::Ok {
        slot.set_outcome(judged.outcome() as u8 + 1);
        let root = slot.word(slot::LIFE).load(Ordering::Relaxed) & slot::ROOT_MASK;
        let trace = [0, 1].map(|half| slot.word(slot::TRACE + half).load(Ordering::Relaxed));
        super::live::note_outcome(root, trace, judged.outcome());
    }
    if judged.outcome() == Outcome::Error || judged.message().is_some() {
        side::failure(local, Owner::of(slot), judged);
    }
    slot.end(local.ticks());
}

/// Writes a whole span of which begin and end are known, below `parent`, in nanoseconds of the monotonic clock. Whether
/// it was recorded.
pub(crate) fn write_interval<A: Attributes>(
    site: &'static Site,
    parent: Position,
    begin: u64,
    end: u64,
    attributes: &A,
) -> bool {
    local::with(|local| {
        let extra = attribute_words(attributes);
        let inline = (extra <= INLINE_WORDS).then_some(attributes);
        let words = (slot::WORDS + inline.map_or(0, |_| extra)).next_multiple_of(slot::WORDS);
        let before = local.save();
        local.set_context(&Context::at(parent));
        let begun = local.with_room(words, DropCause::PoolFull, |writer| {
            let flags = slot::NANOSECONDS;
            // SAFETY: the words are those of the slot and of the attributes inline.
            unsafe { put_record(local, writer, site, words, flags, inline, || begin.max(1)) }
        });
        local.restore(&before);
        let Some(begun) = begun else { return false };
        if inline.is_none() {
            add_all(local, site, Owner::of(begun), attributes);
        }
        begun.end(end.max(1));
        true
    })
}

/// Adds attributes, whose keys are those of their site, in side records.
fn add_all<A: Attributes>(local: &Local, site: &Site, owner: Owner, attributes: &A) {
    attributes.each(&mut |at, value| {
        if let Some(key) = site.keys().get(at) {
            side::attributes(local, owner, &[(key, value)]);
        }
    });
}
