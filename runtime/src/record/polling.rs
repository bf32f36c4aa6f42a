//! What is current while a future is polled, and what is put back afterwards.

use super::context::State;
use super::local::{self, Before, Local};
use super::write::SlotRef;
use super::{Context, recorder};
use stagetrace_wire::recording::layout::slot;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was current before a poll; put back when it is over, and guards that the poll left behind are popped.
pub(super) struct Polling {
    before: Earlier,
    depth: u32,
}

enum Earlier {
    /// The poll changes nothing.
    Same,
    /// A span was made current in the place of this.
    Span { trace: [u64; 2], state: State, slot: *const AtomicU64 },
    /// Anything was.
    All(Before),
}

impl Polling {
    pub(super) const NOTHING: Polling = Polling { before: Earlier::Same, depth: 0 };

    #[inline]
    pub(super) fn span(local: &Local, slot: SlotRef, state: State) -> Polling {
        let word = |at: usize| slot.word(at).load(Ordering::Relaxed);
        let trace = [word(slot::TRACE), word(slot::TRACE + 1)];
        if trace == [0; 2] {
            // In the child of a fork its slot is empty.
            return Polling::context(local, &Context::NONE);
        }
        local.arrive_at(word(slot::SPAN));
        Polling::within(local, slot, trace, state)
    }

    /// Within the span of a slot, which this thread has begun or arrived at.
    #[inline]
    pub(super) fn within(local: &Local, slot: SlotRef, trace: [u64; 2], state: State) -> Polling {
        let before = Earlier::Span {
            trace: local.trace(),
            state: local.state.get(),
            slot: local.slot.get(),
        };
        local.set_trace(trace, state);
        local.set_slot(slot.address());
        Polling { before, depth: local.frames.depth() }
    }

    pub(super) fn context(local: &Local, context: &Context) -> Polling {
        let before = local.save();
        local.arrive_at(context.span);
        local.set_context(context);
        Polling { before: Earlier::All(before), depth: local.frames.depth() }
    }
}

impl Drop for Polling {
    #[inline]
    fn drop(&mut self) {
        let local = local::here();
        if let Earlier::Same = self.before {
            return;
        }
        if local.frames.depth() != self.depth && !pop_left_behind(local, self.depth) {
            return;
        }
        match &self.before {
            Earlier::Same => {}
            Earlier::Span { trace, state, slot } => {
                local.set_trace(*trace, *state);
                local.set_slot(*slot);
            }
            Earlier::All(before) => local.restore(before),
        }
    }
}

/// Pops what a poll left behind. Whether what was before the poll is still to be put back: not if a guard from before it
/// was dropped inside, which has put back what was before that.
#[cold]
#[inline(never)]
fn pop_left_behind(local: &Local, depth: u32) -> bool {
    recorder::count(&recorder::OUT_OF_ORDER);
    let Some(before) = local.frames.before(depth + 1) else { return false };
    local.restore(&before);
    local.frames.cut(depth);
    true
}
