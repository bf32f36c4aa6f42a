//! One span, one record: begin writes all of it and publishes, end is one store.
//!
//! This is the file of the hot path. Words of a record are atomics: the owner stores them, relaxed, before it publishes
//! the chunk's tail; from then on others read them, and only the end and the life word change.

use super::local::{self, Local};
use super::register::register;
use super::side::{self, Owner};
use super::tuples::Attributes;
use super::{Context, Position};
use crate::chunk::{DropCause, Writer};
use crate::request::{Judged, Outcome};
use crate::stage::Site;
use stagetrace_wire::recording::layout::slot;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most words of attributes inline behind a slot.
pub(crate) const INLINE_WORDS: usize = 128;

/// A begun span: where its slot is, and its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) slot: SlotRef,
    pub(crate) id: u64,
}

/// The slot of a span that has not ended, so that it stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRef(*const AtomicU64);

impl SlotRef {
    /// No slot: the span is not recorded.
    pub(crate) const NONE: SlotRef = SlotRef(std::ptr::null());

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
                let count = life >> slot::SIDES_SHIFT & slot::MAX_SIDES;
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
        self.word(slot::END).store(ticks, Ordering::Release);
    }
}

/// Begins a span under the current context, with its parent and flags from there.
#[inline(always)]
pub(crate) fn begin<A: Attributes>(
    local: &Local,
    site: &'static Site,
    attributes: A,
) -> Option<Begun> {
    let extra = if A::COUNT == 0 { 0 } else { 1 + attributes.words() };
    if extra > INLINE_WORDS {
        return begin_large(local, site, &attributes);
    }
    let words = (slot::WORDS + extra).next_multiple_of(slot::WORDS);
    match local.writer().reserve(words) {
        Some(at) => Some(write(local, local.writer(), at.start(), site, words, Some(&attributes))),
        None => begin_slow(local, site, words, &attributes),
    }
}

#[cold]
#[inline(never)]
fn begin_slow<A: Attributes>(
    local: &Local,
    site: &'static Site,
    words: usize,
    attributes: &A,
) -> Option<Begun> {
    local.with_room(words, DropCause::PoolFull, |writer| {
        let at = writer.reserve(words)?;
        Some(write(local, writer, at.start(), site, words, Some(attributes)))
    })
}

/// Attributes that do not fit inline follow in side records.
#[cold]
#[inline(never)]
fn begin_large<A: Attributes>(local: &Local, site: &'static Site, attributes: &A) -> Option<Begun> {
    let begun = local.with_room(slot::WORDS, DropCause::PoolFull, |writer| {
        let at = writer.reserve(slot::WORDS)?;
        Some(write(local, writer, at.start(), site, slot::WORDS, None::<&A>))
    })?;
    add_all(local, site, Owner::of(begun.slot), attributes);
    Some(begun)
}

/// Writes and publishes a record whose room is reserved.
#[inline(always)]
fn write<A: Attributes>(
    local: &Local,
    writer: &Writer,
    at: *const AtomicU64,
    site: &'static Site,
    words: usize,
    attributes: Option<&A>,
) -> Begun {
    // SAFETY: the caller reserved the words.
    let begun = unsafe { fill(local, at, site, words, 0, attributes) };
    begun.slot.word(slot::BEGIN).store(local.ticks(), Ordering::Relaxed);
    writer.publish();
    begun
}

/// Writes all of a record but its begin.
///
/// # Safety
/// `words` words are reserved at `at`, of which a slot takes eight and the attributes the rest, and not yet published.
#[inline(always)]
unsafe fn fill<A: Attributes>(
    local: &Local,
    at: *const AtomicU64,
    site: &'static Site,
    words: usize,
    flags: u8,
    attributes: Option<&A>,
) -> Begun {
    let number = match site.number() {
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
    let id = local.next_id();
    let [upper, lower] = local.trace();
    let count = if attributes.is_some() { A::COUNT } else { 0 };
    let meta =
        u64::from(number) | (words as u64) << 32 | u64::from(count) << 48 | u64::from(flags) << 56;
    // SAFETY: the caller's promise; what is not published nobody else touches.
    unsafe {
        if let Some(attributes) = attributes
            && A::COUNT > 0
        {
            attributes.put(at.add(slot::WORDS).cast_mut().cast());
        }
        let store = |word: usize, value: u64| (*at.add(word)).store(value, Ordering::Relaxed);
        store(slot::END, 0);
        store(slot::SPAN, id);
        store(slot::PARENT, local.span.get());
        store(slot::TRACE, upper);
        store(slot::TRACE + 1, lower);
        store(slot::META, meta);
        store(slot::LIFE, state.root());
        Begun { slot: SlotRef::new(at), id }
    }
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
        let extra = if A::COUNT == 0 { 0 } else { 1 + attributes.words() };
        let inline = (extra <= INLINE_WORDS).then_some(attributes);
        let words = (slot::WORDS + inline.map_or(0, |_| extra)).next_multiple_of(slot::WORDS);
        let saved = local.context();
        local.set_context(&Context::at(parent));
        let begun = local.with_room(words, DropCause::PoolFull, |writer| {
            let at = writer.reserve(words)?.start();
            // SAFETY: the words are reserved.
            let begun = unsafe { fill(local, at, site, words, slot::NANOSECONDS, inline) };
            begun.slot.word(slot::BEGIN).store(begin.max(1), Ordering::Relaxed);
            writer.publish();
            Some(begun)
        });
        local.set_context(&saved);
        let Some(begun) = begun else { return false };
        if inline.is_none() {
            add_all(local, site, Owner::of(begun.slot), attributes);
        }
        begun.slot.end(end.max(1));
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
