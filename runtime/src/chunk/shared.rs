//! Chunks that threads share which have none of their own: they found nothing free, or have come to their end.
//!
//! A thread that needs one 64-byte record must not lose it because no whole chunk can be had for it. Nobody waits for
//! a lock here: there are several chunks, and whoever finds all of them taken or full gets none.

use super::pool::Pool;
use super::writer::Writer;
use stagetrace_wire::recording::layout::slot;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// How many there are.
const CHUNKS: usize = 8;
/// How often the locks are tried. Each is held for one record.
const TRIES: usize = 16;

/// The shared chunks of a pool.
#[derive(Debug)]
pub(crate) struct Shared {
    chunks: [Mutex<Place>; CHUNKS],
    /// At which the next thread begins to look.
    next: AtomicUsize,
    /// No chunk has room, nor has the pool.
    is_full: AtomicBool,
}

/// A place in a shared chunk.
#[derive(Debug)]
struct Place(Writer);

// SAFETY: a writer holds addresses of words that are atomic and stay for the life of the process; the lock orders them.
unsafe impl Send for Place {}

/// A shared chunk, while one thread writes into it.
#[derive(Debug)]
pub(crate) struct Borrowed<'a>(MutexGuard<'a, Place>);

impl Borrowed<'_> {
    /// The writer.
    pub(crate) fn writer(&self) -> &Writer {
        &self.0.0
    }
}

impl Shared {
    /// Without chunks: each comes when it is first needed.
    pub(crate) fn new() -> Shared {
        Shared {
            chunks: std::array::from_fn(|_| Mutex::new(Place(Writer::new()))),
            next: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
        }
    }

    /// A chunk with room for `words`, if there is any.
    #[cold]
    pub(crate) fn borrow(&self, pool: &'static Pool, words: usize) -> Option<Borrowed<'_>> {
        if self.is_full.load(Ordering::Relaxed) {
            return None;
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let mut may_refill = true;
        for _ in 0..TRIES {
            let mut is_taken = false;
            let mut full = None;
            for at in 0..CHUNKS {
                match try_lock(&self.chunks[(start + at) % CHUNKS]) {
                    Some(place) if place.0.has_room(words) => return Some(Borrowed(place)),
                    Some(place) => full = Some(place),
                    None => is_taken = true,
                }
            }
            // A new chunk is only begun when all others are full or busy.
            if let (Some(place), true) = (full, may_refill) {
                if place.0.refill_shared(pool, words) {
                    return Some(Borrowed(place));
                }
                may_refill = false;
            }
            if !is_taken {
                // Until something is given back, nobody need look again. If that has just happened, the collector's next
                // turn says so.
                self.is_full.store(words <= slot::WORDS, Ordering::Relaxed);
                pool.wake();
                return None;
            }
            hint::spin_loop();
        }
        None
    }

    /// Says that something was given back to the pool.
    pub(crate) fn look_again(&self) {
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// Hands all chunks over.
    pub(crate) fn close(&self, pool: &Pool) {
        for chunk in &self.chunks {
            if let Some(place) = try_lock(chunk) {
                place.0.close(pool);
            }
        }
    }
}

/// The lock, if it is free. A thread that panicked with it has left a whole record or none.
fn try_lock(chunk: &Mutex<Place>) -> Option<MutexGuard<'_, Place>> {
    match chunk.try_lock() {
        Ok(place) => Some(place),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
