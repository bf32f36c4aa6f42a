//! What `Traced` works on: every shape of struct, and enums of requests.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![forbid(unsafe_code)]

use std::{borrow::Cow, fmt, marker::PhantomData, time::Duration};

use stagetrace::{Stages, TraceState, Traced, Value, stage};

/// One pipeline.
#[derive(Stages)]
pub enum Prefill {
    /// Only.
    Forward,
}

/// Another pipeline.
#[derive(Stages)]
pub enum Decode {
    /// Only.
    Forward,
}

/// Everything that a field can say.
#[derive(Traced, Clone, Debug, Default)]
#[traced(name = "POST /generate", stages = [Prefill, Decode], kind = server)]
pub struct Everything {
    /// Id, recorded as an attribute too.
    #[traced(id, attr = "request.id")]
    pub id: String,
    /// A key that is a constant.
    #[traced(attr = keys::STEPS)]
    pub steps: Option<u32>,
    /// By `Display`.
    #[traced(attr = "shown", display)]
    pub shown: Cow<'static, str>,
    /// By `Debug`.
    #[traced(attr = "debugged", debug)]
    pub debugged: Vec<(u32, String)>,
    /// Its length.
    #[traced(attr = "prompt.length", len)]
    pub prompt: String,
    /// Through a function.
    #[traced(attr = "seconds", with = Duration::as_secs_f64)]
    pub time: Duration,
    /// Never recorded, of a type that could not be.
    pub secret: PhantomData<fn(&str)>,
    /// The trace.
    #[traced(state)]
    pub trace: TraceState,
}

/// Keys as constants.
pub mod keys {
    /// How many steps.
    pub const STEPS: &str = "diffusion.steps";
}

/// Only a trace.
#[derive(Traced, Default)]
pub struct OnlyState {
    #[traced(state)]
    trace: TraceState,
}

/// A tuple struct.
#[derive(Traced, Default)]
#[traced(stages = Prefill)]
pub struct Tuple(#[traced(id)] u64, #[traced(attr = "n")] u32, #[traced(state)] TraceState);

/// Bounds are inferred for the recorded fields' types, and for no other parameter.
#[derive(Traced)]
#[traced(stages = Prefill)]
pub struct Generic<'a, T, U: ?Sized, V, const N: usize = 3>
where
    V: Default,
{
    #[traced(id)]
    id: &'a str,
    #[traced(attr = "list")]
    list: Vec<T>,
    #[traced(attr = "shown", display)]
    shown: Inner<V>,
    #[traced(attr = "count", len)]
    sized: [u8; N],
    #[traced(attr = "other", with = Inner::count)]
    other: Inner<T>,
    unrecorded: PhantomData<U>,
    #[traced(state)]
    trace: TraceState,
}

/// A field's type.
#[derive(Default)]
pub struct Inner<V>(V);

impl<V> Inner<V> {
    const fn count(&self) -> u32 {
        let Self(_) = self;
        3
    }
}

impl<V: fmt::Display> fmt::Display for Inner<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An associated type is recorded.
#[derive(Traced)]
pub struct Associated<I: Iterator> {
    #[traced(attr = "item")]
    item: Option<I::Item>,
    #[traced(state)]
    trace: TraceState,
}

/// The way out, where inference is not enough.
#[derive(Traced)]
#[traced(bound = "T: fmt::Display, T: Clone")]
pub struct Bound<T> {
    #[traced(id)]
    id: T,
    #[traced(state)]
    trace: TraceState,
}

/// Any of these.
#[derive(Traced)]
pub enum Either<T> {
    /// A tuple variant.
    Everything(Box<Everything>),
    /// A named field.
    Tuple {
        /// The request.
        request: Tuple,
    },
    /// A parameter.
    Other(T),
}

/// With sets of its own.
#[derive(Traced)]
#[traced(stages = Decode)]
pub enum Closed {
    /// The only one.
    One(Everything),
}

#[stage(Prefill::Forward, request)]
fn everything(request: &Everything) -> usize {
    request.prompt.len()
}

#[stage(Decode::Forward, request)]
fn only_state(request: &OnlyState) -> bool {
    request.trace.is_null()
}

#[stage(Prefill::Forward, request)]
fn tuple(request: &Tuple) -> u64 {
    request.0 + u64::from(request.1)
}

#[stage(Prefill::Forward, request)]
fn generic<T: Value, U: ?Sized, V: Default + fmt::Display>(
    request: &Generic<'_, T, U, V>,
) -> usize {
    request.list.len() + request.id.len() + request.sized.len()
}

#[stage(Prefill::Forward, request)]
fn either<T: Traced + stagetrace::Accepts<Prefill>>(request: &Either<T>) -> u32 {
    match request {
        Either::Everything(_) => 0,
        Either::Tuple { .. } => 1,
        Either::Other(_) => 2,
    }
}

#[stage(Decode::Forward, request)]
fn closed(request: &Closed) -> usize {
    let Closed::One(request) = request;
    request.id.len()
}

fn traced<R: Traced>(request: &mut R) -> bool {
    request.trace_state().is_null() && request.trace_state_mut().is_null()
}

#[test]
fn every_shape_of_request_compiles() {
    assert_eq!(everything(&Everything::default()), 0);
    assert!(only_state(&OnlyState::default()));
    assert_eq!(tuple(&Tuple(1, 2, TraceState::default())), 3);
    let mut one = Generic::<u32, str, u8> {
        id: "a",
        list: vec![1],
        shown: Inner(1),
        sized: [0; 3],
        other: Inner(2),
        unrecorded: PhantomData,
        trace: TraceState::default(),
    };
    assert_eq!(generic(&one), 5);
    assert_eq!(one.other.count(), 3);
    assert!(one.unrecorded == PhantomData);
    assert!(traced(&mut one));
    let mut either_one = Either::<Everything>::Tuple { request: Tuple::default() };
    assert_eq!(either(&either_one), 1);
    assert!(traced(&mut either_one));
    assert_eq!(either(&Either::Other(Everything::default())), 2);
    assert_eq!(either::<Tuple>(&Either::Everything(Box::default())), 0);
    assert_eq!(closed(&Closed::One(Everything::default())), 0);
    let mut associated =
        Associated::<std::vec::IntoIter<u32>> { item: Some(1), trace: TraceState::default() };
    assert!(traced(&mut associated));
    let mut bound = Bound { id: 1, trace: TraceState::default() };
    assert!(traced(&mut bound));
    assert_eq!((bound.id, associated.item), (1, Some(1)));
}
