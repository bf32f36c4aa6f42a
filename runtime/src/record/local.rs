//! What a thread keeps for tracing: its place in a chunk, what is current, its ids.
//!
//! One `const` thread-local without a destructor: reaching it is an address computation, and it can be used to the very
//! end of a thread. A second one, touched when the thread gets its first chunk, carries the exit hook; after the hook a
//! thread writes into the chunks that all threads share.

mod ids;
mod life;

use super::context::{Context, Position, State};
use super::frames::Frames;
use super::recorder;
use crate::chunk::{DropCause, Hand, Pool, Writer};
use crate::clock::{self, Clock};
use crate::stage::StageInfo;
use life::{ExitHook, LateHook};
use stagetrace_wire::recording::layout::slot;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

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
    pub(crate) state: Cell<State>,
    /// The slot of the current span while that is sure to be there, else [`Local::base`], or [`NOWHERE`] as long as nothing
    /// was current. Its word `SPAN` is the current span's id.
    pub(crate) slot: Cell<*const AtomicU64>,
    ids: Cell<u64>,
    /// The span of another thread's, perhaps, that was last taken up here.
    arrived: Cell<u64>,
    /// Stands for the slot of a span that is only known by its id.
    base: [AtomicU64; slot::WORDS],
    /// The enclosing stage of `stage_of`, null if unknown. In other slots it is that of their site.
    stage: Cell<*const StageInfo>,
    stage_of: Cell<*const AtomicU64>,
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

/// What was current, as it stood in a thread's state. A null slot stands for the thread's own one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) trace: [u64; 2],
    pub(crate) state: State,
    pub(crate) slot: *const AtomicU64,
    /// The span of the thread's own slot.
    pub(crate) base: u64,
    pub(crate) stage: *const StageInfo,
    pub(crate) stage_of: *const AtomicU64,
}

impl Before {
    /// Nothing.
    #[cfg(test)]
    pub(crate) const NOTHING: Before = Before {
        trace: [0; 2],
        state: State::NONE,
        slot: ptr::null(),
        base: 0,
        stage: ptr::null(),
        stage_of: ptr::null(),
    };
}

