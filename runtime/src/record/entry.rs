//! Guards by hand: what is current until they are dropped, in whatever order that happens.
//!
//! Ending an outer one pops all above it; ending one that was popped changes nothing. Either is counted.

use super::frames::Mark;
use super::local::{self, Local};
use super::{Context, Position, recorder};
use std::marker::PhantomData;

/// A context that is in force on this thread.
#[derive(Debug)]
pub(crate) struct Entry {
    mark: Mark,
    _not_send: PhantomData<*const ()>,
}

impl Entry {
    /// None.
    pub(crate) const NONE: Entry = Entry { mark: Mark::NONE, _not_send: PhantomData };

    /// Says that another context is going to be current.
    pub(crate) fn new(local: &Local) -> Entry {
        Entry { mark: local.frames.push(local.save()), _not_send: PhantomData }
    }

    /// Puts back what was before, unless that was done already.
    #[inline]
    pub(crate) fn leave(&self) {
        if !self.mark.is_none() {
            local::with(|local| leave(local, self.mark));
        }
    }
}

/// Puts back what was current before this frame, if it is still there. Whether all was in order.
pub(crate) fn leave(local: &Local, mark: Mark) {
    let popped = local.frames.pop(mark);
    if let Some((before, _)) = &popped {
        local.restore(before);
    }
    if !popped.is_some_and(|(_, was_on_top)| was_on_top) {
        recorder::count(&recorder::OUT_OF_ORDER);
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
/// [`InSpan`](crate::InSpan). A null position changes nothing, nor does the current one.
pub fn attach(position: Position) -> Attached {
    local::with(|local| {
        if position.is_null() || position == local.position() {
            return Attached { entered: Entry::NONE };
        }
        let entered = Entry::new(local);
        local.arrive_at(position.span);
        local.set_context(&Context::at(position));
        Attached { entered }
    })
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.entered.leave();
    }
}
