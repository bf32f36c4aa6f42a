//! What a thread keeps for tracing: its place in a chunk, what is current, its ids.
//!
//! One `const` thread-local without a destructor: reaching it is an address computation, and it can be used to the very
//! end of a thread. A second one, touched when the thread gets its first chunk, carries the exit hook; after the hook a
//! thread writes through one shared chunk, under a lock.

use super::context::{Context, Position, State};
use super::frames::Frames;
use super::recorder;
use crate::chunk::{DropCause, Hand, Pool, Writer};
use crate::clock::Clock;
use crate::stage::StageInfo;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

thread_local! {
    static LOCAL: Local = const { Local::new() };
    static HOOK: ExitHook = const { ExitHook };
    static LATE: LateHook = const { LateHook };
}

/// This thread's state.
#[inline(always)]
pub(crate) fn here() -> &'static Local {
    let local = LOCAL.with(ptr::from_ref);
    // SAFETY: the state has no destructor, so it is there until the thread is gone, and the reference cannot leave the
    // thread: `Local` is not `Sync`.
    unsafe { &*local }
}

/// Calls `f` with this thread's state.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Local) -> R) -> R {
    f(here())
}

/// A thread's state.
#[derive(Debug)]
pub(crate) struct Local {
    writer: Writer,
    trace: Cell<[u64; 2]>,
    pub(crate) span: Cell<u64>,
    pub(crate) state: Cell<State>,
    pub(crate) stage: Cell<*const StageInfo>,
    pub(crate) slot: Cell<*const AtomicU64>,
    ids: Cell<u64>,
    /// What was current before each guard in force.
    pub(crate) frames: Frames,
    clock: Cell<Clock>,
    phase: Cell<Phase>,
    pool: Cell<Option<&'static Pool>>,
    random: Cell<[u64; 2]>,
    /// The level of spans without a trace, where a capture sets it.
    base_level: Cell<Option<u8>>,
    pub(crate) slots: Hand,
    pub(crate) blocks: Hand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was recorded yet.
    Fresh,
    /// It has a recorder.
    Live,
    /// Its exit hook has run.
    Exited,
    /// It works for the recorder and records nothing.
    Muted,
}

impl Local {
    const fn new() -> Local {
        Local {
            writer: Writer::new(),
            trace: Cell::new([0; 2]),
            span: Cell::new(0),
            state: Cell::new(State::NONE),
            stage: Cell::new(ptr::null()),
            slot: Cell::new(ptr::null()),
            ids: Cell::new(0),
            frames: Frames::new(),
            clock: Cell::new(Clock::Monotonic),
            phase: Cell::new(Phase::Fresh),
            pool: Cell::new(None),
            random: Cell::new([0; 2]),
            base_level: Cell::new(None),
            slots: Hand::new(),
            blocks: Hand::new(),
        }
    }

    /// What is current.
    #[inline(always)]
    pub(crate) fn context(&self) -> Context {
        Context {
            trace: self.trace.get(),
            span: self.span.get(),
            state: self.state.get(),
            stage: self.stage.get(),
            slot: self.slot.get(),
        }
    }

    /// Makes `context` current.
    #[inline(always)]
    pub(crate) fn set_context(&self, context: &Context) {
        self.trace.set(context.trace);
        self.span.set(context.span);
        self.state.set(context.state);
        self.stage.set(context.stage);
        self.slot.set(context.slot);
    }

    /// Makes another trace current, without a span in it.
    #[inline(always)]
    pub(crate) fn set_trace(&self, trace: [u64; 2], state: State) {
        self.trace.set(trace);
        self.state.set(state);
    }

    /// The current trace's id.
    #[inline(always)]
    pub(crate) fn trace(&self) -> [u64; 2] {
        self.trace.get()
    }

    /// Where this thread is.
    pub(crate) fn position(&self) -> Position {
        self.context().position()
    }

    /// The writer of this thread's own chunk.
    #[inline(always)]
    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The level of spans without a trace, if it is not the process's.
    pub(crate) fn base_level(&self) -> Option<u8> {
        self.base_level.get()
    }

