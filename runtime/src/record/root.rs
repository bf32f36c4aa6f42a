//! Requests: begin and finish of their roots.

use super::attributes::RequestRecorder;
use super::carrier::{Carrier, of_remote};
use super::context::State;
use super::inline::room;
use super::live::{self, Block};
use super::local::{self, Local};
use super::side::{self, Owner};
use super::slab::{ROOM, SlabSpan};
use super::write::{INLINE_WORDS, SlotRef};
use super::{Context, Position, recorder};
use crate::chunk::Pool;
use crate::request::{Judged, Live, Outcome, Remote, Repr, TraceState};
use crate::stage::{Site, level};
use stagetrace_wire::recording::layout::slot;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// A request whose trace can be recorded: a struct with `#[derive(Traced)]`.
///
/// [`begin`](Traced::begin) opens the root span, [`finish`](Traced::finish) ends it with the request's attributes, its
/// outcome and the time it spent in each stage. A request that goes out of scope ends its root as well.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a traced request",
    label = "does not carry a trace",
    note = "add `#[derive(Traced)]` to it and mark the field that carries the trace with `#[traced(state)]`"
)]
pub trait Traced: Carrier<Request = Self> {
    /// Where the request is declared: its name, and the keys of its attributes in order.
    #[doc(hidden)]
    fn site(&self) -> &'static Site;

    /// The field that carries the trace.
    fn trace_state(&self) -> &TraceState;

    /// The field that carries the trace.
    fn trace_state_mut(&mut self) -> &mut TraceState;

    /// Hands over the id and the attributes, in the order of the declaration.
    #[doc(hidden)]
    fn record(&self, out: &mut RequestRecorder<'_>);

    /// Begins the request's root span: under `parent`, or under the remote place that came with the request, or as a
    /// new trace. Ids, level and the sampling decision are fixed here.
    ///
    /// Nothing happens, and it is counted, if the request has already begun in this process; nothing happens at all
    /// while there is no recorder. `None` as parent takes what came with the request; [`current`](crate::current)
    /// makes it a child of the current span. Costs about as much as two spans.
    ///
    /// The request's trace may be [forced](TraceState::force) before, or by its sender: then no sampler leaves it out.
    ///
    /// A `tracestate` that came along is exported with the root, up to 512 characters of whole members; spans below it
    /// are exported without.
    fn begin(&mut self, parent: impl Into<Parent>)
    where
        Self: Sized,
    {
        if cfg!(stagetrace_off) {
            return;
        }
        let parent = parent.into();
        let site = self.site();
        let begun = local::with(|local| begin(local, site, parent, self.trace_state_mut()));
        if let Some(begun) = begun {
            local::with(|local| open(local, site, begun, |out| self.record(out)));
        }
    }

    /// Ends the request's root span; the attributes are read anew. `outcome` is an [`Outcome`], or a reference to the
    /// value that the request was answered with.
    ///
    /// The first call wins; later ones, also of clones, are counted.
    fn finish(&self, outcome: impl Into<Judged>)
    where
        Self: Sized,
    {
        if cfg!(stagetrace_off) {
            return;
        }
        if let Repr::Live(live) = self.trace_state().repr() {
            let judged = outcome.into();
            local::with(|local| {
                finish(local, self.site(), live.block(), &judged, |out| self.record(out));
            });
        }
    }
}

impl<T: Traced + ?Sized> Traced for Box<T> {
    fn site(&self) -> &'static Site {
        (**self).site()
    }
    fn trace_state(&self) -> &TraceState {
        (**self).trace_state()
    }
    fn trace_state_mut(&mut self) -> &mut TraceState {
        (**self).trace_state_mut()
    }
    fn record(&self, out: &mut RequestRecorder<'_>) {
        (**self).record(out);
    }
}

/// Under what a request begins.
#[derive(Debug, Default)]
pub enum Parent {
    /// The remote place that came with the request; a new trace if none did.
    #[default]
    Carried,
    /// This place, whatever came with the request. A null one is as [`Parent::Carried`].
    At(Position),
    /// What came as headers.
    Headers(TraceState),
}

