//! Free chunks.

use super::space::Space;
use crate::sync::{AtomicU64, Ordering};
use stagetrace_wire::recording::layout::{SMALL_CHUNK, chunk};

/// A stack of free chunks by page number, linked through their heads. The tag keeps a chunk that left and came back
/// from being mistaken for itself.
#[derive(Debug)]
pub(super) struct Stack {
    head: AtomicU64,
}

impl Stack {
    /// An empty stack; `head` is 0.
    pub(super) const fn new(head: AtomicU64) -> Stack {
        Stack { head }
    }

    /// Puts a chunk down.
    pub(super) fn push(&self, space: &Space, page: usize) {
        let next = space.word(page * (SMALL_CHUNK / 8) + chunk::NEXT);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            next.store(head & u64::from(u32::MAX), Ordering::Relaxed);
            let new = ((head >> 32).wrapping_add(1) << 32) | (page as u64 + 1);
            match self.head.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the chunk that was put down last.
    pub(super) fn pop(&self, space: &Space) -> Option<usize> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let page = ((head & u64::from(u32::MAX)) as usize).checked_sub(1)?;
            let next = space.word(page * (SMALL_CHUNK / 8) + chunk::NEXT);
            let below = next.load(Ordering::Relaxed);
            let new = ((head >> 32).wrapping_add(1) << 32) | below;
            match self.head.compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(page),
                Err(now) => head = now,
            }
        }
    }
}
