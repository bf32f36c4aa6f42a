//! What was current before each guard by hand, as a stack in memory of the thread's own.
//!
//! The guard of a stage keeps what it puts back in itself, in registers or on the caller's stack. Guards by hand may be
//! dropped in any order, so what they put back lies here, where each is found by its depth and known by its serial. The
//! first frames lie in the thread's own state; deeper stacks are allocated, and grow by doubling at a depth that the thread
//! has not had before.

use super::local::Before;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;

/// What was current before a guard.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Frame {
    before: Before,
    serial: u32,
}

/// The frame that a guard made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// How deep the stack was with it; 0 for none.
    depth: u32,
    /// Tells it from others that come to the same depth.
    serial: u32,
}

impl Mark {
    /// No frame.
    pub(crate) const NONE: Mark = Mark { depth: 0, serial: 0 };

    /// Whether there is no frame.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.depth == 0
    }

    /// Both numbers in one word.
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.depth) << 32 | u64::from(self.serial)
    }

    /// The mark of a word that [`Mark::to_word`] gave.
    pub(crate) fn from_word(word: u64) -> Mark {
        Mark { depth: (word >> 32) as u32, serial: word as u32 }
    }
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

    /// Pops down to `depth`, unless the stack is no deeper.
    #[inline(always)]
    pub(crate) fn cut(&self, depth: u32) {
        self.depth.set(self.depth.get().min(depth));
    }

    /// Pushes what is current before a guard.
    pub(crate) fn push(&self, before: Before) -> Mark {
        let depth = self.depth.get();
        if depth == self.room.get() {
            self.grow();
        }
        let serial = self.serial.get().wrapping_add(1);
        self.serial.set(serial);
        // SAFETY: `depth` is below `room` now, so the frame is in the allocation, which only this thread uses.
        unsafe { self.first.get().add(depth as usize).write(Frame { before, serial }) };
        self.depth.set(depth + 1);
        Mark { depth: depth + 1, serial }
    }

    /// What was current before the guard at this depth, 1 for the outermost; `None` if the stack is not so deep.
    pub(crate) fn before(&self, depth: u32) -> Option<Before> {
        self.frame(depth).map(|frame| frame.before)
    }

    /// Pops the guard's frame and all above it: what was current before, and whether it was on top. `None` if it was popped
    /// already.
    pub(crate) fn pop(&self, mark: Mark) -> Option<(Before, bool)> {
        let frame = self.frame(mark.depth).filter(|frame| frame.serial == mark.serial)?;
        let was_on_top = self.depth.replace(mark.depth - 1) == mark.depth;
        Some((frame.before, was_on_top))
    }

    fn frame(&self, depth: u32) -> Option<Frame> {
        let is_there = 1 <= depth && depth <= self.depth.get();
        // SAFETY: the frames below the depth were written and lie in the allocation.
        is_there.then(|| unsafe { *self.first.get().add(depth as usize - 1) })
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

    fn at(base: u64) -> Before {
        Before { base, ..Before::NOTHING }
    }

    #[test]
    fn a_deep_stack_gives_back_every_frame() {
        let frames = Frames::new();
        let marks: Vec<Mark> = (0..1_000).map(|span| frames.push(at(span))).collect();
        for (span, mark) in marks.into_iter().enumerate().rev() {
            let popped = frames.pop(mark).map(|(before, on_top)| (before.base, on_top));
            assert_eq!(popped, Some((span as u64, true)));
        }
        frames.free_if_empty();
        assert_eq!(frames.room.get(), 0);
    }

    #[test]
    fn a_frame_that_was_popped_with_an_outer_one_is_not_mistaken_for_another_at_its_depth() {
        let frames = Frames::new();
        let outer = frames.push(at(1));
        let inner = frames.push(at(2));
        assert!(frames.pop(outer).is_some_and(|(before, on_top)| before.base == 1 && !on_top));
        let (first, second) = (frames.push(at(3)), frames.push(at(4)));
        assert!(frames.pop(inner).is_none());
        assert!(frames.pop(second).is_some() && frames.pop(first).is_some());
        frames.free_if_empty();
    }
}
