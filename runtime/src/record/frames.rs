//! What was current before each guard of a thread, as a stack in memory of the thread's own.
//!
//! Kept beside the guards and not in them, so that a guard is two words, which travel in registers. The first frames lie in
//! the thread's own state; deeper stacks are allocated, and grow by doubling at a depth that the thread has not had before.

use super::Context;
use super::context::State;
use crate::stage::StageInfo;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// What was current, as far as the guard changed it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Frame {
    pub(crate) span: u64,
    pub(crate) stage: *const StageInfo,
    pub(crate) slot: *const AtomicU64,
    /// Whether the trace changed too; else the last two are not written.
    pub(crate) switched: bool,
    /// Tells the guard by hand that made it from others that come to the same depth; 0 for a stage's.
    pub(crate) serial: u32,
    pub(crate) trace: [u64; 2],
    pub(crate) state: State,
}

/// Frames in the thread's own state.
const OWN: u32 = 8;

/// The stack. Belongs to one thread.
#[derive(Debug)]
pub(crate) struct Frames {
    first: Cell<*mut Frame>,
    room: Cell<u32>,
    depth: Cell<u32>,
    serial: Cell<u32>,
    own: UnsafeCell<[MaybeUninit<Frame>; OWN as usize]>,
}

impl Frames {
    /// An empty stack.
    pub(crate) const fn new() -> Frames {
        Frames {
            first: Cell::new(ptr::null_mut()),
            room: Cell::new(0),
            depth: Cell::new(0),
            serial: Cell::new(0),
            own: UnsafeCell::new([MaybeUninit::uninit(); OWN as usize]),
        }
    }

    /// How many guards are in force.
    #[inline(always)]
    pub(crate) fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Pops down to `depth`, which is not above the present one.
    #[inline(always)]
    pub(crate) fn set_depth(&self, depth: u32) {
        debug_assert!(depth <= self.depth.get());
        self.depth.set(depth);
    }

    /// Pushes the frame of a guard that changes the span, the stage and the slot; gives the guard's depth.
    #[inline(always)]
    pub(crate) fn push_span(
        &self,
        span: u64,
        stage: *const StageInfo,
        slot: *const AtomicU64,
    ) -> u32 {
        let depth = self.depth.get();
        if depth == self.room.get() {
            self.grow();
        }
        // SAFETY: `depth` is below `room` now, so the frame is in the allocation, which only this thread uses.
        unsafe {
            let frame = self.first.get().add(depth as usize);
            (*frame).span = span;
            (*frame).stage = stage;
            (*frame).slot = slot;
            (*frame).switched = false;
            (*frame).serial = 0;
        }
        self.depth.set(depth + 1);
        depth + 1
    }

    /// A number for a guard by hand, never 0.
    pub(crate) fn next_serial(&self) -> u32 {
        self.serial.set(self.serial.get().wrapping_add(1).max(1));
        self.serial.get()
    }

    /// Pushes the frame of a guard that changes everything; gives the guard's depth.
    #[inline]
    pub(crate) fn push(&self, before: &Context, serial: u32) -> u32 {
        let Context { trace, span, state, stage, slot } = *before;
        let depth = self.push_span(span, stage, slot);
        // SAFETY: `push_span` has just written the frame below `depth`.
        unsafe {
            let frame = self.first.get().add(depth as usize - 1);
            (*frame).switched = true;
            (*frame).serial = serial;
            (*frame).trace = trace;
            (*frame).state = state;
        }
        depth
    }

    /// The frame of the guard with this depth, which is in force.
    ///
    /// # Safety
    /// The stack is at least that deep, and `depth` is not 0.
    #[inline(always)]
    pub(crate) unsafe fn frame(&self, depth: u32) -> &Frame {
        // SAFETY: the caller's promise: the frame was written and lies in the allocation.
        unsafe { &*self.first.get().add(depth as usize - 1) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&self) {
        if self.room.get() == 0 {
            self.first.set(self.own.get().cast());
            self.room.set(OWN);
            return;
        }
        let room = self.room.get() * 2;
        let layout = layout(room);
        // SAFETY: the layout is not empty.
        let first = unsafe { alloc(layout) }.cast::<Frame>();
        if first.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the old frames below `depth` lie in the old memory, and fit into the new.
        unsafe { first.copy_from_nonoverlapping(self.first.get(), self.depth.get() as usize) };
        self.free();
        self.first.set(first);
        self.room.set(room);
    }

    /// Frees what was allocated if no guard is in force.
    pub(crate) fn free_if_empty(&self) {
        if self.depth.get() == 0 {
            self.free();
        }
    }

    fn free(&self) {
        let first = self.first.replace(ptr::null_mut());
        let room = self.room.replace(0);
        // More room than a state has of its own was allocated.
        if room > OWN {
            // SAFETY: allocated in `grow` with this layout.
            unsafe { dealloc(first.cast(), layout(room)) };
        }
    }

    /// Makes sure that the stack lies in this state's own memory or on the heap, before it is exchanged.
    pub(crate) fn settle(&self) {
        if self.room.get() == 0 {
            self.grow();
        }
    }

    /// Exchanges stacks with another, which must stay where it is until they are exchanged back.
    pub(crate) fn swap(&self, other: &Frames) {
        self.first.swap(&other.first);
        self.room.swap(&other.room);
        self.depth.swap(&other.depth);
    }
}

fn layout(frames: u32) -> Layout {
    Layout::array::<Frame>(frames as usize).expect("a stack of frames fits into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_stack_gives_back_every_frame() {
        let frames = Frames::new();
        let depths: Vec<u32> =
            (0..1_000).map(|span| frames.push_span(span, ptr::null(), ptr::null())).collect();
        for (span, depth) in depths.into_iter().enumerate().rev() {
            // SAFETY: pushed above, and popped from the top down.
            assert_eq!(unsafe { frames.frame(depth) }.span, span as u64);
            frames.set_depth(depth - 1);
        }
        frames.free_if_empty();
        assert_eq!(frames.room.get(), 0);
    }

    #[test]
    fn a_whole_context_comes_back_whole() {
        let frames = Frames::new();
        let before = Context { trace: [1, 2], span: 3, ..Context::NONE };
        let depth = frames.push(&before, 0);
        // SAFETY: just pushed.
        let frame = unsafe { frames.frame(depth) };
        assert_eq!((frame.switched, frame.trace, frame.span), (true, [1, 2], 3));
        frames.set_depth(0);
        frames.free_if_empty();
    }
}
