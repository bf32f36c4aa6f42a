//! Requests: begin and finish of their roots, and what a live trace state does when it is cloned, dropped, serialised.

use super::context::State;
use super::live::{self, Block};
use super::local::{self, Local};
use super::side::{self, Owner};
use super::slab::{Inline, SlabSpan};
use super::value::Value;
use super::write::{INLINE_WORDS, SlotRef};
use super::{Context, Position, recorder};
use crate::request::{
    Judged, Live, Outcome, Remote, RemoteRef, Repr, TraceState, Traceparent, serialize_null,
    serialize_remote,
};
use crate::stage::{Site, Stage, level};
use serde::{Serialize, Serializer};
use stagetrace_wire::recording::layout::{slab, slot};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

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
    fn begin(&mut self, parent: impl Into<Parent>)
    where
        Self: Sized,
    {
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
        if let Repr::Live(live) = self.trace_state().repr() {
            let judged = outcome.into();
            local::with(|local| {
                finish(local, self.site(), live.block(), &judged, |out| self.record(out));
            });
        }
    }
}

/// What can stand as the second argument of `#[stage]`: something that says where in a trace it is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not carry a trace",
    label = "this is not a traced request",
    note = "derive `Traced` for it, or pass a `TraceState` or a `Position`"
)]
pub trait Carrier {
    /// The request itself, behind references, boxes and options; a stand-in for a bare trace state or position.
    type Request: ?Sized;

    /// Where a stage of it goes: its root or what it came with, null without a trace.
    fn position(&self) -> Position;
}

/// What `#[traced(state)]` may stand on.
#[diagnostic::on_unimplemented(
    message = "the trace state of a request is a `TraceState`, not `{Self}`",
    label = "not a `TraceState`",
    note = "write `#[traced(state)] trace: TraceState`"
)]
pub trait StateField {
    /// The trace state.
    fn shared(&self) -> &TraceState;
    /// The trace state.
    fn exclusive(&mut self) -> &mut TraceState;
}

impl StateField for TraceState {
    fn shared(&self) -> &TraceState {
        self
    }
    fn exclusive(&mut self) -> &mut TraceState {
        self
    }
}

/// A request that takes stages of the set `S`.
#[diagnostic::on_unimplemented(
    message = "the request `{Self}` has no stages of `{S}`",
    label = "a stage of another pipeline",
    note = "add `{S}` to `#[traced(stages = ..)]` of `{Self}`"
)]
pub trait Accepts<S: ?Sized> {}

/// Stands for a request of which only the trace is known; it takes every stage.
#[derive(Debug)]
pub struct AnyRequest(());

impl<S: ?Sized> Accepts<S> for AnyRequest {}

impl Carrier for Position {
    type Request = AnyRequest;

    #[inline(always)]
    fn position(&self) -> Position {
        *self
    }
}

impl Carrier for TraceState {
    type Request = AnyRequest;

    #[inline]
    fn position(&self) -> Position {
        match self.repr() {
            Repr::Live(live) => live.block().position(),
            Repr::Null => Position::NULL,
            Repr::Remote(remote) => of_remote(remote).unwrap_or(Position::NULL),
        }
    }
}

macro_rules! forward {
    ($($pointer:ty = $request:ty),*) => {$(
        impl<T: Carrier + ?Sized> Carrier for $pointer {
            type Request = $request;

            #[inline(always)]
            fn position(&self) -> Position {
                (**self).position()
            }
        }
        impl<S: ?Sized, T: Accepts<S> + ?Sized> Accepts<S> for $pointer {}
    )*};
}

forward! {
    &T = T::Request,
    &mut T = T::Request,
    // A boxed request is itself one: an enum's variants may hold it.
    Box<T> = Box<T::Request>,
    Rc<T> = T::Request,
    Arc<T> = T::Request
}

impl<T: Carrier> Carrier for Option<T> {
    type Request = T::Request;

    #[inline(always)]
    fn position(&self) -> Position {
        self.as_ref().map_or(Position::NULL, Carrier::position)
    }
}

impl<S: ?Sized, T: Accepts<S>> Accepts<S> for Option<T> {}

impl<P: Deref<Target: Carrier>> Carrier for Pin<P> {
    type Request = <P::Target as Carrier>::Request;

