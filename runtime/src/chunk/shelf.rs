//! Free things by number: a shelf that all threads share, and a hand of them that a thread keeps.
//!
//! Things pass between the two in batches, so that a thread takes and gives without touching anything shared, but once
//! per [`BATCH`]. A thing's one link word holds the next in its batch (low half) and, in the first of a batch, the next
//! batch on the shelf (high half). The shelf's head carries a tag, so that a batch that left and came back is not
//! mistaken for itself.

use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;

/// How many things move at once.
pub(crate) const BATCH: u32 = 32;

/// Where the link words of things are. Things are numbered from 0.
pub(crate) trait Links {
    /// The link word of a thing that is free.
    fn link(&self, thing: u32) -> &AtomicU64;
}

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Tag (high half); number of the first thing of the top batch, plus one (low half), 0 for none.
    head: AtomicU64,
}

impl Shelf {
    /// An empty shelf; `head` is 0.
    pub(crate) const fn new(head: AtomicU64) -> Shelf {
        Shelf { head }
    }

    /// Forgets what is on it; nobody will find it again.
    #[cfg(unix)]
    pub(crate) fn forget(&self) {
        self.head.store(0, Ordering::Relaxed);
    }

    /// Puts down a batch, which starts with `first`.
    pub(crate) fn put(&self, links: &impl Links, first: u32) {
        let link = links.link(first);
        let in_batch = link.load(Ordering::Relaxed) & LOW;
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            link.store(in_batch | (head & LOW) << 32, Ordering::Relaxed);
            let next = tag_after(head) | (u64::from(first) + 1);
            match self.head.compare_exchange_weak(head, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes a batch: the number of its first thing.
    pub(crate) fn take(&self, links: &impl Links) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let first = (head & LOW).checked_sub(1)? as u32;
            let below = links.link(first).load(Ordering::Relaxed) >> 32;
            let next = tag_after(head) | below;
            match self.head.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(first),
                Err(now) => head = now,
            }
        }
    }
}

const LOW: u64 = u32::MAX as u64;

fn tag_after(head: u64) -> u64 {
    (head >> 32).wrapping_add(1) << 32
}

/// What a thread keeps: up to two batches.
#[derive(Debug)]
pub(crate) struct Hand {
    /// Number of the first thing plus one, 0 for none.
    first: Cell<u32>,
    count: Cell<u32>,
}

impl Hand {
    /// An empty hand.
    pub(crate) const fn new() -> Hand {
        Hand { first: Cell::new(0), count: Cell::new(0) }
    }

    /// Exchanges what is held with another hand.
    pub(crate) fn swap(&self, other: &Hand) {
        self.first.swap(&other.first);
        self.count.swap(&other.count);
    }

    /// Takes one thing, from the hand or else from the shelf.
    #[inline]
    pub(crate) fn take(&self, links: &impl Links, shelf: &Shelf) -> Option<u32> {
        let first = match self.first.get() {
            0 => self.refill(links, shelf)?,
            first => first - 1,
        };
        let next = links.link(first).load(Ordering::Relaxed) & LOW;
        self.first.set(next as u32);
        self.count.set(if next == 0 { 0 } else { self.count.get().saturating_sub(1) });
        Some(first)
    }

    /// Takes a batch from the shelf into the empty hand: the number of its first thing.
    #[cold]
    #[inline(never)]
    fn refill(&self, links: &impl Links, shelf: &Shelf) -> Option<u32> {
        let first = shelf.take(links)?;
        self.count.set(BATCH);
        Some(first)
    }

    /// Gives one thing back; a full hand puts half of it on the shelf.
    #[inline]
    pub(crate) fn give(&self, links: &impl Links, shelf: &Shelf, thing: u32) {
        links.link(thing).store(u64::from(self.first.get()), Ordering::Relaxed);
        self.first.set(thing + 1);
        self.count.set(self.count.get() + 1);
        if self.count.get() >= 2 * BATCH {
            self.shed(links, shelf);
        }
    }

