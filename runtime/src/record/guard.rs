//! The guards of stages: what is current while a block runs.
//!
//! A guard keeps what it puts back in itself, so that a stage saves and restores one address. That it is the innermost shows
//! in the thread's current slot being its own; if it is not, `unwind.rs` finds out what was left behind.

use super::context::State;
use super::local::{self, Local};
use super::tuples::Attributes;
use super::unwind::{self, Kept};
use super::write::{self, SlotRef, Under};
use super::{Context, Position, recorder};
use crate::clock::Clock;
use crate::request::{Judged, Outcome};
use crate::stage::{Site, Stage, StageInfo, level, shape};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// A stage that is running on this thread. Made by `#[stage]`; ends with [`StageGuard::end`], or as a panic if it is
/// dropped while unwinding.
#[derive(Debug)]
#[must_use]
pub struct StageGuard<K: Kept = ()> {
    begun: Begun,
    /// What else it puts back.
    kept: K,
}

/// A begun stage, or what stands for one that is not recorded.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// The span's slot; null if nothing began. With [`FRAMED`] added, what was before lies in a frame.
    pub(super) slot: *const AtomicU64,
    /// The slot that was current before; with [`FRAMED`], the word of the frame's mark.
    pub(super) before: *const AtomicU64,
    pub(super) _not_send: PhantomData<*const ()>,
}

const FRAMED: usize = 1;

impl Begun {
    /// Nothing.
    pub(super) const OFF: Begun =
        Begun { slot: ptr::null(), before: ptr::null(), _not_send: PhantomData };

    #[inline(always)]
    pub(super) fn is_off(self) -> bool {
        self.slot.is_null()
    }

    /// Its slot, none if it is not recorded.
    #[inline(always)]
    pub(super) fn slot(self) -> SlotRef {
        let slot = self.slot.map_addr(|address| address & !FRAMED);
        // SAFETY: null or a slot, both with or without the mark.
        unsafe { SlotRef::new(slot) }
    }

    /// The frame that holds what was before, or the slot that was current then.
    pub(super) fn before(self) -> Result<super::frames::Mark, *const AtomicU64> {
        match self.slot.addr() & FRAMED {
            0 => Err(self.before),
            _ => Ok(super::frames::Mark::from_word(self.before.addr() as u64)),
        }
    }

    fn framed(slot: Option<SlotRef>, mark: super::frames::Mark) -> Begun {
        let slot = slot.map_or(ptr::null(), SlotRef::address);
        Begun {
            slot: slot.wrapping_byte_add(FRAMED),
            before: ptr::without_provenance(mark.to_word() as usize),
            _not_send: PhantomData,
        }
    }
}

/// A stage that is about to begin: it will be recorded if there is room.
///
/// Attributes are evaluated between this and [`Begin::with`], so that they cost nothing when the stage is not recorded,
/// and may themselves record spans.
#[derive(Debug)]
pub struct Begin<'a, const SHAPE: u8 = 0> {
    local: &'a Local,
    site: &'static Site,
    /// The request's place, if it goes there and not under what is current.
    at: Option<Position>,
    /// The context that is to be made current first.
    elsewhere: Option<&'a Context>,
}

impl<const SHAPE: u8> Begin<'_, SHAPE> {
    /// Begins it, with these attributes.
    #[inline(always)]
    pub fn with<A: Attributes>(self, attributes: A) -> Begun {
        let Begin { local, site, at, elsewhere } = self;
        if elsewhere.is_none() {
            let under = match at {
                None => Under::current(local),
                Some(position) => under(local, position),
            };
            let before = local.slot.get();
            if let Some(slot) =
                write::begin::<SHAPE, A>(local, site, under, &attributes, Clock::counter)
            {
                if let Some(position) = at {
                    local.set_trace(position.trace, position.state);
                }
                local.set_slot(slot.address());
                return Begun { slot: slot.address(), before, _not_send: PhantomData };
            }
        }
        let own;
        let elsewhere = match at {
            Some(position) if elsewhere.is_none() && position.trace != local.trace() => {
                own = Context::at(position);
                Some(&own)
            }
            _ => elsewhere,
        };
        begin_framed(local, site, elsewhere, attributes)
    }
}

/// Where a stage of the request at `position` goes: under the current span if that is of the same trace.
#[inline(always)]
fn under(local: &Local, position: Position) -> Under {
    let Position { trace, span, state } = position;
    let is_current = is_here(local, position);
    let parent = if is_current {
        local.span()
    } else {
        local.arrive_at(span);
        span
    };
    Under { parent, trace: Some(trace), state, is_current }
}

