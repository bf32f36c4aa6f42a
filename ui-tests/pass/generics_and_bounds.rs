//! Generics of every kind, and staged functions used as values.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, clippy::future_not_send, clippy::needless_pass_by_value)]
#![allow(clippy::trivially_copy_pass_by_ref)]
#![forbid(unsafe_code)]

use std::{
    fmt::{Debug, Display},
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use stagetrace::{Accepts, Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Default)]
#[traced(stages = Steps)]
pub struct Request {
    steps: u32,
    #[traced(state)]
    trace: TraceState,
}

fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[stage(Steps::Only, req, attrs("name" = name.to_string(), "size" = N))]
fn all_kinds<'a, 'b: 'a, R, T, const N: usize>(
    req: &R,
    name: &'b T,
    list: &'a [u32; N],
) -> (&'b T, &'a [u32])
where
    R: Traced + Accepts<Steps>,
    for<'c> &'c T: Debug,
    T: ?Sized + Display + 'a,
{
    let _ = req.trace_state();
    (name, list)
}

#[stage(Steps::Only, req)]
async fn all_kinds_async<'a, 'b: 'a, R, T: ?Sized + Display + Sync + 'a, const N: usize>(
    req: &R,
    name: &'b T,
    list: &'a [u32; N],
) -> (&'b T, &'a [u32])
where
    R: Traced + Accepts<Steps> + Sync,
{
    let _ = req.trace_state();
    (name, list)
}

#[stage(Steps::Only)]
fn unsized_result(x: &(dyn Debug + Send)) -> Box<dyn Debug + '_> {
    Box::new(x)
}

#[stage(Steps::Only)]
fn calls<F>(f: F) -> u32
where
    F: FnOnce(&mut u32) -> u32,
{
    let mut x = 1;
    f(&mut x)
}

#[stage(Steps::Only)]
async fn length(x: &str) -> usize {
    x.len()
}

#[stage(Steps::Only)]
fn double(x: &u32) -> u32 {
    x * 2
}

async fn through<F: AsyncFn(&str) -> usize>(f: F) -> usize {
    let text = String::from("abc");
    f(&text).await
}

trait Worker: Sized {
    type Output;
    const N: usize;

    #[stage(Steps::Only)]
    fn produce(self) -> Option<Self::Output> {
        self.inner()
    }

    fn inner(self) -> Option<Self::Output>;

    #[stage(Steps::Only)]
    async fn produce_async(self) -> Option<Self::Output> {
        self.inner()
    }
}

struct Pool<T, const M: usize>(T);

impl<T: Clone, const M: usize> Worker for Pool<T, M> {
    type Output = [T; M];
    const N: usize = M;

    #[stage(Steps::Only)]
    fn inner(self) -> Option<Self::Output> {
        Some(std::array::from_fn(|_| self.0.clone()))
    }
}

impl<T, const M: usize> Pool<T, M>
where
    T: Send + Sync + 'static,
{
    #[stage(Steps::Only)]
    async fn shared(self: Arc<Self>) -> Arc<Self> {
        self
    }

    #[stage(Steps::Only)]
    fn precise(&self) -> impl Future<Output = usize> + Send + use<T, M> {
        std::future::ready(M)
    }

    #[stage(Steps::Only)]
    fn new(x: T) -> Self {
        Self(x)
    }

    #[stage(Steps::Only)]
    async fn iterate(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.0)
    }
}

trait Object {
    fn later<'a>(&'a self, x: &'a str) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>>;
}

impl Object for u32 {
    #[stage(Steps::Only)]
    fn later<'a>(&'a self, x: &'a str) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>> {
        Box::pin(length(x))
    }
}

#[stage(Steps::Only)]
async fn spawned(request: Arc<Request>) -> u32 {
    request.steps
}

fn spawn<F: Future<Output = u32> + Send + 'static>(future: F) -> u32 {
    std::thread::spawn(move || run(future)).join().unwrap_or_default()
}

#[test]
fn generics_of_every_kind_compile() {
    let request = Request::default();
    assert_eq!(all_kinds(&request, "a", &[1]), ("a", [1].as_slice()));
    assert_eq!(run(all_kinds_async(&request, "a", &[1])), ("a", [1].as_slice()));
    assert_eq!(format!("{:?}", unsized_result(&1)), "1");
    assert_eq!(calls(|x| *x + 1), 2);
    assert_eq!(run(through(length)), 3);
    assert_eq!([1, 2].iter().map(double).sum::<u32>(), 6);
    let pointer: for<'a> fn(&'a u32) -> u32 = double;
    assert_eq!(pointer(&1), 2);
    assert_eq!(Pool::<_, 2>(1).produce(), Some([1, 1]));
    assert_eq!(Pool::<u32, 2>::N, 2);
    assert_eq!(run(Pool::<_, 2>(1).produce_async()), Some([1, 1]));
    let pool = Arc::new(Pool::<_, 3>::new(1));
    assert_eq!(run(pool.precise()), 3);
    assert_eq!(run(pool.iterate()).count(), 1);
    assert_eq!(run(pool.shared()).0, 1);
    assert_eq!(run((&1_u32 as &dyn Object).later("ab")), 2);
    assert_eq!(spawn(spawned(Arc::default())), 0);
}