    /// A tick of the recorder's clock.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.get().ticks()
    }

    /// A span id that no other span has.
    #[inline(always)]
    pub(crate) fn next_id(&self) -> u64 {
        // A Weyl sequence from a random start: it takes every value once before it repeats.
        let id = self.ids.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.ids.set(id);
        if id == 0 { 0x9E37_79B9_7F4A_7C15 } else { id }
    }

    /// A trace id: two independent random words, not both 0.
    pub(crate) fn next_trace(&self) -> [u64; 2] {
        loop {
            let trace = [self.next_random(), self.next_random()];
            if trace != [0; 2] {
                return trace;
            }
        }
    }

    /// xoroshiro128++ by Blackman and Vigna.
    fn next_random(&self) -> u64 {
        let [a, mut b] = self.random.get();
        let random = a.wrapping_add(b).rotate_left(17).wrapping_add(a);
        b ^= a;
        self.random.set([a.rotate_left(49) ^ b ^ (b << 21), b.rotate_left(28)]);
        random
    }

    /// This thread's recorder, which it finds at its first span; `None` while there is none.
    #[inline]
    pub(crate) fn pool(&self) -> Option<&'static Pool> {
        self.pool.get().or_else(|| self.prepare())
    }

    /// Has this thread, which has recorded nothing, record nothing ever.
    #[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "only exporters need it"))]
    pub(crate) fn mute(&self) {
        self.phase.set(Phase::Muted);
    }

    #[cold]
    fn prepare(&self) -> Option<&'static Pool> {
        if self.phase.get() == Phase::Muted {
            return None;
        }
        let pool = recorder::pool()?;
        let mut seed = [[0; 8]; 3];
        if getrandom::fill(seed.as_flattened_mut()).is_err() {
            // No entropy at all: the address of this thread's state and the time still differ between threads.
            let here = ptr::from_ref(self) as u64;
            seed = [here, crate::clock::unix_ns(), here.rotate_left(32)].map(u64::to_ne_bytes);
        }
        self.adopt(pool, seed.map(u64::from_ne_bytes));
        if HOOK.try_with(|_| ()).is_err() {
            self.phase.set(Phase::Exited);
        }
        Some(pool)
    }

    /// Puts everything that is free back on the shelf if nobody will do so later.
    #[inline]
    pub(crate) fn keep_nothing_after_exit(&self, pool: &Pool) {
        if self.phase.get() == Phase::Exited {
            self.slots.empty(pool, pool.slots());
            super::live::give_back(&self.blocks);
        }
    }

    /// Takes `pool` as this thread's recorder, and `seed` for its ids.
    pub(crate) fn adopt(&self, pool: &'static Pool, seed: [u64; 3]) {
        self.pool.set(Some(pool));
        self.clock.set(pool.clock());
        self.ids.set(seed[0]);
        self.random.set([seed[1], seed[2] | 1]);
        self.phase.set(Phase::Live);
    }

    /// Calls `write` with a writer that has room for `words`, or counts the loss. Everything is written and published
    /// inside the call.
    #[cold]
    pub(crate) fn with_room<R>(
        &self,
        words: usize,
        cause: DropCause,
        write: impl FnOnce(&Writer) -> Option<R>,
    ) -> Option<R> {
        let pool = self.pool()?;
        let shared = (self.phase.get() == Phase::Exited).then(|| {
            // If that is over as well, nothing is left to be done later.
            let _ = LATE.try_with(|_| ());
            SHARED.0.lock().unwrap_or_else(PoisonError::into_inner)
        });
        let writer = shared.as_deref().unwrap_or(&self.writer);
        if writer.has_room(words) || writer.refill(pool, words) {
            write(writer)
        } else {
            pool.count_dropped(cause);
            None
        }
    }

    /// Swaps everything of this thread for `other`'s; a capture does so before and after.
    pub(crate) fn swap(&self, other: &Local) {
        self.writer.swap(&other.writer);
        self.trace.swap(&other.trace);
        self.span.swap(&other.span);
        self.state.swap(&other.state);
        self.stage.swap(&other.stage);
        self.slot.swap(&other.slot);
        self.ids.swap(&other.ids);
        self.frames.settle();
        other.frames.settle();
        self.frames.swap(&other.frames);
        self.clock.swap(&other.clock);
        self.phase.swap(&other.phase);
        self.pool.swap(&other.pool);
        self.random.swap(&other.random);
        self.base_level.swap(&other.base_level);
        self.slots.swap(&other.slots);
    }

    /// A state for a capture, which swaps it in.
    pub(crate) fn for_capture(pool: &'static Pool) -> Local {
        let local = Local::new();
        local.adopt(pool, [0, 1, 2]);
        local.base_level.set(Some(crate::stage::level::HIGHEST));
        local
    }

    /// Leaves the recorder to whom it belongs: after a fork, to the parent.
    #[cfg(unix)]
    pub(crate) fn forget_recorder(&self) {
        self.writer.forget();
        self.pool.set(None);
    }

    /// Hands over the chunk and gives back what is kept.
    pub(crate) fn close(&self) {
        if let Some(pool) = self.pool.get() {
            self.writer.close(pool);
            self.slots.empty(pool, pool.slots());
        }
        super::live::give_back(&self.blocks);
        self.frames.free_if_empty();
    }
}

/// Runs when the thread ends, once it has recorded something.
struct ExitHook;

impl Drop for ExitHook {
    fn drop(&mut self) {
        with(|local| {
            local.close();
            local.phase.set(Phase::Exited);
        });
    }
}

/// Runs after a destructor that traced behind the exit hook: it is registered only then.
struct LateHook;

impl Drop for LateHook {
    fn drop(&mut self) {
        with(|local| local.frames.free_if_empty());
    }
}

/// The chunk of all threads whose exit hook has run.
static SHARED: Shared = Shared(Mutex::new(Writer::new()));

struct Shared(Mutex<Writer>);

// SAFETY: a writer holds addresses of words that are atomic and stay for the life of the process; the lock orders them.
unsafe impl Sync for Shared {}