    #[inline(always)]
    fn position(&self) -> Position {
        (**self).position()
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

/// Where a place is, with the type of its request, so that the compiler can hold a stage against it.
#[derive(Debug)]
pub struct Located<Q: ?Sized>(Position, PhantomData<fn(&Q)>);

/// Finds out where `place` is.
#[inline(always)]
pub fn locate<R: Carrier<Request = Q> + ?Sized, Q: ?Sized>(place: &R) -> Located<Q> {
    Located(place.position(), PhantomData)
}

impl<Q: ?Sized> Located<Q> {
    /// The position, for a stage that the request accepts.
    #[inline(always)]
    pub fn on<S>(self, _: &S) -> Position
    where
        Q: Accepts<S>,
    {
        self.0
    }

    /// The position, for a stage without a set.
    #[inline(always)]
    pub fn position(self) -> Position {
        self.0
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

/// The place that a remote carrier names, at the level it brings or else the process's.
fn of_remote(remote: &Remote) -> Option<Position> {
    let context = remote.context()?;
    let wanted = || local::with(Local::base_level).unwrap_or_else(level::of_process);
    Some(Position::remote(context, remote.level().unwrap_or_else(wanted)))
}

/// A root that has its block, and is recorded if it has a span.
struct Begun {
    block: &'static Block,
    span: Option<SlabSpan>,
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
    if local.base_level().unwrap_or_else(level::of_process) == 0 {
        // Off: what the request carries goes on as it came.
        return None;
    }
    local.pool()?;
    let carried = match std::mem::replace(state.repr_mut(), Repr::Null) {
        Repr::Remote(remote) => Some(remote),
        _ => None,
    };
    let (parent, carrier) = match parent {
        Parent::At(position) if !position.is_null() => {
            let carried = carried.map(|mut remote| {
                remote.move_to(position.trace);
                remote
            });
            (Some(position), carried)
        }
        Parent::Headers(headers) => match headers.into_remote() {
            Some(remote) => (of_remote(&remote), Some(remote)),
            None => (carried.as_deref().and_then(of_remote), carried),
        },
        _ => (carried.as_deref().and_then(of_remote), carried),
    };
    let level = carrier.as_ref().and_then(|remote| remote.level());
    let context = match parent {
        Some(position) => Some(Context::at(position)),
        None => recorder::new_trace(local, level),
    };
    let made = context.and_then(|context| Some((context, live::take()?)));
    let Some((context, (block, root))) = made else {
        *state.repr_mut() = carrier.map_or(Repr::Null, Repr::Remote);
        return None;
    };
    let before = local.context();
    local.set_context(&Context { state: context.state.below_root(root), ..context });
    let recorded = context.state.level() >= site.level();
    let span = recorded.then(|| SlabSpan::begin(local, site, slot::ROOT)).flatten();
    if recorded && span.is_none() {
        // Dropped and counted: the request stays as it was, so that what it carries still goes on.
        local.set_context(&before);
        block.fill(Position { state: State::NONE.below_root(root), ..Position::NULL }, None);
        block.unshare();
        block.free(root);
        *state.repr_mut() = carrier.map_or(Repr::Null, Repr::Remote);
        return None;
    }
    let id = span.as_ref().map_or_else(|| local.next_id(), SlabSpan::id);
    local.set_context(&before);
    let position = Position {
        trace: context.trace,
        span: id,
        state: context.state.of_local().below_root(root),
    };
    block.fill(position, carrier);
    if position.level() > level::in_use() {
        level::raise(position.level());
    }
    *state.repr_mut() = Repr::Live(Live(NonNull::from(block).cast()));
    Some(Begun { block, span })
}

/// Writes the attributes of a root that begins, and lets it be seen.
fn open(
    local: &Local,
    site: &'static Site,
    begun: Begun,
    record: impl FnOnce(&mut RequestRecorder<'_>),
) {
    let Some(span) = begun.span else { return };
    let opening = Opening { local, block: begun.block, span: ManuallyDrop::new(span) };
    let slot = opening.span.slot();
    // What does not fit is cut: `finish` reads everything again.
    let mut inline = Beginning(Inline::new());
    record(&mut RequestRecorder { local, site, slot, out: &mut inline });
    let opening = ManuallyDrop::new(opening);
    opening.span.store_inline(&inline.0);
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

/// The attributes of a root that begins, as far as they fit into its slot.
struct Beginning(Inline<{ slab::WORDS - slab::ATTRIBUTES }>);

impl Place for Beginning {
    fn add(&mut self, _: &Local, _: SlotRef, _: &str, value: &dyn Value) {
        self.0.fit(value);
    }
    fn count(&self) -> u8 {
        self.0.count()
    }
    fn add_beside(&mut self, _: &Local, _: SlotRef, _: &str, _: &dyn Value) {}
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
        let unfinished = Unfinished { local, span: SlabSpan::of(pool, number) };
        let slot = unfinished.span.slot();
        let mut inline = Inline::<INLINE_WORDS>::new();
        record(&mut RequestRecorder { local, site, slot, out: &mut inline });
        unfinished.disarm().end_with(local, judged, inline.words(), inline.count());
    }
}

/// A root whose attributes are being read: should the caller's code unwind, it ends as that.
struct Unfinished<'a> {
    local: &'a Local,
    span: SlabSpan,
}

impl Unfinished<'_> {
    fn disarm(self) -> SlabSpan {
        let this = ManuallyDrop::new(self);
        SlabSpan::of(this.span.pool(), this.span.number())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let span = SlabSpan::of(self.span.pool(), self.span.number());
        span.end(self.local, &Judged::from(Outcome::Panic));
    }
}

/// Takes a request's id and attributes; generated code calls it in the order of the declaration.
pub struct RequestRecorder<'a> {
    local: &'a Local,
    site: &'static Site,
    slot: SlotRef,
    out: &'a mut dyn Place,
}

/// Where attributes go, whatever its size.
trait Place {
    fn add(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value);
    fn count(&self) -> u8;
    /// An attribute whose key is not the site's next.
    fn add_beside(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value);
}

impl<const ROOM: usize> Place for Inline<ROOM> {
    fn add(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value) {
        Inline::add(self, local, slot, key, value);
    }
    fn count(&self) -> u8 {
        Inline::count(self)
    }
    fn add_beside(&mut self, local: &Local, slot: SlotRef, key: &str, value: &dyn Value) {
        side::attributes(local, Owner::of(slot), &[(key, value)]);
    }
}

/// The key of a request's id.
pub(crate) const REQUEST_ID: &str = "stagetrace.request.id";

impl RequestRecorder<'_> {
    /// The request's id; first, and once.
    pub fn id(&mut self, id: &(impl fmt::Display + ?Sized)) {
        let mut text = ShortText::default();
        let _ = fmt::write(&mut text, format_args!("{id}"));
        self.out.add(self.local, self.slot, REQUEST_ID, &text.as_str());
    }

    /// The next attribute, as its `Display` gives it; 256 bytes are kept.
    pub fn display(&mut self, key: &'static str, value: &(impl fmt::Display + ?Sized)) {
        self.text(key, format_args!("{value}"));
    }

    /// The next attribute, as its `Debug` gives it; 256 bytes are kept.
    pub fn debug(&mut self, key: &'static str, value: &(impl fmt::Debug + ?Sized)) {
        self.text(key, format_args!("{value:?}"));
    }

    fn text(&mut self, key: &'static str, value: fmt::Arguments<'_>) {
        let mut text = ShortText::default();
        let _ = fmt::write(&mut text, value);
        self.attribute(key, text.as_str());
    }

    /// The next attribute.
    pub fn attribute<V: Value + ?Sized>(&mut self, key: &'static str, value: &V) {
        let value = &value;
        if self.out.count() == 0 {
            // A request without id: its place stays empty.
            self.out.add(self.local, self.slot, REQUEST_ID, &None::<&str>);
        }
        let place = usize::from(self.out.count()) - 1;
        if self.site.keys().get(place) == Some(&key) {
            self.out.add(self.local, self.slot, key, value);
        } else {
            self.out.add_beside(self.local, self.slot, key, value);
        }
    }
}

impl fmt::Debug for RequestRecorder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestRecorder").finish_non_exhaustive()
    }
}

