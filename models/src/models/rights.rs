//! Who ends a request's root, and who gives its block back.

use super::support::explore;
use crate::record::rights::{Ending, Handles};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Stands for the pool in which the root's slot lies.
static POOL: u64 = 17;

/// A root's ending, and its slot: not atomic, so that loom refuses an end that does not see the begin, or two.
struct Root {
    ending: Ending<u64>,
    handles: Handles,
    slot: UnsafeCell<&'static str>,
}

// SAFETY: that the slot has one user at a time is what loom checks.
unsafe impl Sync for Root {}

impl Root {
    fn new() -> Arc<Root> {
        let root = Root {
            ending: Ending::none(),
            handles: Handles::none(),
            slot: UnsafeCell::new("taken"),
        };
        root.ending.reset();
        root.handles.first();
        Arc::new(root)
    }

    /// Another handle.
    fn share(root: &Arc<Root>) -> Arc<Root> {
        root.handles.share();
        root.clone()
    }

    /// Writes the slot and opens the root; ends it if it was finished meanwhile. Whether it did.
    fn open(&self) -> bool {
        // SAFETY: nobody knows the slot yet.
        self.slot.with_mut(|slot| unsafe { *slot = "open" });
        let opened = self.ending.open(&self.handles, &POOL, 3);
        opened.is_some_and(|(pool, number)| self.end(pool, number))
    }

    /// Finishes the root. Whether this call ended it.
    fn finish(&self) -> bool {
        let opened = self.ending.finish().flatten();
        opened.is_some_and(|(pool, number)| self.end(pool, number))
    }

    fn end(&self, pool: &u64, number: u32) -> bool {
        assert_eq!((*pool, number), (17, 3));
        // SAFETY: the caller got the right to end.
        self.slot.with_mut(|slot| unsafe {
            assert_eq!(*slot, "open");
            *slot = "ended";
        });
        true
    }
}

#[test]
fn a_root_that_is_finished_while_it_opens_is_ended_once() {
    explore(|| {
        let root = Root::new();
        let other = Root::share(&root);
        let thread = thread::spawn(move || other.finish());
        let by_opener = root.open();
        let by_finisher = thread.join().unwrap();
        assert!(by_opener != by_finisher, "ended by both or by none");
    });
}

#[test]
fn a_root_is_ended_once_though_who_finishes_it_lets_go_while_it_opens() {
    explore(|| {
        let root = Root::new();
        let other = Root::share(&root);
        let thread = thread::spawn(move || {
            let ended = other.finish();
            assert!(!other.handles.unshare(), "the opener has one");
            ended
        });
        let by_opener = root.open();
        let by_finisher = thread.join().unwrap();
        assert!(by_opener != by_finisher, "ended by both or by none");
        assert!(root.handles.unshare());
    });
}

#[test]
fn of_two_who_finish_a_root_one_ends_it() {
    explore(|| {
        let root = Root::new();
        assert!(!root.open());
        let other = Root::share(&root);
        let thread = thread::spawn(move || other.finish());
        let mine = root.finish();
        assert!(mine != thread.join().unwrap());
        assert!(root.ending.slot().is_none());
    });
}

#[test]
fn whoever_asks_for_an_open_root_finds_its_slot_written() {
    explore(|| {
        let root = Root::new();
        let other = Root::share(&root);
        let thread = thread::spawn(move || {
            if let Some((pool, number)) = other.ending.slot() {
                assert_eq!((*pool, number), (17, 3));
                // SAFETY: nobody ends the root in this model.
                other.slot.with(|slot| assert_eq!(unsafe { *slot }, "open"));
            }
        });
        assert!(!root.open());
        thread.join().unwrap();
    });
}

#[test]
fn the_last_of_two_handles_gives_the_block_back_and_sees_what_the_other_did() {
    explore(|| {
        let root = Root::new();
        let other = Root::share(&root);
        let drop_handle = |root: &Root, outcome: u8| {
            root.ending.note(outcome);
            let last = root.handles.unshare();
            if last {
                assert_eq!(root.ending.worst(), 5);
                // SAFETY: the last handle makes the block this thread's alone.
                root.slot.with_mut(|slot| unsafe { *slot = "free" });
            }
            last
        };
        let thread = thread::spawn(move || {
            // SAFETY: a handle is held, so the block is not free.
            other.slot.with(|slot| assert_eq!(unsafe { *slot }, "taken"));
            drop_handle(&other, 5)
        });
        let mine = drop_handle(&root, 4);
        assert!(mine != thread.join().unwrap(), "given back by both or by none");
    });
}
