//! Where a thread or a request stands: the current trace, span and stage.

use crate::stage::StageInfo;
use stagetrace_wire::context::{TraceContext, TraceFlags};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::slot;
use std::fmt;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// A place in a trace: trace id, span id, W3C flags and level. `Copy` and 32 bytes, so it can ride in any record.
///
/// Whoever holds it can attach stages under it (`#[stage(X, position)]`), inject it into headers, or link to it. The
/// null position, the default, stands for "no trace".
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Position {
    pub(crate) trace: [u64; 2],
    pub(crate) span: u64,
    pub(crate) state: State,
}

const _: () = assert!(size_of::<Position>() == 32);

impl Position {
    /// No trace.
    pub const NULL: Position = Position { trace: [0; 2], span: 0, state: State::NONE };

    /// The position of a span of another process, with the level at which to record below it (0 to 3) if the trace is
    /// sampled, which the configured sampler says. Its flags say from here on what the sampler has said.
    pub fn remote(context: TraceContext, level: u8) -> Position {
        let trace = context.trace_id.to_u128();
        let trace = [(trace >> 64) as u64, trace as u64];
        let state = super::recorder::decide(trace, Some(context.flags.is_sampled()), level);
        Position {
            trace,
            span: context.span_id.to_u64(),
            state: state.with_random(context.flags.is_random()).of_remote(),
        }
    }

    /// Whether it stands for no trace.
    #[inline(always)]
    pub fn is_null(&self) -> bool {
        self.trace[0] | self.trace[1] == 0
    }

    /// The trace's id, `None` if null.
    pub fn trace_id(&self) -> Option<TraceId> {
        TraceId::from_u128(u128::from(self.trace[0]) << 64 | u128::from(self.trace[1]))
    }

    /// The span's id, `None` if null.
    pub fn span_id(&self) -> Option<SpanId> {
        SpanId::from_u64(self.span)
    }

    /// What W3C headers carry of it, `None` if null.
    pub fn context(&self) -> Option<TraceContext> {
        let flags = TraceFlags::from_bits(self.state.flags());
        Some(TraceContext { trace_id: self.trace_id()?, span_id: self.span_id()?, flags })
    }

    /// The level up to which stages are recorded below it. 0 if the trace is not sampled, unless it is
    /// recorded to be measured.
    pub fn level(&self) -> u8 {
        self.state.level()
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.context() {
            Some(context) => {
                let mut text = [0; TraceContext::TEXT_LEN];
                write!(f, "Position({} level {})", context.encode(&mut text), self.level())
            }
            None => f.write_str("Position(null)"),
        }
    }
}

/// The small facts of a position, in one word, which is the word `LIFE` of a slot below it: the root's number and
/// generation, the level, the W3C flags `sampled` and `random`, whether the span is of this process, whether there is a
/// trace, and whether that is recorded only to be measured, or exported whatever samplers say.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State(u64);

impl Default for State {
    fn default() -> State {
        State::NONE
    }
}

impl State {
    /// No trace: as one of another process that is not sampled.
    pub(crate) const NONE: State = State(slot::REMOTE | 3 << slot::LEVEL_SHIFT);

    /// The state of a trace at this level (0 to 3), with these W3C flags, without a root.
    pub(crate) fn new(level: u8, flags: u8) -> State {
        let known = TraceFlags::SAMPLED.bits() | TraceFlags::RANDOM.bits();
        State(
            u64::from(3 - level.min(3)) << slot::LEVEL_SHIFT
                | u64::from(flags & known) << slot::TRACE_FLAGS_SHIFT
                | slot::ACTIVE,
        )
    }

    /// The same, of a trace that is not sampled but recorded to be measured.
    pub(crate) fn measured(self) -> State {
        State(self.0 | slot::UNSAMPLED)
    }

    /// The same, of a trace that is exported whatever samplers say, recorded at this level.
    pub(crate) fn forced(self, level: u8) -> State {
        const UNDECIDED: u64 = !(3 << slot::LEVEL_SHIFT | slot::UNSAMPLED);
        State(self.0 & UNDECIDED | State::new(level, TraceFlags::SAMPLED.bits()).0 | slot::FORCED)
    }

    /// Whether the trace is exported whatever samplers say.
    pub(crate) fn is_forced(self) -> bool {
        self.0 & slot::FORCED != 0
    }