/// A short text without allocation: 256 bytes are kept.
struct ShortText {
    bytes: [u8; 256],
    len: usize,
}

impl Default for ShortText {
    fn default() -> Self {
        ShortText { bytes: [0; 256], len: 0 }
    }
}

impl ShortText {
    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let text = crate::request::cut(text, self.bytes.len() - self.len);
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl Live {
    fn block(&self) -> &'static Block {
        // SAFETY: made from a block in `begin`; blocks live as long as the process.
        unsafe { self.0.cast().as_ref() }
    }

    fn root(&self) -> u64 {
        self.block().position().state.root()
    }
}

impl From<Position> for TraceState {
    /// The place as if it had come with a request: for a request that is made here and handed on.
    fn from(position: Position) -> TraceState {
        match position.context() {
            Some(context) => TraceState::from_context(context, Some(position.level().into())),
            None => TraceState::null(),
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block().position().trace_id() {
            Some(id) => write!(f, "live {id}"),
            None => f.write_str("live"),
        }
    }
}

impl Clone for TraceState {
    fn clone(&self) -> TraceState {
        TraceState::from_repr(match self.repr() {
            Repr::Null => Repr::Null,
            Repr::Remote(remote) => Repr::Remote(remote.clone()),
            Repr::Live(live) => {
                live.block().share();
                Repr::Live(Live(live.0))
            }
        })
    }
}

impl Drop for TraceState {
    #[inline]
    fn drop(&mut self) {
        if let Repr::Live(live) = self.repr() {
            let block = live.block();
            if block.unshare() {
                drop_last(block, live.root());
            }
        }
    }
}

/// Ends a root that nobody finished, and gives the block back.
fn drop_last(block: &'static Block, root: u64) {
    if let Some(Some((pool, number))) = block.finish() {
        let outcome = match block.worst() {
            _ if std::thread::panicking() => Outcome::Panic,
            Outcome::Ok => Outcome::Dropped,
            worst => worst,
        };
        local::with(|local| SlabSpan::of(pool, number).end(local, &Judged::from(outcome)));
    }
    block.free(root);
}

impl Serialize for TraceState {
    /// Never fails but where the format does. A live request is written as the current span if that is of its trace,
    /// else as its root; a remote one as it came, or as the current span inside one of its stages.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.repr() {
            Repr::Null => serialize_null(serializer),
            Repr::Remote(remote) => {
                let here = remote.context().and_then(|context| {
                    let trace = context.trace_id.to_u128();
                    here([(trace >> 64) as u64, trace as u64])
                });
                let carrier = remote.carrier();
                match here.and_then(|(position, stage)| Some((position.context()?, stage))) {
                    None => serialize_remote(carrier, serializer),
                    Some((context, stage)) => {
                        let stage = match stage {
                            Some(stage) => stage.name(),
                            None => carrier.stage,
                        };
                        let traceparent = Traceparent::Of(context);
                        serialize_remote(RemoteRef { traceparent, stage, ..carrier }, serializer)
                    }
                }
            }
            Repr::Live(live) => {
                let block = live.block();
                let root = block.position();
                let (position, stage) = here(root.trace).unwrap_or((root, None));
                let Some(context) = position.context() else { return serialize_null(serializer) };
                let carrier = match block.carrier() {
                    Some(remote) => remote.carrier(),
                    None => RemoteRef::of(context),
                };
                let last = recorder::site_of(block.last_stage()).map(Site::stage);
                let stage = match stage.or(last) {
                    Some(stage) => stage.name(),
                    None => carrier.stage,
                };
                let level = carrier.level.unwrap_or(i64::from(root.level()));
                let written = RemoteRef {
                    traceparent: Traceparent::Of(context),
                    level: (context.flags.is_sampled() || carrier.level.is_some()).then_some(level),
                    stage,
                    ..carrier
                };
                serialize_remote(written, serializer)
            }
        }
    }
}

/// The current span and stage of this thread, if it is of that trace.
fn here(trace: [u64; 2]) -> Option<(Position, Option<Stage>)> {
    local::with(|local| {
        let context = local.context();
        // SAFETY: a context's stage is that of a site, or null.
        let stage = unsafe { Stage::from_address(context.stage) };
        (context.trace == trace && context.span != 0).then(|| (context.position(), stage))
    })
}