/// Begins a stage with nothing at hand. What was before goes into a frame.
#[cold]
#[inline(never)]
fn begin_framed<A: Attributes>(
    local: &Local,
    site: &'static Site,
    elsewhere: Option<&Context>,
    attributes: A,
) -> Begun {
    let mark = local.frames.push(local.save());
    if let Some(context) = elsewhere {
        local.arrive_at(context.span);
        local.set_context(context);
    }
    match write::begin_anywhere(local, site, &attributes) {
        Some(slot) => {
            local.state.set(local.state.get().of_local());
            local.set_slot(slot.address());
            Begun::framed(Some(slot), mark)
        }
        None => {
            if let Some((before, _)) = local.frames.pop(mark) {
                local.restore(&before);
            }
            Begun::OFF
        }
    }
}

/// Not recorded, but what runs inside belongs to that context all the same.
#[cold]
#[inline(never)]
fn unrecorded(local: &Local, context: &Context) -> Begun {
    let mark = local.frames.push(local.save());
    local.set_context(context);
    Begun::framed(None, mark)
}

/// Begins a stage under what is current; without a trace, it begins one of its own.
#[inline(always)]
pub fn enter<const SHAPE: u8>(site: &'static Site) -> StageGuard {
    enter_with::<SHAPE>(site, |begin| begin.with(()))
}