impl Parent {
    /// What came as headers: `traceparent`, `tracestate`, `baggage`.
    pub fn from_headers<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Parent
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        Parent::Headers(TraceState::from_headers(headers))
    }
}

impl From<Position> for Parent {
    fn from(position: Position) -> Parent {
        Parent::At(position)
    }
}

impl From<Option<Position>> for Parent {
    fn from(position: Option<Position>) -> Parent {
        position.map_or(Parent::Carried, Parent::At)
    }
}

/// A root that has its block, and is recorded if it has a slot. Small, so that it is handed on in registers.
struct Begun {
    block: &'static Block,
    /// The slot's number plus one, 0 for none.
    slot: u32,
}

/// Where a request begins, and what it is to carry on; its state is null afterwards.
#[inline(never)]
fn brought(parent: Parent, state: &mut TraceState) -> (Option<Position>, Option<Box<Remote>>) {
    let carried = match std::mem::replace(state.repr_mut(), Repr::Null) {
        Repr::Remote(remote) => Some(remote),
        _ => None,
    };
    match parent {
        Parent::At(position) if !position.is_null() => {
            let carried = carried.map(|mut remote| {
                remote.move_to(position.trace);
                remote
            });
            (Some(position), carried)
        }
        Parent::Headers(headers) => match headers.into_remote() {
            Some(mut remote) => {
                if carried.is_some_and(|carried| carried.is_forced()) {
                    remote.force();
                }
                (of_remote(&remote), Some(remote))
            }
            None => (carried.as_deref().and_then(of_remote), carried),
        },
        _ => (carried.as_deref().and_then(of_remote), carried),
    }
}

/// Fixes a request's trace and makes its state live. `None` if it stays as it is.
fn begin(
    local: &Local,
    site: &'static Site,
    parent: Parent,
    state: &mut TraceState,
) -> Option<Begun> {
    if let Repr::Live(_) = state.repr() {
        recorder::count(&recorder::BEGUN_TWICE);
        return None;
    }
    let process = local.base_level().unwrap_or_else(level::of_process);
    if process == 0 {
        return unrecorded(parent, state);
    }
    if local.pool().is_none() {
        return unrecorded(parent, state);
    }
    let (parent, mut carrier) = match (state.repr(), &parent) {
        (Repr::Null, Parent::Carried) => (None, None),
        _ => brought(parent, state),
    };
    let level = carrier.as_ref().and_then(|remote| remote.level());
    let context = match parent {
        Some(position) => Some(Context::at(position)),
        None => recorder::new_trace(local, level.unwrap_or(process)),
    };
    let context = match &mut carrier {
        Some(remote) => context.map(|context| {
            let state = agreed(context.state, remote, level.unwrap_or(process));
            Context { state, ..context }
        }),
        None => context,
    };
    let made = context.and_then(|context| Some((context, live::take(local)?)));
    let Some((context, (block, root))) = made else {
        *state.repr_mut() = carrier.map_or(Repr::Null, Repr::Remote);
        return None;
    };
    let under = Context { state: context.state.below_root(root), ..context };
    let recorded = context.state.level() >= site.level();
    let span = recorded.then(|| SlabSpan::begin(local, site, slot::ROOT, &under)).flatten();
    if recorded && span.is_none() {
        // Dropped and counted: the request stays as it was, so that what it carries still goes on.
        block.fill(Position { state: State::NONE.below_root(root), ..Position::NULL }, None);
        block.unshare();
        block.free(root);
        *state.repr_mut() = carrier.map_or(Repr::Null, Repr::Remote);
        return None;
    }
    let id = span.as_ref().map_or_else(|| local.next_id(), SlabSpan::id);
    let position = Position {
        trace: context.trace,
        span: id,
        state: context.state.of_local().below_root(root),
    };
    if let Some(remote) = carrier.as_deref()
        && let Some(span) = &span
    {
        note_trace_state(local, span.slot(), remote);
    }
    local.is_at(id);
    block.fill(position, carrier);
    if position.level() > level::in_use() {
        level::raise(position.level());
    }
    *state.repr_mut() = Repr::Live(Live(NonNull::from(block).cast()));
    Some(Begun { block, slot: span.map_or(0, |span| span.number() + 1) })
}

