//! Counts allocations: those of each thread, and those of all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Off while times are taken: threads that count into one word would slow each other down, and most so those that
/// allocate most.
static IS_ON: AtomicBool = AtomicBool::new(false);
static OF_ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Allocations so far: of this thread, of all threads.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allocations {
    pub(crate) here: u64,
    pub(crate) everywhere: u64,
}

impl Allocations {
    /// Those until now, while counting was on.
    pub(crate) fn now() -> Allocations {
        Allocations { here: OF_THREAD.get(), everywhere: OF_ALL.load(Ordering::Relaxed) }
    }

    /// Those since an earlier moment.
    pub(crate) fn since(before: Allocations) -> Allocations {
        let now = Allocations::now();
        let everywhere = now.everywhere - before.everywhere;
        Allocations { here: now.here - before.here, everywhere }
    }
}

/// Switches counting on or off.
pub(crate) fn count(is_on: bool) {
    IS_ON.store(is_on, Ordering::Relaxed);
}

/// The system's allocator, which counts what asks it for memory: a reallocation is one more.
struct Counting;

impl Counting {
    fn note(&self) {
        if IS_ON.load(Ordering::Relaxed) {
            OF_ALL.fetch_add(1, Ordering::Relaxed);
            // A word without destructor: it is there as long as the thread is.
            OF_THREAD.set(OF_THREAD.get() + 1);
        }
    }
}

// SAFETY: all is done by the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note();
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.note();
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