    /// The same, of a trace whose id is random or not.
    pub(crate) fn with_random(self, random: bool) -> State {
        let flag = u64::from(TraceFlags::RANDOM.bits()) << slot::TRACE_FLAGS_SHIFT;
        State(if random { self.0 | flag } else { self.0 & !flag })
    }

    /// The state as a word, and back.
    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    /// The state of a word that [`State::to_word`] gave.
    pub(crate) fn from_word(word: u64) -> State {
        State(word)
    }

    /// The same, below this request root: number and generation as they stand in a slot's word `LIFE`.
    pub(crate) fn below_root(self, root: u64) -> State {
        State(self.0 & !slot::ROOT_MASK | root & slot::ROOT_MASK)
    }

    /// The same, of a span of another process.
    pub(crate) fn of_remote(self) -> State {
        State(self.0 | slot::REMOTE)
    }

    /// The same, of a span of this process.
    #[inline(always)]
    pub(crate) fn of_local(self) -> State {
        State(self.0 & !slot::REMOTE)
    }

    /// Whether there is a trace, and its span belongs to another process.
    #[inline(always)]
    pub(crate) fn is_remote(self) -> bool {
        self.0 & (slot::REMOTE | slot::ACTIVE) == slot::REMOTE | slot::ACTIVE
    }

    /// Whether there is a trace, and its span belongs to this process.
    #[inline(always)]
    pub(crate) fn is_local(self) -> bool {
        self.0 & slot::REMOTE == 0
    }

    /// Whether there is a trace.
    #[inline(always)]
    pub(crate) fn is_active(self) -> bool {
        self.0 & slot::ACTIVE != 0
    }

    /// Whether a stage of this level is recorded below it, and nothing but the span changes: one comparison, since the bit
    /// for "of another process" stands above those of the level.
    #[inline(always)]
    pub(crate) fn takes(self, level: u8) -> bool {
        (self.0 as u32) < (4 - u32::from(level)) << slot::LEVEL_SHIFT
    }

    /// The level; 0 without a trace or if it is not sampled.
    #[inline(always)]
    pub(crate) fn level(self) -> u8 {
        3 - ((self.0 >> slot::LEVEL_SHIFT) as u8 & 3)
    }

    /// Whether the trace is sampled.
    pub(crate) fn is_sampled(self) -> bool {
        self.flags() & TraceFlags::SAMPLED.bits() != 0
    }

    /// Whether what is of this place must not go under what is current in the same trace, since that is not sampled and this
    /// is: a request may be forced, or have been sent by somebody who decided otherwise.
    #[inline]
    pub(crate) fn outranks(self, current: State) -> bool {
        self.is_sampled() && !current.is_sampled()
    }

    /// The W3C flags.
    pub(crate) fn flags(self) -> u8 {
        slot::trace_flags(self.0)
    }

    /// The request root's number and generation, 0 for none, as they stand in a slot's word `LIFE`.
    #[inline(always)]
    pub(crate) fn root(self) -> u64 {
        self.0 & slot::ROOT_MASK
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {} flags {:02x} root {}", self.level(), self.flags(), self.root())
    }
}

/// What is current on a thread, whole: saved and put back round a guard or a poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) trace: [u64; 2],
    pub(crate) span: u64,
    pub(crate) state: State,
    /// The nearest enclosing stage, null if unknown.
    pub(crate) stage: *const StageInfo,
    /// The current span's slot while it is sure to be there, else null.
    pub(crate) slot: *const AtomicU64,
}

impl Context {
    /// Nothing is current.
    pub(crate) const NONE: Context = Context {
        trace: [0; 2],
        span: 0,
        state: State::NONE,
        stage: ptr::null(),
        slot: ptr::null(),
    };

    /// A position as context: its span is current, its stage and slot are not known.
    pub(crate) fn at(position: Position) -> Context {
        let Position { trace, span, state } = position;
        Context { trace, span, state, stage: ptr::null(), slot: ptr::null() }
    }

    /// Where this context is.
    pub(crate) fn position(&self) -> Position {
        Position { trace: self.trace, span: self.span, state: self.state }
    }
}

// SAFETY: the stage is a `static`; the slot is only used by whoever holds the span that keeps it.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
