//! Ends of stages out of the ordinary: failures, panics, frames, and guards that are not the innermost.
//!
//! Stages nest on their own, but a guard by hand may have been left behind above one, and a stackful coroutine may end
//! stages in any order. Whatever happens, a span that has ended is never left current.

use super::context::State;
use super::entry;
use super::guard::Begun;
use super::local::{self, Local};
use super::recorder;
use super::write::{self, SlotRef};
use crate::request::{Judged, Outcome};
use stagetrace_wire::recording::layout::slot;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a stage's guard puts back besides the slot.
pub trait Kept: Copy + Debug {
    /// Of a guard that puts nothing back.
    const NOTHING: Self;
    /// What there is on this thread.
    fn of_thread() -> Self;
    /// Puts it back.
    fn put_back(self);
    /// The trace, if it is one.
    fn into_trace(self) -> Option<Trace>;
}

/// A stage under what is current leaves the trace as it is.
impl Kept for () {
    const NOTHING: () = ();
    #[inline(always)]
    fn of_thread() {}
    #[inline(always)]
    fn put_back(self) {}
    #[inline(always)]
    fn into_trace(self) -> Option<Trace> {
        None
    }
}

/// The trace before a stage of a request. Its halves apart, since an array would not be kept in registers.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    upper: u64,
    lower: u64,
    state: State,
}

impl Kept for Trace {
    const NOTHING: Trace = Trace { upper: 0, lower: 0, state: State::NONE };
    #[inline(always)]
    fn of_thread() -> Trace {
        let local = local::here();
        let ([upper, lower], state) = (local.trace(), local.state.get());
        Trace { upper, lower, state }
    }
    #[inline(always)]
    fn put_back(self) {
        local::here().set_trace([self.upper, self.lower], self.state);
    }
    #[inline(always)]
    fn into_trace(self) -> Option<Trace> {
        Some(self)
    }
}

/// Ends a stage that did not fail, if it is recorded.
#[cold]
#[inline(never)]
pub(super) fn end(local: &Local, begun: Begun, kept: Option<Trace>) {
    let slot = begun.slot();
    if !slot.is_none() {
        slot.end(local.ticks());
    }
    put_back(local, begun, kept);
}

/// Ends a recorded stage as it was judged.
#[cold]
#[inline(never)]
pub(super) fn end_as(local: &Local, begun: Begun, kept: Option<Trace>, judged: Judged) {
    write::end_failed(local, begun.slot(), &judged);
    put_back(local, begun, kept);
}

fn put_back(local: &Local, begun: Begun, kept: Option<Trace>) {
    let slot = begun.slot();
    match begun.before() {
        Ok(mark) => entry::leave(local, mark),
        Err(before) => leave(local, slot, before, kept),
    }
}

/// Ends a stage as it was judged, if it is recorded.
pub(super) fn end_judged(local: &Local, begun: Begun, judged: Judged) {
    if judged.outcome() == Outcome::Ok || begun.slot().is_none() {
        end(local, begun, None);
    } else {
        end_as(local, begun, None, judged);
    }
}

/// Ends a stage whose guard was dropped: by unwinding, as a panic.
#[cold]
#[inline(never)]
pub(super) fn dropped(begun: Begun, kept: Option<Trace>) {
    let local = local::here();
    if std::thread::panicking() && !begun.slot().is_none() {
        end_as(local, begun, kept, Judged::from(Outcome::Panic));
    } else {
        end(local, begun, kept);
    }
}

/// Puts back what was before a stage without a frame, unless that was done with an outer guard.
fn leave(local: &Local, slot: SlotRef, before: *const AtomicU64, kept: Option<Trace>) {
    let current = local.slot.get();
    if current != slot.address() {
        recorder::count(&recorder::OUT_OF_ORDER);
        // A guard by hand that was entered inside and left behind: with the first of them all others go.
        let left_behind = (1..=local.frames.depth()).find_map(|depth| {
            let frame = local.frames.before(depth).filter(|frame| is_inside(frame.slot, slot))?;
            Some((depth, frame))
        });
        match left_behind {
            Some((depth, frame)) => {
                local.restore(&frame);
                local.frames.cut(depth - 1);
            }
            None if is_inside(current, slot) => {}
            // It was popped itself.
            None => return,
        }
    }
    local.set_slot(before);
    if let Some(kept) = kept {
        kept.put_back();
    }
}

/// Whether a current slot is `outer`, or began inside it.
fn is_inside(current: *const AtomicU64, outer: SlotRef) -> bool {
    if current == outer.address() {
        return true;
    }
    // SAFETY: null, or the address of eight words that stay for the life of the process or of this thread.
    let current = unsafe { SlotRef::new(current) };
    let id = |slot: SlotRef| slot.word(slot::SPAN).load(Ordering::Relaxed);
    !current.is_none() && Local::is_later(id(current), id(outer))
}