/// The slot of no span, for threads in which nothing was current yet.
static NOWHERE: [AtomicU64; slot::WORDS] = [const { AtomicU64::new(0) }; slot::WORDS];
/// Stands where a site's number does if there is none, but the stage is known.
const NO_SITE: u64 = u32::MAX as u64;
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
            state: Cell::new(State::NONE),
            slot: Cell::new(NOWHERE.as_ptr()),
            ids: Cell::new(0),
            arrived: Cell::new(0),
            base: [const { AtomicU64::new(0) }; slot::WORDS],
            stage: Cell::new(ptr::null()),
            stage_of: Cell::new(NOWHERE.as_ptr()),
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
    pub(crate) fn context(&self) -> Context {
        Context {
            trace: self.trace.get(),
            span: self.span(),
            state: self.state.get(),
            stage: self.stage(),
            slot: self.known_slot(),
        }
    }

    /// The current span's id, 0 for none.
    #[inline(always)]
    pub(crate) fn span(&self) -> u64 {
        // SAFETY: it is never null, and the words of slots stay for the life of the process or of this thread.
        unsafe { &*self.slot.get().add(slot::SPAN) }.load(Ordering::Relaxed)
    }

    /// The current span's slot, null if it is not sure to be there.
    pub(crate) fn known_slot(&self) -> *const AtomicU64 {
        let slot = self.slot.get();
        if self.is_own(slot) { ptr::null() } else { slot }
    }

    /// Whether that is no span's slot, but stands for one.
    fn is_own(&self, slot: *const AtomicU64) -> bool {
        ptr::eq(slot, self.base.as_ptr()) || ptr::eq(slot, NOWHERE.as_ptr())
    }

    /// Number of the current span's site, 0 if unknown.
    #[inline(always)]
    pub(crate) fn current_site(&self) -> u32 {
        // SAFETY: as in `span`; the thread's own slot has no site.
        unsafe { &*self.slot.get().add(slot::META) }.load(Ordering::Relaxed) as u32
    }

    /// Whether the current span's site says what stage encloses it.
    pub(crate) fn is_in_stage(&self) -> bool {
        !ptr::eq(self.slot.get(), self.stage_of.get())
    }

    /// The nearest enclosing stage, null if unknown.
    pub(crate) fn stage(&self) -> *const StageInfo {
        let slot = self.slot.get();
        if ptr::eq(slot, self.stage_of.get()) {
            return self.stage.get();
        }
        recorder::site_of(self.current_site()).map_or(ptr::null(), |site| site.stage().address())
    }

    /// Makes `context` current.
    pub(crate) fn set_context(&self, context: &Context) {
        self.set_trace(context.trace, context.state);
        let slot = context.slot;
        // SAFETY: null, or a slot, whose words are there as long as the process; but it may be that of another span by now.
        let is_its = !slot.is_null()
            && unsafe { &*slot.add(slot::SPAN) }.load(Ordering::Relaxed) == context.span;
        let slot = if is_its {
            slot
        } else {
            self.base[slot::SPAN].store(context.span, Ordering::Relaxed);
            self.base.as_ptr()
        };
        self.slot.set(slot);
        self.set_stage(context.stage, slot);
    }

    /// Says which stage encloses the span of a slot.
    fn set_stage(&self, stage: *const StageInfo, of: *const AtomicU64) {
        self.stage.set(stage);
        self.stage_of.set(of);
        let is_known = !stage.is_null() && ptr::eq(of, self.base.as_ptr());
        self.base[slot::META].store(if is_known { NO_SITE } else { 0 }, Ordering::Relaxed);
    }

    /// All of what is current, as it stands here.
    #[inline]
    pub(crate) fn save(&self) -> Before {
        let own = |slot| if self.is_own(slot) { ptr::null() } else { slot };
        Before {
            trace: self.trace.get(),
            state: self.state.get(),
            slot: own(self.slot.get()),
            base: self.base[slot::SPAN].load(Ordering::Relaxed),
            stage: self.stage.get(),
            stage_of: own(self.stage_of.get()),
        }
    }

    /// Puts back what was current.
    #[inline]
    pub(crate) fn restore(&self, before: &Before) {
        let own = |slot: *const AtomicU64| if slot.is_null() { self.base.as_ptr() } else { slot };
        self.set_trace(before.trace, before.state);
        self.slot.set(own(before.slot));
        self.base[slot::SPAN].store(before.base, Ordering::Relaxed);
        self.set_stage(before.stage, own(before.stage_of));
    }

    /// Makes the span of a slot that has just begun here current, in the current trace.
    #[inline(always)]
    pub(crate) fn set_slot(&self, slot: *const AtomicU64) {
        self.slot.set(slot);
    }

    /// Makes another trace current, but no span of it.
    #[inline(always)]
    pub(crate) fn set_trace(&self, trace: [u64; 2], state: State) {
        self.trace.set(trace);
        self.state.set(state);
    }

    /// Where the current trace's id stands, to be copied from.
    #[inline(always)]
    pub(crate) fn trace_at(&self) -> *const [u64; 2] {
        self.trace.as_ptr()
    }

    /// The current trace's id.
    #[inline(always)]
    pub(crate) fn trace(&self) -> [u64; 2] {
        self.trace.get()
    }

    /// Where this thread is.
    pub(crate) fn position(&self) -> Position {
        Position { trace: self.trace.get(), span: self.span(), state: self.state.get() }
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

    /// Has every later tick of this thread be later than the begin of `span`, which may be another thread's: reading the
    /// counter does not wait for loads by itself. Once for each span that is taken up after another.
    #[inline(always)]
    pub(crate) fn arrive_at(&self, span: u64) {
        if self.arrived.get() != span {
            self.arrived.set(span);
            clock::arrive();
        }
    }

    /// Says that this thread has begun `span` itself, so that it need not arrive at it.
    #[inline]
    pub(crate) fn is_at(&self, span: u64) {
        self.arrived.set(span);
    }

    /// This thread's recorder, which it finds at its first span; `None` while there is none.
    #[inline]
    pub(crate) fn pool(&self) -> Option<&'static Pool> {
        self.pool.get().or_else(|| self.prepare())
    }

    /// Has this thread, which has recorded nothing, record nothing ever.
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
            seed = [here, clock::unix_ns(), here.rotate_left(32)].map(u64::to_ne_bytes);
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
        self.ids.set(seed[0] | 1);
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
        let written = self.if_room(pool, words, write);
        if written.is_none() {
            pool.count_dropped(cause);
        }
        written
    }

    /// The same, for a caller to whom it is no loss if there is no room.
    #[cold]
    pub(crate) fn if_room<R>(
        &self,
        pool: &'static Pool,
        words: usize,
        write: impl FnOnce(&Writer) -> Option<R>,
    ) -> Option<R> {
        if self.phase.get() == Phase::Exited {
            // If that is over as well, nothing is left to be done later.
            let _ = LATE.try_with(|_| ());
        } else if self.writer.has_room(words) || self.writer.refill(pool, words) {
            return write(&self.writer);
        }
        pool.shared().borrow(pool, words).and_then(|shared| write(shared.writer()))
    }
}