    /// Puts the newer half of the hand on the shelf.
    #[cold]
    fn shed(&self, links: &impl Links, shelf: &Shelf) {
        let first = self.first.get() - 1;
        let mut last = first;
        for _ in 1..BATCH {
            match links.link(last).load(Ordering::Relaxed) & LOW {
                0 => return self.empty(links, shelf),
                next => last = (next - 1) as u32,
            }
        }
        self.first.set((links.link(last).load(Ordering::Relaxed) & LOW) as u32);
        self.count.set(self.count.get() - BATCH);
        links.link(last).store(0, Ordering::Relaxed);
        shelf.put(links, first);
    }

    /// Puts everything on the shelf, in batches.
    #[cold]
    pub(crate) fn empty(&self, links: &impl Links, shelf: &Shelf) {
        let mut rest = self.first.replace(0);
        self.count.set(0);
        while let Some(first) = rest.checked_sub(1) {
            let mut last = first;
            for _ in 1..BATCH {
                match links.link(last).load(Ordering::Relaxed) & LOW {
                    0 => break,
                    next => last = (next - 1) as u32,
                }
            }
            rest = (links.link(last).load(Ordering::Relaxed) & LOW) as u32;
            links.link(last).store(0, Ordering::Relaxed);
            shelf.put(links, first);
        }
    }
}

/// Links `things` into batches and puts them on the shelf. Only their maker does, before anyone knows them.
pub(crate) fn stock(links: &impl Links, shelf: &Shelf, things: std::ops::Range<u32>) {
    let mut from = things.start;
    while from < things.end {
        let to = (from + BATCH).min(things.end);
        for thing in from..to {
            let next = if thing + 1 < to { thing + 2 } else { 0 };
            links.link(thing).store(u64::from(next), Ordering::Relaxed);
        }
        shelf.put(links, from);
        from = to;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Vector(Vec<AtomicU64>);
    impl Links for Vector {
        fn link(&self, thing: u32) -> &AtomicU64 {
            &self.0[thing as usize]
        }
    }

    fn stocked(count: u32) -> (Vector, Shelf) {
        let links = Vector((0..count).map(|_| AtomicU64::new(0)).collect());
        let shelf = Shelf::new(AtomicU64::new(0));
        stock(&links, &shelf, 0..count);
        (links, shelf)
    }

    #[test]
    fn each_thing_is_taken_once() {
        let (links, shelf) = stocked(100);
        let hand = Hand::new();
        let mut taken: Vec<u32> =
            std::iter::from_fn(|| hand.take(&links, &shelf)).take(101).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn what_one_thread_gives_another_takes() {
        let (links, shelf) = stocked(200);
        let (mine, yours) = (Hand::new(), Hand::new());
        for _ in 0..50 {
            let things: Vec<u32> = (0..150).filter_map(|_| mine.take(&links, &shelf)).collect();
            assert_eq!(things.len(), 150);
            things.iter().for_each(|&thing| yours.give(&links, &shelf, thing));
            yours.empty(&links, &shelf);
        }
        mine.empty(&links, &shelf);
        let all: Vec<u32> = std::iter::from_fn(|| mine.take(&links, &shelf)).take(300).collect();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn threads_never_hold_the_same_thing() {
        let (links, shelf) = stocked(512);
        let held: Vec<AtomicU64> = (0..512).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let hand = Hand::new();
                    for round in 0..if cfg!(miri) { 20 } else { 20_000 } {
                        let things: Vec<u32> = (0..round % 90)
                            .filter_map(|_| hand.take(&links, &shelf))
                            .inspect(|&t| {
                                assert_eq!(held[t as usize].fetch_add(1, Ordering::SeqCst), 0)
                            })
                            .collect();
                        for thing in things {
                            held[thing as usize].fetch_sub(1, Ordering::SeqCst);
                            hand.give(&links, &shelf, thing);
                        }
                    }
                    hand.empty(&links, &shelf);
                });
            }
        });
        let hand = Hand::new();
        assert_eq!(std::iter::from_fn(|| hand.take(&links, &shelf)).take(600).count(), 512);
    }
}
