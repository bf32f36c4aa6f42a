//! The blocks behind live requests: 64 bytes each, counted by their handles, pooled for the life of the process.
//!
//! A block outlives its root: stages may attach to a request that has finished, and serialising it still names its
//! trace. Its number stands in the slots of all spans below the root, which is how the collector adds up a breakdown.

use super::Position;
use super::context::State;
use super::local::{self, Local};
use super::rights::{Ending, Handles, Opened};
use crate::chunk::{Hand, Links, Pool, Shelf, stock};
use crate::request::{Outcome, Remote};
use crate::stage::Site;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Mutex, Ordering};
use stagetrace_wire::recording::layout::slot;
use std::ptr::{self, NonNull};
use std::sync::PoisonError;

/// Blocks that are allocated together.
const GROUP: usize = 512;
/// Groups at most: a root's number has 24 bits.
const GROUPS: usize = (1 << 24) / GROUP - 1;

static TABLE: [AtomicPtr<Block>; GROUPS] = [const { AtomicPtr::new(ptr::null_mut()) }; GROUPS];
static SHELF: Shelf = Shelf::new(AtomicU64::new(0));
/// How many groups there are.
static GROWN: Mutex<usize> = Mutex::new(0);

/// What a live request's handles share. Fixed at begin, but for the last three.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Block {
    trace: [AtomicU64; 2],
    /// The root's span id; the link while the block is free.
    span: AtomicU64,
    state: AtomicU64,
    carrier: AtomicPtr<Remote>,
    ending: Ending<Pool>,
    handles: Handles,
    last_stage: AtomicU32,
}

const _: () = assert!(size_of::<Block>() == 64);

struct Blocks;

impl Links for Blocks {
    fn link(&self, thing: u32) -> &AtomicU64 {
        let block = at(thing).expect("a number on the shelf is that of a block");
        &block.span
    }
}

fn at(thing: u32) -> Option<&'static Block> {
    let group = TABLE.get(thing as usize / GROUP)?.load(Ordering::Acquire);
    // SAFETY: a group has `GROUP` blocks and is never freed.
    (!group.is_null()).then(|| unsafe { &*group.add(thing as usize % GROUP) })
}

/// The block of a root, `None` for 0.
pub(crate) fn of_root(root: u64) -> Option<&'static Block> {
    at(thing_of(root)?)
}

/// The number on the shelf of a root's block.
fn thing_of(root: u64) -> Option<u32> {
    ((root & ((1 << slot::ROOT_BITS) - 1)) as u32).checked_sub(1)
}

/// Takes a block for a request, and names its root. The caller fills it before anyone else sees it.
#[inline]
pub(crate) fn take(local: &Local) -> Option<(&'static Block, u64)> {
    let thing = local.blocks.take(&Blocks, &SHELF).or_else(|| {
        grow();
        local.blocks.take(&Blocks, &SHELF)
    })?;
    let block = at(thing)?;
    let last = block.state().root() >> slot::ROOT_GENERATION_SHIFT;
    let generation = (last + 1) & slot::ROOT_GENERATIONS;
    Some((block, u64::from(thing + 1) | generation << slot::ROOT_GENERATION_SHIFT))
}

#[cold]
fn grow() {
    let mut grown = GROWN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(group) = TABLE.get(*grown) else { return };
    let blocks: Box<[Block]> = (0..GROUP).map(|_| Block::empty()).collect();
    group.store(Box::leak(blocks).as_mut_ptr(), Ordering::Release);
    let first = (*grown * GROUP) as u32;
    *grown += 1;
    stock(&Blocks, &SHELF, first..first + GROUP as u32);
}

