//! Chunks that threads share which have none of their own: they found nothing free, or have come to their end.
//!
//! A thread that needs one 64-byte record must not lose it because no whole chunk can be had for it. Nobody waits for
//! a lock here: there are several chunks, and whoever finds all of them taken or full gets none.

use super::pool::Pool;
use super::writer::Writer;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};
use stagetrace_wire::recording::layout::{BLOCK, slot};
use std::cell::Cell;
use std::hint;
use std::sync::TryLockError;

/// How many there are at most.
const CHUNKS: usize = 8;
/// Blocks of the pool for each of them.
const BLOCKS_EACH: usize = 8;
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
struct Place {
    writer: Writer,
    /// Since the collector last looked.
    is_used: Cell<bool>,
}

// SAFETY: a writer holds addresses of words that are atomic and stay for the life of the process; the lock orders them.
unsafe impl Send for Place {}

/// A shared chunk, while one thread writes into it.
#[derive(Debug)]
pub(crate) struct Borrowed<'a>(MutexGuard<'a, Place>);

impl Borrowed<'_> {
    /// The writer.
    pub(crate) fn writer(&self) -> &Writer {
        &self.0.writer
    }
}

impl Shared {
    /// Without chunks: each comes when it is first needed.
    pub(crate) fn new() -> Shared {
        Shared {
            chunks: std::array::from_fn(|_| {
                Mutex::new(Place { writer: Writer::new(), is_used: Cell::new(false) })
            }),
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
        // A small pool has few, since what is left in them is lost to the threads that have chunks of their own.
        let count = (pool.limit() / BLOCK / BLOCKS_EACH).clamp(1, CHUNKS);
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let mut may_refill = true;
        for _ in 0..TRIES {
            let mut is_taken = false;
            let mut full = None;
            for at in 0..count {
                match try_lock(&self.chunks[start.wrapping_add(at) % count]) {
                    Some(place) if place.writer.has_room(words) => {
                        place.is_used.set(true);
                        return Some(Borrowed(place));
                    }
                    Some(place) => full = Some(place),
                    None => is_taken = true,
                }
            }
            // A new chunk is only begun when all others are full or busy.
            if let (Some(place), true) = (full, may_refill) {
                if place.writer.refill_shared(pool, words) {
                    place.is_used.set(true);
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

    /// Hands over the chunks into which nobody has written since the last call.
    pub(crate) fn close_unused(&self, pool: &Pool) {
        for place in self.chunks.iter().filter_map(try_lock) {
            if !place.is_used.replace(false) {
                place.writer.close(pool);
            }
        }
    }

    /// Hands all chunks over.
    pub(crate) fn close(&self, pool: &Pool) {
        self.chunks.iter().filter_map(try_lock).for_each(|place| place.writer.close(pool));
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::chunk::space::Space;
    use crate::clock::Clock;
    use stagetrace_wire::recording::layout::chunk;
    use std::collections::HashSet;

    fn pool(blocks: usize) -> &'static Pool {
        let pool = Pool::new(Space::in_memory(blocks).unwrap(), Clock::Monotonic, "{}").unwrap();
        while pool.grow_to_reserve(u32::MAX).unwrap() {}
        Box::leak(Box::new(pool))
    }

    /// Reserves one record's room in a shared chunk: its address.
    fn record(pool: &'static Pool) -> Option<usize> {
        let shared = pool.shared().borrow(pool, slot::WORDS)?;
        let at = shared.writer().reserve(slot::WORDS).expect("there is room").start();
        shared.writer().publish();
        Some(at as usize)
    }

    /// The states of all large chunks.
    fn states(pool: &Pool) -> Vec<u64> {
        (1..pool.blocks())
            .map(|block| pool.block(block)[chunk::STATE].load(Ordering::Relaxed))
            .collect()
    }

    #[test]
    fn no_two_threads_get_the_same_room() {
        let pool = pool(64);
        let (threads, each) = (8, if cfg!(miri) { 20 } else { 2000 });
        let places: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|_| scope.spawn(|| (0..each).filter_map(|_| record(pool)).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(!places.is_empty() && places.len() <= threads * each);
        assert_eq!(places.iter().collect::<HashSet<_>>().len(), places.len());
    }

    #[test]
    fn a_chunk_that_nobody_uses_any_more_is_handed_over() {
        let pool = pool(16);
        assert!(record(pool).is_some());
        let owned = |pool| states(pool).iter().filter(|state| **state == chunk::OWNED).count();
        pool.shared().close_unused(pool);
        assert_eq!(owned(pool), 1, "it was used since the last time");
        pool.shared().close_unused(pool);
        assert_eq!(owned(pool), 0);
        assert!(states(pool).contains(&chunk::FULL));
    }

    #[test]
    fn when_all_are_full_the_answer_is_no_until_something_is_given_back() {
        let pool = pool(16);
        let most = 16 * (BLOCK / (slot::WORDS * 8));
        let places = std::iter::from_fn(|| record(pool)).take(most).count();
        assert!(places > most / 2 && places < most, "{places}");
        assert!(record(pool).is_none());
        let full = (1..16)
            .find(|block| pool.block(*block)[chunk::STATE].load(Ordering::Relaxed) == chunk::FULL);
        pool.recycle(pool.block(full.unwrap()));
        assert!(record(pool).is_some());
    }
}
