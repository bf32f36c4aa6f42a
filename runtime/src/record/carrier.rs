//! What a stage can be of: anything that says where in a trace it is.

use super::Position;
use super::local::{self, Local};
use crate::request::{Remote, Repr, TraceState};
use crate::stage::level;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

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

    #[inline(always)]
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

/// The place that a remote carrier names, at the level it brings or else the process's.
#[cold]
#[inline(never)]
pub(crate) fn of_remote(remote: &Remote) -> Option<Position> {
    let context = remote.context()?;
    let wanted = || local::with(Local::base_level).unwrap_or_else(level::of_process);
    let level = remote.level().unwrap_or_else(wanted);
    let position = Position::remote(context, level);
    Some(match remote.is_forced() {
        true => Position { state: position.state.forced(level), ..position },
        false => position,
    })
}
