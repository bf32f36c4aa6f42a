//! What is free is handed to one thread at a time, with all that its last user wrote into it.

use super::support::{Memory, explore};
use crate::chunk::{Hand, Links, Shelf, stock};
use crate::recording::layout::chunk;
use crate::sync::{AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Things with a link each, and with contents that are not atomic: loom refuses two users at once, and a user who does
/// not see what the last one did.
struct Things {
    shelf: Shelf,
    links: Vec<AtomicU64>,
    contents: Vec<UnsafeCell<u32>>,
}

impl Links for Things {
    fn link(&self, thing: u32) -> &AtomicU64 {
        &self.links[thing as usize]
    }
}

impl Things {
    /// So many, each a batch of its own.
    fn new(count: u32) -> Things {
        let things = Things {
            shelf: Shelf::new(AtomicU64::new(0)),
            links: (0..count).map(|_| AtomicU64::new(0)).collect(),
            contents: (0..count).map(|_| UnsafeCell::new(0)).collect(),
        };
        (0..count).for_each(|thing| stock(&things, &things.shelf, thing..thing + 1));
        things
    }

    fn use_up(&self, thing: u32) {
        // SAFETY: that nobody else has the thing is what loom checks here.
        self.contents[thing as usize].with_mut(|times| unsafe { *times += 1 });
    }
}

// SAFETY: as above.
unsafe impl Sync for Things {}

#[test]
fn two_threads_never_take_the_same_batch_though_one_leaves_and_comes_back() {
    explore(|| {
        let things = Arc::new(Things::new(2));
        let others = things.clone();
        let thread = thread::spawn(move || {
            // The top leaves, what is below too, and the top comes back: the other must not take it for unchanged.
            let top = others.shelf.take(&*others);
            let below = others.shelf.take(&*others);
            for thing in [top, below].into_iter().flatten() {
                others.use_up(thing);
            }
            if let Some(top) = top {
                others.shelf.put(&*others, top);
            }
            below
        });
        let taken = things.shelf.take(&*things);
        taken.iter().for_each(|thing| things.use_up(*thing));
        let below = thread.join().unwrap();
        let rest = std::iter::from_fn(|| things.shelf.take(&*things));
        let mut all: Vec<u32> = rest.take(3).chain(taken).chain(below).collect();
        all.iter().for_each(|thing| things.use_up(*thing));
        all.sort_unstable();
        assert_eq!(all, [0, 1]);
    });
}

#[test]
fn what_a_hand_gives_back_another_hand_takes_with_its_contents() {
    explore(|| {
        let things = Arc::new(Things::new(1));
        let others = things.clone();
        let work = |things: &Things| {
            let hand = Hand::new();
            if let Some(thing) = hand.take(things, &things.shelf) {
                things.use_up(thing);
                hand.give(things, &things.shelf, thing);
            }
            hand.empty(things, &things.shelf);
        };
        let thread = thread::spawn(move || work(&others));
        work(&things);
        thread.join().unwrap();
        let hand = Hand::new();
        assert_eq!(hand.take(&*things, &things.shelf), Some(0));
        assert_eq!(hand.take(&*things, &things.shelf), None);
    });
}

#[test]
fn two_threads_never_take_the_same_chunk_though_one_is_recycled() {
    explore(|| {
        let memory = Memory::new(3);
        let pool = memory.pool();
        let take = move |name: u64| {
            let words = pool.take_shared_chunk(64)?;
            assert_eq!(words[chunk::STATE].load(Ordering::Relaxed), chunk::OWNED);
            let owner = &words[chunk::THREAD];
            owner.store(name, Ordering::Relaxed);
            Some(words)
        };
        let thread = thread::spawn(move || {
            let (first, second) = (take(1), take(2));
            if let Some(first) = first {
                assert_eq!(first[chunk::THREAD].load(Ordering::Relaxed), 1);
                pool.recycle(first);
            }
            second.map(|words| words.as_ptr() as usize)
        });
        let mine = take(3).map(|words| (words, words.as_ptr() as usize));
        if let Some((words, _)) = mine {
            assert_eq!(words[chunk::THREAD].load(Ordering::Relaxed), 3);
        }
        let others = thread.join().unwrap();
        let left = std::iter::from_fn(|| take(4)).take(3).map(|words| words.as_ptr() as usize);
        let mut all: Vec<usize> =
            left.chain(others).chain(mine.map(|(_, address)| address)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2, "each chunk is taken once, and none is lost");
    });
}