/// Has nobody else allocate blocks until the value is dropped.
#[cfg(unix)]
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(GROWN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Forgets the free blocks that all threads share: in the child of a fork their links may be of another moment than their
/// heads, since other threads went on while the memory was copied.
#[cfg(unix)]
pub(crate) fn forget_free() {
    SHELF.forget();
}

/// Puts a thread's free blocks back on the shelf.
pub(crate) fn give_back(hand: &Hand) {
    hand.empty(&Blocks, &SHELF);
}

/// The greatest level of all live requests, and how many there are.
pub(crate) fn survey() -> (u8, usize) {
    let mut found = (0, 0);
    for group in &TABLE {
        let first = group.load(Ordering::Acquire);
        if first.is_null() {
            break;
        }
        // SAFETY: a group has `GROUP` blocks and is never freed.
        let blocks = unsafe { std::slice::from_raw_parts(first, GROUP) };
        for block in blocks.iter().filter(|block| block.handles.any()) {
            found.0 = block.state().level().max(found.0);
            found.1 += 1;
        }
    }
    found
}

/// Remembers the last first-level stage of the request at `position`.
#[inline]
pub(crate) fn note_stage(position: &Position, site: &'static Site) {
    if position.state.root() != 0
        && let Some(block) = of_root(position.state.root())
        && block.is_of(position.state.root(), position.trace)
    {
        let number = match site.number() {
            0 => super::register::register(site),
            number => number,
        };
        block.last_stage.store(number, Ordering::Relaxed);
    }
}

/// Remembers the worst outcome of the stages of a root.
#[cold]
pub(crate) fn note_outcome(root: u64, trace: [u64; 2], outcome: Outcome) {
    if outcome.is_failure()
        && let Some(block) = of_root(root)
        && block.is_of(root, trace)
    {
        block.ending.note(outcome as u8);
    }
}

impl Block {
    fn empty() -> Block {
        Block {
            trace: [AtomicU64::new(0), AtomicU64::new(0)],
            span: AtomicU64::new(0),
            state: AtomicU64::new(0),
            carrier: AtomicPtr::new(ptr::null_mut()),
            ending: Ending::none(),
            handles: Handles::none(),
            last_stage: AtomicU32::new(0),
        }
    }

    /// Fills a block that was just taken; the caller holds the one handle.
    #[inline]
    pub(crate) fn fill(&self, position: Position, carrier: Option<Box<Remote>>) {
        let store = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        store(&self.trace[0], position.trace[0]);
        store(&self.trace[1], position.trace[1]);
        store(&self.span, position.span);
        store(&self.state, position.state.to_word());
        let carrier = carrier.map_or(ptr::null_mut(), Box::into_raw);
        self.carrier.store(carrier, Ordering::Relaxed);
        self.last_stage.store(0, Ordering::Relaxed);
        self.ending.reset();
        self.handles.first();
    }

    /// Where the root is.
    #[inline(always)]
    pub(crate) fn position(&self) -> Position {
        Position {
            trace: [0, 1].map(|half| self.trace[half].load(Ordering::Relaxed)),
            span: self.span.load(Ordering::Relaxed),
            state: self.state(),
        }
    }

    /// Whether it is still that of this root: a position may outlive its request, and the number be another's by now, of
    /// the same trace perhaps.
    #[inline]
    fn is_of(&self, root: u64, trace: [u64; 2]) -> bool {
        self.state().root() == root
            && trace == [0, 1].map(|half| self.trace[half].load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn state(&self) -> State {
        State::from_word(self.state.load(Ordering::Relaxed))
    }

    /// What the request brought with it.
    pub(crate) fn carrier(&self) -> Option<&Remote> {
        // SAFETY: set at begin from a box and freed with the last handle, of which the caller has one.
        unsafe { self.carrier.load(Ordering::Relaxed).as_ref() }
    }

    /// Number of the site of the last first-level stage, 0 for none.
    pub(crate) fn last_stage(&self) -> u32 {
        self.last_stage.load(Ordering::Relaxed)
    }

    /// The worst outcome that its stages reported.
    pub(crate) fn worst(&self) -> Outcome {
        Outcome::from_u8(self.ending.worst())
    }

    /// Says where the root's slot is; the caller has a handle to itself. Gives it back if the root was finished before: then
    /// the caller ends it.
    #[inline]
    pub(crate) fn open(&self, pool: &'static Pool, number: u32) -> Option<Opened<Pool>> {
        self.ending.open(&self.handles, pool, number)
    }

    /// The root's slot while it is open.
    pub(crate) fn slot(&self) -> Option<Opened<Pool>> {
        self.ending.slot()
    }

    /// Takes the right to end the root, which one caller gets: its slot, or `None` within if it is not recorded.
    #[inline]
    pub(crate) fn finish(&self) -> Option<Option<Opened<Pool>>> {
        self.ending.finish()
    }

    /// Adds a handle.
    pub(crate) fn share(&self) {
        self.handles.share();
    }

    /// Gives back a handle. Whether it was the last; then the caller ends the root and calls [`Block::free`].
    #[inline]
    pub(crate) fn unshare(&self) -> bool {
        self.handles.unshare()
    }

    /// Gives the block back. Nobody has a handle any more.
    #[inline]
    pub(crate) fn free(&self, root: u64) {
        let carrier = self.carrier.load(Ordering::Relaxed);
        if let Some(carrier) = NonNull::new(carrier) {
            self.carrier.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: came from a box in `fill`, and the block is the caller's alone, who forgets it.
            drop(unsafe { Box::from_raw(carrier.as_ptr()) });
        }
        if let Some(thing) = thing_of(root) {
            local::with(|local| {
                local.blocks.give(&Blocks, &SHELF, thing);
                if let Some(pool) = local.pool() {
                    local.keep_nothing_after_exit(pool);
                }
            });
        }
    }
}