/// The same, with attributes.
#[inline(always)]
pub fn enter_with<const SHAPE: u8>(
    site: &'static Site,
    begin: impl FnOnce(Begin<'_, SHAPE>) -> Begun,
) -> StageGuard {
    let level = shape::level(SHAPE);
    if level::in_use() < level {
        return StageGuard::OFF;
    }
    let local = local::here();
    let own;
    let mut elsewhere = None;
    if !local.state.get().takes(level) {
        // Filtered is the common case: the stage is transparent.
        if local.state.get().is_local() {
            return StageGuard::OFF;
        }
        match outside(local, level) {
            Ok(context) => own = context,
            Err(begun) => return StageGuard { begun, kept: () },
        }
        elsewhere = Some(&own);
    }
    StageGuard { begun: begin(Begin { local, site, at: None, elsewhere }), kept: () }
}

/// Begins a stage of the request at `position`: under the current span if that is of the same trace, else under the
/// position; under what is current if it is null.
#[inline(always)]
pub fn enter_of<const SHAPE: u8>(
    site: &'static Site,
    position: impl FnOnce() -> Position,
) -> StageGuard<unwind::Trace> {
    enter_of_with::<SHAPE>(site, position, |begin| begin.with(()))
}

/// The same, with attributes.
#[inline(always)]
pub fn enter_of_with<const SHAPE: u8>(
    site: &'static Site,
    position: impl FnOnce() -> Position,
    begin: impl FnOnce(Begin<'_, SHAPE>) -> Begun,
) -> StageGuard<unwind::Trace> {
    let level = shape::level(SHAPE);
    if level::in_use() < level {
        return StageGuard::OFF;
    }
    let position = position();
    let local = local::here();
    let kept: unwind::Trace = Kept::of_thread();
    let own;
    let mut elsewhere = None;
    if !position.state.takes(level) || !is_plain(local, position) {
        match outside_of(local, level, position) {
            Ok(context) => own = context,
            Err(begun) => return StageGuard { begun, kept },
        }
        elsewhere = Some(&own);
    }
    if level == 1 {
        super::live::note_stage(&position, site);
    }
    StageGuard { begun: begin(Begin { local, site, at: Some(position), elsewhere }), kept }
}

/// Whether a stage at `position` goes either under it, or under a current span of the same request.
#[inline(always)]
fn is_plain(local: &Local, position: Position) -> bool {
    !is_here(local, position) || local.state.get() == position.state
}

/// Whether the position is in the current trace.
#[inline(always)]
fn is_here(local: &Local, position: Position) -> bool {
    let [upper, lower] = local.trace();
    (position.trace[0] ^ upper) | (position.trace[1] ^ lower) == 0
}

/// Begins a stage in a trace of its own, whatever is current.
pub fn enter_detached<const SHAPE: u8>(site: &'static Site) -> StageGuard {
    enter_detached_with::<SHAPE>(site, |begin| begin.with(()))
}

/// The same, with attributes.
pub fn enter_detached_with<const SHAPE: u8>(
    site: &'static Site,
    begin: impl FnOnce(Begin<'_, SHAPE>) -> Begun,
) -> StageGuard {
    let level = shape::level(SHAPE);
    if level::in_use() < level {
        return StageGuard::OFF;
    }
    let local = local::here();
    let begun = match own(local, level) {
        Ok(own) => begin(Begin { local, site, at: None, elsewhere: Some(&own) }),
        Err(begun) => begun,
    };
    StageGuard { begun, kept: () }
}

/// Where a stage goes that cannot simply go under what is current: under a span of another process, or, without a trace,
/// into one of its own. Or how it is filtered.
#[cold]
#[inline(never)]
fn outside(local: &Local, level: u8) -> Result<Context, Begun> {
    let state = local.state.get();
    match state.is_active() {
        false => own(local, level),
        true if state.level() < level => Err(Begun::OFF),
        true => Ok(local.context()),
    }
}

/// The same of a stage of a request.
#[cold]
#[inline(never)]
fn outside_of(local: &Local, level: u8, position: Position) -> Result<Context, Begun> {
    let is_here = position.trace == local.trace() && !position.state.outranks(local.state.get());
    if position.is_null() || is_here {
        return match local.state.get().level() < level {
            true => outside(local, level),
            false => Ok(local.context()),
        };
    }
    let context = Context::at(position);
    match context.state.level() < level {
        true => Err(unrecorded(local, &context)),
        false => Ok(context),
    }
}

fn own(local: &Local, level: u8) -> Result<Context, Begun> {
    let own = local.pool().and_then(|_| recorder::own_trace(local, level));
    match own {
        None => Err(Begun::OFF),
        // What runs inside must not begin traces of its own, and what is injected inside says "not sampled".
        Some(context) if context.state.level() < level => Err(unrecorded(local, &context)),
        Some(context) => Ok(Context { span: 0, ..context }),
    }
}

/// Whether a stage goes where it is not declared to lie. If not, that is remembered for the site of the current span.
#[cold]
#[inline(never)]
pub(super) fn is_out_of_place(local: &Local, site: &'static Site) -> bool {
    let Some(within) = site.within() else { return false };
    let stage = local.stage();
    // SAFETY: a thread's stage is that of a site, or null.
    let fits = unsafe { Stage::from_address(stage) }.is_some_and(|stage| stage.lies_within(within));
    if fits && local.is_in_stage() {
        site.set_fits_under(local.current_site());
    }
    !fits && is_misplaced(stage, local.state.get(), within)
}

/// Whether the enclosing stage is known and does not lie within `within`. Counts it.
#[cold]
#[inline(never)]
pub(super) fn is_misplaced(stage: *const StageInfo, state: State, within: Stage) -> bool {
    // SAFETY: a context's stage is that of a site, or null.
    let stage = unsafe { Stage::from_address(stage) };
    let misplaced = stage.is_some_and(|stage| !stage.lies_within(within));
    // A stage above the level is transparent, so that it cannot be missed.
    let misplaced = misplaced && within.level() <= state.level();
    if misplaced {
        recorder::count(&recorder::MISPLACED);
    }
    misplaced
}

impl StageGuard {
    /// What began, to be ended by other means than the guard.
    pub(super) fn into_begun(self) -> Begun {
        ManuallyDrop::new(self).begun
    }
}

impl<K: Kept> StageGuard<K> {
    const OFF: StageGuard<K> = StageGuard { begun: Begun::OFF, kept: K::NOTHING };

    /// Ends the stage; `judge` says how, and is only asked if anything is recorded.
    #[inline(always)]
    pub fn end(self, judge: impl FnOnce() -> Judged) {
        let Begun { slot, before, .. } = self.begun;
        if slot.addr() <= FRAMED {
            let this = ManuallyDrop::new(self);
            if !this.begun.is_off() {
                unwind::end(local::here(), this.begun, None);
            }
            return;
        }
        // Should it unwind, the stage ends as it would have with a panic of its own.
        let judged = judge();
        let this = ManuallyDrop::new(self);
        let local = local::here();
        if judged.outcome() != Outcome::Ok {
            unwind::end_as(local, this.begun, this.kept.into_trace(), judged);
        } else if slot == local.slot.get() {
            // In a thread's own chunk, and nothing was left current above it.
            // SAFETY: not off, and not framed.
            unsafe { SlotRef::new(slot) }.end(Clock::counter());
            local.set_slot(before);
            this.kept.put_back();
        } else {
            unwind::end(local, this.begun, this.kept.into_trace());
        }
    }
}

impl<K: Kept> Drop for StageGuard<K> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.begun.is_off() {
            unwind::dropped(self.begun, self.kept.into_trace());
        }
    }
}
