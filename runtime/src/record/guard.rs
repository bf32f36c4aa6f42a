//! Lexical guards: what is current while a block runs.
//!
//! A guard carries its depth. Ending an outer one pops all above it; ending one that was popped only ends its span.
//! Either is counted, and the context is never left at a span that has ended.

use super::local::{self, Local};
use super::tuples::Attributes;
use super::write::{self, SlotRef};
use super::{Context, Position, recorder};
use crate::request::{Judged, Outcome};
use crate::stage::{Site, Stage, level};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// A stage that is running on this thread. Made by `#[stage]`; ends with [`StageGuard::end`], or as a panic if it is
/// dropped while unwinding.
#[derive(Debug)]
#[must_use]
pub struct StageGuard {
    slot: SlotRef,
    /// Of its frame; 0 if it changed nothing.
    depth: u32,
    _not_send: PhantomData<*const ()>,
}

/// A stage that is about to begin: it will be recorded if there is room.
///
/// Attributes are evaluated between this and [`Begin::with`], so that they cost nothing when the stage is not recorded,
/// and may themselves record spans.
#[derive(Debug)]
pub struct Begin<'a> {
    local: &'a Local,
    site: &'static Site,
    /// Where it goes, if that is not what is current.
    under: Option<&'a Context>,
}

impl Begin<'_> {
    /// Begins it, with these attributes.
    #[inline(always)]
    pub fn with<A: Attributes>(self, attributes: A) -> StageGuard {
        let Begin { local, site, under } = self;
        let switches = under.is_some() || local.state.get().is_remote();
        let depth = if switches { push_whole(local) } else { push_span(local) };
        if let Some(under) = under {
            local.set_context(under);
        }
        let Some(begun) = write::begin(local, site, attributes) else {
            leave(local, depth);
            return StageGuard::off();
        };
        local.span.set(begun.id);
        local.stage.set(site.stage().address());
        local.slot.set(begun.slot.address());
        if switches {
            local.state.set(local.state.get().of_local());
        }
        StageGuard { slot: begun.slot, depth, _not_send: PhantomData }
    }
}

/// Finds where a stage under what is current goes, and begins it there with `$begin`. A macro and not a function that
/// takes one: the call would not always be inlined.
macro_rules! enter_current {
    ($site:expr, |$at:ident| $begin:expr) => {{
        let local = local::here();
        let own;
        let mut under = None;
        if local.state.get().level() < $site.level() {
            match outside(local, $site) {
                Ok(context) => own = context,
                Err(guard) => return guard,
            }
            under = Some(&own);
        }
        let $at = Begin { local, site: $site, under };
        $begin
    }};
}

/// The same for a stage of the request at a position.
macro_rules! enter_position {
    ($site:expr, $position:expr, |$at:ident| $begin:expr) => {{
        let position = $position;
        let local = local::here();
        let other;
        let mut under = None;
        if position.trace == local.trace() || position.is_null() {
            if local.state.get().level() < $site.level() {
                match outside(local, $site) {
                    Ok(context) => other = context,
                    Err(guard) => return guard,
                }
                under = Some(&other);
            }
        } else {
            other = Context::at(position);
            if position.state.level() < $site.level() {
                return StageGuard::unrecorded(local, &other);
            }
            under = Some(&other);
        }
        if $site.level() == 1 {
            super::live::note_stage(&position, $site);
        }
        let $at = Begin { local, site: $site, under };
        $begin
    }};
}

/// Begins a stage under what is current; without a trace, it begins one of its own.
#[inline(always)]
pub fn enter(site: &'static Site) -> StageGuard {
    if level::in_use() < site.level() {
        return StageGuard::off();
    }
    enter_current!(site, |at| at.with(()))
}

/// The same, with attributes.
#[inline(always)]
pub fn enter_with(site: &'static Site, begin: impl FnOnce(Begin<'_>) -> StageGuard) -> StageGuard {
    if level::in_use() < site.level() {
        return StageGuard::off();
    }
    enter_current!(site, |at| begin(at))
}