/// Nothing is recorded: what the request carries goes on as it came, and so does what came as headers.
fn unrecorded(parent: Parent, state: &mut TraceState) -> Option<Begun> {
    if let Parent::Headers(_) = parent {
        let (_, carrier) = brought(parent, state);
        *state.repr_mut() = carrier.map_or(Repr::Null, Repr::Remote);
    }
    None
}

/// Has a request's trace and what it carries agree on whether it is exported whatever samplers say.
#[cold]
#[inline(never)]
fn agreed(state: State, carrier: &mut Remote, level: u8) -> State {
    match (state.is_forced(), carrier.is_forced()) {
        (false, true) => return state.forced(level),
        (true, false) => carrier.force(),
        _ => {}
    }
    state
}

/// Records the `tracestate` that came with a request, if one did.
#[cold]
#[inline(never)]
fn note_trace_state(local: &Local, root: SlotRef, remote: &Remote) {
    let text = remote.trace_state();
    if !text.is_empty() {
        side::trace_state(local, Owner::of(root), &text);
    }
}

/// Writes the attributes of a root that begins, and lets it be seen.
fn open(
    local: &Local,
    site: &'static Site,
    begun: Begun,
    record: impl FnOnce(&mut RequestRecorder<'_>),
) {
    let (Some(number), Some(pool)) = (begun.slot.checked_sub(1), local.pool()) else { return };
    let span = ManuallyDrop::new(SlabSpan::of(pool, number));
    let opening = Opening { local, block: begun.block, span };
    let slot = opening.span.slot();
    let mut room = room::<ROOM>();
    let mut recorder = RequestRecorder::begin(local, site, slot, &mut room);
    record(&mut recorder);
    let opening = ManuallyDrop::new(opening);
    let (attributes, count) = recorder.finish();
    opening.span.store_inline(attributes, count);
    opening.span.publish();
    // Whoever finished the request meanwhile found no slot: then it ends here.
    if let Some((pool, number)) = begun.block.open(opening.span.pool(), opening.span.number()) {
        SlabSpan::of(pool, number).end(local, &Judged::OK);
    }
}

/// A root whose first attributes are being read: should the caller's code unwind, it ends as that.
struct Opening<'a> {
    local: &'a Local,
    block: &'static Block,
    span: ManuallyDrop<SlabSpan>,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.block.finish();
        self.span.publish();
        let span = SlabSpan::of(self.span.pool(), self.span.number());
        span.end(self.local, &Judged::from(Outcome::Panic));
    }
}

fn finish(
    local: &Local,
    site: &'static Site,
    block: &'static Block,
    judged: &Judged,
    record: impl FnOnce(&mut RequestRecorder<'_>),
) {
    let Some(slot) = block.finish() else {
        return recorder::count(&recorder::FINISHED_TWICE);
    };
    if let Some((pool, number)) = slot {
        let span = SlabSpan::of(pool, number);
        let slot = span.slot();
        // It may have begun as another request's: places are those of the keys that its span names.
        let begun = slot.word(slot::META).load(Ordering::Relaxed) as u32;
        let site = recorder::site_of(begun).unwrap_or(site);
        let mut unfinished = Unfinished { local, opened: Some((pool, number)) };
        let mut room = room::<INLINE_WORDS>();
        let mut recorder = RequestRecorder::end(local, site, slot, &mut room);
        record(&mut recorder);
        let (attributes, count) = recorder.finish();
        unfinished.opened = None;
        span.end_with(local, judged, attributes, count);
    }
}

/// A root whose attributes are being read: should the caller's code unwind, it ends as that.
struct Unfinished<'a> {
    local: &'a Local,
    /// Its slot; `None` once they were.
    opened: Option<(&'static Pool, u32)>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some((pool, number)) = self.opened {
            SlabSpan::of(pool, number).end(self.local, &Judged::from(Outcome::Panic));
        }
    }
}
