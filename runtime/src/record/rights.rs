//! Two rights that exactly one caller gets: to end a request's root, and to give its block back.
//!
//! The first goes to the first `finish` of any handle; but a root may be finished while its attributes are still being
//! read, before its slot is known: then whoever opens it ends it. The second goes to whoever drops the last handle.

use crate::sync::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::ptr;

/// The right to end a root, and what is known of its end. `P` is the pool in which its slot lies.
#[derive(Debug)]
pub(crate) struct Ending<P: 'static> {
    pool: AtomicPtr<P>,
    /// The root's slab slot plus one; 0 while it is not open, as one that is not recorded never is; [`FINISHED`].
    slot: AtomicU32,
    worst: AtomicU8,
}

/// The pool and the number of a root's slot.
pub(crate) type Opened<P> = (&'static P, u32);

/// The right was given to somebody.
const FINISHED: u32 = u32::MAX;

impl<P> Ending<P> {
    /// Of no root.
    pub(crate) fn none() -> Ending<P> {
        Ending {
            pool: AtomicPtr::new(ptr::null_mut()),
            slot: AtomicU32::new(0),
            worst: AtomicU8::new(0),
        }
    }

    /// Makes it that of a root which is not yet open and that nobody else knows.
    #[inline]
    pub(crate) fn reset(&self) {
        self.pool.store(ptr::null_mut(), Ordering::Relaxed);
        self.slot.store(0, Ordering::Relaxed);
        self.worst.store(0, Ordering::Relaxed);
    }

    /// Says where the root's slot is; the caller has one of the `handles` to itself. Gives it back if the root was finished
    /// before: then the caller ends it.
    #[inline]
    pub(crate) fn open(
        &self,
        handles: &Handles,
        pool: &'static P,
        number: u32,
    ) -> Option<Opened<P>> {
        self.pool.store(ptr::from_ref(pool).cast_mut(), Ordering::Relaxed);
        // Whoever finds the number finds the pool and what was written into the slot.
        let is_first = if handles.is_one() {
            // Then nobody can finish it meanwhile: no exchange.
            let is_first = self.slot.load(Ordering::Relaxed) == 0;
            if is_first {
                self.slot.store(number + 1, Ordering::Release);
            }
            is_first
        } else {
            self.slot.compare_exchange(0, number + 1, Ordering::Release, Ordering::Acquire).is_ok()
        };
        (!is_first).then_some((pool, number))
    }

    /// Takes the right to end the root, which one caller gets: its slot, or `None` within if it is not recorded or not
    /// open yet.
    #[inline]
    pub(crate) fn finish(&self) -> Option<Option<Opened<P>>> {
        // The last handle mostly finds that it was given: no exchange for that.
        if self.slot.load(Ordering::Relaxed) == FINISHED {
            return None;
        }
        match self.slot.swap(FINISHED, Ordering::AcqRel) {
            FINISHED => None,
            slot => Some(self.opened(slot)),
        }
    }

    /// The root's slot while it is open.
    pub(crate) fn slot(&self) -> Option<Opened<P>> {
        match self.slot.load(Ordering::Acquire) {
            FINISHED => None,
            slot => self.opened(slot),
        }
    }

    /// Remembers the outcome if it is the worst so far.
    pub(crate) fn note(&self, outcome: u8) {
        self.worst.fetch_max(outcome, Ordering::Relaxed);
    }

    /// The worst outcome noted.
    pub(crate) fn worst(&self) -> u8 {
        self.worst.load(Ordering::Relaxed)
    }

    fn opened(&self, slot: u32) -> Option<Opened<P>> {
        let number = slot.checked_sub(1)?;
        // SAFETY: set before the slot, from a reference that lives as long as the process.
        Some((unsafe { self.pool.load(Ordering::Relaxed).as_ref() }?, number))
    }
}

/// How many handles a block has.
#[derive(Debug)]
pub(crate) struct Handles(AtomicU32);

impl Handles {
    /// None: the block is free.
    pub(crate) fn none() -> Handles {
        Handles(AtomicU32::new(0))
    }

    /// The first, of a block that was filled.
    #[inline]
    pub(crate) fn first(&self) {
        self.0.store(1, Ordering::Release);
    }

    /// Adds one.
    pub(crate) fn share(&self) {
        if self.0.fetch_add(1, Ordering::Relaxed) > u32::MAX / 2 {
            // Two thousand million forgotten clones: as with `Arc`, better to stop than to wrap.
            std::process::abort();
        }
    }

    /// Gives one back. Whether it was the last: then the block is the caller's alone, with all that others did to it.
    #[inline]
    pub(crate) fn unshare(&self) -> bool {
        if self.is_one() {
            self.0.store(0, Ordering::Relaxed);
            return true;
        }
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether the caller's is the only one, which nobody can share meanwhile. Then all is seen that others did to the block.
    #[inline]
    fn is_one(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}
