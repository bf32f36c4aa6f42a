//! Functions that return a future without being `async`.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::manual_async_fn, clippy::future_not_send, clippy::elidable_lifetime_names)]
#![forbid(unsafe_code)]

use std::{
    future::{Future, ready},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use stagetrace::{Stages, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Later<T> = Pin<Box<dyn Future<Output = T>>>;

fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[stage(Steps::Only)]
fn with_impl(x: u32) -> impl Future<Output = u32> {
    let y = x + 1;
    async move { y }
}

#[stage(Steps::Only)]
fn with_impl_send<'a>(x: &'a str) -> impl Future<Output = Result<&'a str, String>> + Send + 'a {
    async move { if x.is_empty() { Err("empty".to_owned()) } else { Ok(x) } }
}

#[stage(Steps::Only)]
fn boxed<'a>(x: &'a str) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>> {
    if x.is_empty() {
        return Box::pin(ready(0));
    }
    Box::pin(async move { x.len() })
}

#[stage(Steps::Only)]
fn elided(x: &str) -> Pin<Box<dyn Future<Output = usize> + Send + '_>> {
    Box::pin(async move { x.len() })
}

#[stage(Steps::Only)]
fn by_known_name(x: &str) -> BoxFuture<'_, usize> {
    Box::pin(async move { x.len() })
}

#[stage(Steps::Only, future)]
fn by_option(x: usize) -> Later<usize> {
    Box::pin(async move { x })
}

trait Handler {
    fn handle(&self, x: u32) -> impl Future<Output = u32> + Send;
}

struct Service(u32);

impl Handler for Service {
    #[stage(Steps::Only)]
    fn handle(&self, x: u32) -> impl Future<Output = u32> + Send {
        async move { self.0 + x }
    }
}

#[test]
fn returned_futures_do_what_the_bare_ones_do() {
    assert_eq!(run(with_impl(1)), 2);
    assert_eq!(run(with_impl_send("a")), Ok("a"));
    assert_eq!(run(boxed("abc")), 3);
    assert_eq!(run(boxed("")), 0);
    assert_eq!(run(elided("abc")), 3);
    assert_eq!(run(by_known_name("abc")), 3);
    assert_eq!(run(by_option(4)), 4);
    assert_eq!(run(Service(1).handle(2)), 3);
}
