//! Stages that follow each other: one ends where the next begins, on one reading of the clock.

use super::guard::{Begun, enter};
use super::local::{self, Local};
use super::unwind;
use super::write::{self, SlotRef, Under};
use crate::clock::Clock;
use crate::request::Judged;
use crate::stage::{Stage, level, shape};

/// A stage that is running on this thread, and those that follow it. Made by [`next`]; the last one ends when this is
/// dropped.
///
/// Not `Send`, and must not live across an `.await`: it says what is current on its thread.
#[derive(Debug)]
#[must_use = "the stage ends when this is dropped"]
pub struct Consecutive {
    begun: Begun,
}

/// Begins a stage under what is current, to be followed by others: [`Consecutive::next`] ends it and begins its sibling.
///
/// ```
/// use stagetrace::Stages;
///
/// #[derive(Stages, Clone, Copy)]
/// enum Decode {
///     Prefill,
///     Sample,
///     Emit,
/// }
///
/// let captured = stagetrace::testing::capture(|| {
///     stagetrace::span!("token").in_scope(|| {
///         let mut now = stagetrace::next(Decode::PREFILL);
///         now.next(Decode::SAMPLE);
///         now.next(Decode::EMIT);
///     });
/// });
/// assert_eq!(captured.tree(&[]), "token\n  prefill\n  sample\n  emit\n");
/// ```
pub fn next(stage: Stage) -> Consecutive {
    Consecutive { begun: begin(stage) }
}

impl Consecutive {
    /// Ends the stage that is running and begins this one at the same instant, under the same parent.
    ///
    /// One that is not recorded, above the level or for want of room, leaves a gap; the one before ends all the same. Costs
    /// about half of what a stage does otherwise.
    #[inline(always)]
    pub fn next(&mut self, stage: Stage) {
        let local = local::here();
        let Begun { slot, before, .. } = self.begun;
        let is_innermost = slot == local.slot.get();
        let is_wanted = level::in_use() >= stage.level() && local.state.get().takes(stage.level());
        let Some(site) = stage.site().filter(|_| is_innermost && is_wanted) else {
            return self.next_in_any_case(local, stage);
        };
        // In a thread's own chunk, as whatever is current by its guard alone.
        let ticks = Clock::counter();
        // SAFETY: the slot of a span that is open.
        unsafe { SlotRef::new(slot) }.end(ticks);
        local.set_slot(before);
        const WITHIN: u8 = shape::WITHIN;
        let under = Under::current(local);
        let begun = match stage.within() {
            None => write::begin::<0, ()>(local, site, under, &(), || ticks),
            Some(_) => write::begin::<WITHIN, ()>(local, site, under, &(), || ticks),
        };
        match begun {
            Some(begun) => {
                local.set_slot(begun.address());
                self.begun.slot = begun.address();
            }
            None => self.begun = begin(stage),
        }
    }

    /// Ends the stage that is running as it was judged: by an [`Outcome`](crate::Outcome), or a reference to a returned
    /// value. Dropping ends it as a success, or as a panic while unwinding.
    pub fn end(self, outcome: impl Into<Judged>) {
        let begun = std::mem::ManuallyDrop::new(self).begun;
        if !begun.is_off() {
            unwind::end_judged(local::here(), begun, outcome.into());
        }
    }

    #[cold]
    #[inline(never)]
    fn next_in_any_case(&mut self, local: &Local, stage: Stage) {
        if !self.begun.is_off() {
            unwind::end(local, self.begun, None);
        }
        self.begun = begin(stage);
    }
}

/// Begins a stage of any level, within any other.
#[inline(never)]
fn begin(stage: Stage) -> Begun {
    const WITHIN: u8 = shape::WITHIN;
    let Some(site) = stage.site() else { return Begun::OFF };
    let guard = match stage.level() {
        1 => enter::<{ 1 | WITHIN }>(site),
        2 => enter::<{ 2 | WITHIN }>(site),
        _ => enter::<{ 3 | WITHIN }>(site),
    };
    guard.into_begun()
}

impl Drop for Consecutive {
    fn drop(&mut self) {
        if !self.begun.is_off() {
            unwind::dropped(self.begun, None);
        }
    }
}