/// Begins a stage of the request at `position`: under the current span if that is of the same trace, else under the
/// position; under what is current if it is null.
#[inline(always)]
pub fn enter_of(site: &'static Site, position: impl FnOnce() -> Position) -> StageGuard {
    if level::in_use() < site.level() {
        return StageGuard::off();
    }
    enter_position!(site, position(), |at| at.with(()))
}

/// The same, with attributes.
#[inline(always)]
pub fn enter_of_with(
    site: &'static Site,
    position: impl FnOnce() -> Position,
    begin: impl FnOnce(Begin<'_>) -> StageGuard,
) -> StageGuard {
    if level::in_use() < site.level() {
        return StageGuard::off();
    }
    enter_position!(site, position(), |at| begin(at))
}

/// Begins a stage in a trace of its own, whatever is current.
pub fn enter_detached(site: &'static Site) -> StageGuard {
    enter_detached_with(site, |begin| begin.with(()))
}

/// The same, with attributes.
pub fn enter_detached_with(
    site: &'static Site,
    begin: impl FnOnce(Begin<'_>) -> StageGuard,
) -> StageGuard {
    if level::in_use() < site.level() {
        return StageGuard::off();
    }
    local::with(|local| match own(local, site) {
        Ok(own) => begin(Begin { local, site, under: Some(&own) }),
        Err(guard) => guard,
    })
}

/// The current level is too low for the stage: either it is filtered, which is the guard, or there is no trace and it
/// begins one, which is the context.
#[cold]
#[inline(never)]
fn outside(local: &Local, site: &'static Site) -> Result<Context, StageGuard> {
    if local.state.get().is_active() {
        return Err(StageGuard::off());
    }
    own(local, site)
}

fn own(local: &Local, site: &'static Site) -> Result<Context, StageGuard> {
    let own = local.pool().and_then(|_| recorder::own_trace(local, site.level()));
    match own {
        None => Err(StageGuard::off()),
        // What runs inside must not begin traces of its own, and what is injected inside says "not sampled".
        Some(context) if context.state.level() < site.level() => {
            Err(StageGuard::unrecorded(local, &context))
        }
        Some(context) => Ok(Context { span: 0, ..context }),
    }
}

/// Whether the current stage is known and does not lie within `within`.
#[cold]
#[inline(never)]
pub(crate) fn is_misplaced(local: &Local, within: Stage) -> bool {
    // SAFETY: a context's stage is that of a site, or null.
    let stage = unsafe { Stage::from_address(local.stage.get()) };
    let misplaced = stage.is_some_and(|stage| !stage.lies_within(within));
    // A stage above the level is transparent, so that it cannot be missed.
    let misplaced = misplaced && within.level() <= local.state.get().level();
    if misplaced {
        recorder::count(&recorder::MISPLACED);
    }
    misplaced
}

impl StageGuard {
    #[inline(always)]
    fn off() -> StageGuard {
        StageGuard { slot: SlotRef::NONE, depth: 0, _not_send: PhantomData }
    }

    /// Not recorded, but what runs inside belongs to that trace all the same.
    #[cold]
    #[inline(never)]
    fn unrecorded(local: &Local, context: &Context) -> StageGuard {
        let depth = push_whole(local);
        local.set_context(context);
        StageGuard { slot: SlotRef::NONE, depth, _not_send: PhantomData }
    }

    /// Ends the stage; `judge` says how, and is only asked if anything is recorded.
    #[inline(always)]
    pub fn end(self, judge: impl FnOnce() -> Judged) {
        if self.depth == 0 {
            let _ = ManuallyDrop::new(self);
            return;
        }
        // Should the judge unwind, the stage ends as it would have with a panic of its own.
        let judged = if self.slot.is_none() { Judged::OK } else { judge() };
        let guard = ManuallyDrop::new(self);
        let local = local::here();
        if !guard.slot.is_none() {
            if judged.outcome() != Outcome::Ok {
                write::end_failed(local, guard.slot, &judged);
            } else {
                guard.slot.end(local.ticks());
            }
        }
        leave(local, guard.depth);
    }
}

impl Drop for StageGuard {
    #[cold]
    fn drop(&mut self) {
        if self.depth == 0 {
            return;
        }
        let outcome = if std::thread::panicking() { Outcome::Panic } else { Outcome::Ok };
        local::with(|local| {
            if !self.slot.is_none() {
                write::end_failed(local, self.slot, &Judged::from(outcome));
            }
            leave(local, self.depth);
        });
    }
}

/// Pushes the frame of a guard after which another span of the current trace is current; gives its depth.
#[inline(always)]
fn push_span(local: &Local) -> u32 {
    local.frames.push_span(local.span.get(), local.stage.get(), local.slot.get())
}

/// Pushes the frame of a guard after which anything may be current; gives its depth.
fn push_whole(local: &Local) -> u32 {
    local.frames.push(&local.context(), 0)
}

/// Puts back what was before the guard of this depth.
#[inline(always)]
fn leave(local: &Local, depth: u32) {
    if local.frames.depth() == depth {
        restore(local, depth);
    } else {
        leave_out_of_order(local, depth);
    }
}

/// Puts back what the frame holds; the stack must be at least that deep.
#[inline(always)]
fn restore(local: &Local, depth: u32) {
    debug_assert!(local.frames.depth() >= depth);
    // SAFETY: the callers have seen that the stack is at least this deep.
    let frame = unsafe { local.frames.frame(depth) };
    local.span.set(frame.span);
    local.stage.set(frame.stage);
    local.slot.set(frame.slot);
    if frame.switched {
        local.set_trace(frame.trace, frame.state);
    }
    local.frames.set_depth(depth - 1);
}

/// Whoever was entered later is popped with this one, but only if this one was not popped itself.
#[cold]
#[inline(never)]
fn leave_out_of_order(local: &Local, depth: u32) {
    recorder::count(&recorder::OUT_OF_ORDER);
    if local.frames.depth() > depth {
        restore(local, depth);
    }
}

/// A context that is in force on this thread through a guard by hand, which may be dropped in any order.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Of its frame; 0 for none.
    depth: u32,
    /// The frame's, so that a guard that outlived its frame does not take another's for it.
    serial: u32,
    _not_send: PhantomData<*const ()>,
}

impl Entry {
    /// None.
    pub(crate) const NONE: Entry = Entry { depth: 0, serial: 0, _not_send: PhantomData };

    /// Says that another context is going to be current.
    pub(crate) fn new(local: &Local) -> Entry {
        let serial = local.frames.next_serial();
        let depth = local.frames.push(&local.context(), serial);
        Entry { depth, serial, _not_send: PhantomData }
    }

    /// Puts back what was before, unless that was done already.
    pub(crate) fn leave(&self) {
        if self.depth == 0 {
            return;
        }
        local::with(|local| {
            let popped = self.depth > local.frames.depth()
                // SAFETY: the stack is that deep, as just seen.
                || unsafe { local.frames.frame(self.depth) }.serial != self.serial;
            if popped {
                recorder::count(&recorder::OUT_OF_ORDER);
            } else {
                leave(local, self.depth);
            }
        });
    }
}

/// A position that is current on this thread until the guard is dropped.
#[derive(Debug)]
#[must_use = "the position is current only as long as the guard lives"]
pub struct Attached {
    entered: Entry,
}

/// Makes a position current on this thread: stages without a request go under it.
///
/// The guard is not `Send` and must not live across an `.await`; for futures there is
/// [`InSpan`](crate::InSpan). A null position changes nothing.
pub fn attach(position: Position) -> Attached {
    if position.is_null() {
        return Attached { entered: Entry::NONE };
    }
    local::with(|local| {
        let before = local.context();
        let mut context = Context::at(position);
        if (context.trace, context.span) == (before.trace, before.span) {
            (context.stage, context.slot) = (before.stage, before.slot);
        }
        let entered = Entry::new(local);
        local.set_context(&context);
        Attached { entered }
    })
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.entered.leave();
    }
}
