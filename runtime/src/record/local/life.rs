//! A thread's state in other hands: lent to a capture, left to a parent process, given back at the thread's end.

use super::{Local, Phase, with};
use crate::chunk::{Hand, Pool};
use crate::record::{Context, live, recorder};
use std::ptr;

impl Local {
    /// Swaps everything of this thread for `other`'s; a capture does so before and after.
    pub(crate) fn swap(&self, other: &Local) {
        self.writer.swap(&other.writer);
        let (here, there) = (self.save(), other.save());
        self.restore(&there);
        other.restore(&here);
        self.ids.swap(&other.ids);
        self.frames.settle();
        other.frames.settle();
        self.frames.swap(&other.frames);
        self.clock.swap(&other.clock);
        self.phase.swap(&other.phase);
        self.pool.swap(&other.pool);
        self.random.swap(&other.random);
        self.base_level.swap(&other.base_level);
        self.slots.swap(&other.slots);
    }

    /// A state for a capture, which swaps it in.
    pub(crate) fn for_capture(pool: &'static Pool) -> Local {
        let local = Local::new();
        local.adopt(pool, [0, 1, 2]);
        local.base_level.set(Some(crate::stage::level::HIGHEST));
        local
    }

    /// Whether a capture has put this state in the place of the thread's own.
    #[cfg(unix)]
    pub(crate) fn is_capturing(&self) -> bool {
        self.base_level.get().is_some()
    }

    /// Leaves the recorder to whom it belongs: after a fork, to the parent. What is current stays current, as a place in
    /// another process's trace. The next recorder gives new ids.
    #[cfg(unix)]
    pub(crate) fn forget_recorder(&self) {
        self.forget_slot();
        self.writer.forget();
        self.pool.set(None);
        self.slots.swap(&Hand::new());
    }

    /// Keeps what is current by its id alone, since the memory of its slot is about to go.
    #[cfg(unix)]
    pub(crate) fn forget_slot(&self) {
        self.set_context(&Context { slot: ptr::null(), ..self.context() });
    }

    /// The thread's own state is back in its place.
    pub(crate) fn leave_capture(&self) {
        if self.pool.get().is_none() {
            // Without a recorder nobody gives them back when the thread ends.
            live::give_back(&self.blocks);
        }
        #[cfg(unix)]
        if !self.is_capturing() && !recorder::is_installed(self.pool.get()) {
            // The process was forked inside the capture.
            self.forget_recorder();
        }
    }

    /// Hands over the chunk and gives back what is kept.
    pub(crate) fn close(&self) {
        if let Some(pool) = self.pool.get() {
            self.writer.close(pool);
            self.slots.empty(pool, pool.slots());
        }
        live::give_back(&self.blocks);
        self.frames.free_if_empty();
    }
}

/// Runs when the thread ends, once it has recorded something.
pub(super) struct ExitHook;

impl Drop for ExitHook {
    fn drop(&mut self) {
        with(|local| {
            if let Some(pool) = local.pool.get() {
                local.writer.leave(pool);
            }
            local.close();
            local.phase.set(Phase::Exited);
        });
    }
}

/// Runs after a destructor that traced behind the exit hook: it is registered only then.
pub(super) struct LateHook;

impl Drop for LateHook {
    fn drop(&mut self) {
        with(|local| local.frames.free_if_empty());
    }
}
