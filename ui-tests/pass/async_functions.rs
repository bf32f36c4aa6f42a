//! Async functions: `Send` and size as the bare ones, captures, early exits.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, clippy::future_not_send)]
#![forbid(unsafe_code)]

use std::{
    fmt::Display,
    future::Future,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use stagetrace::{Stages, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
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

const fn is_send<T: Send>(_: &T) {}

#[stage(Steps::Only)]
async fn nothing() {}

#[stage(Steps::Only)]
async fn question_mark(x: &str) -> Result<i32, Box<dyn std::error::Error + Send + Sync>> {
    nothing().await;
    let x: i32 = x.parse()?;
    if x < 0 {
        return Err("negative".into());
    }
    Ok(x)
}

#[stage(Steps::Only)]
async fn coerced(x: i32) -> Box<dyn Display + Send> {
    if x > 0 {
        return Box::new(x);
    }
    Box::new("none")
}

#[stage(Steps::Only)]
async fn two_lifetimes(a: &str, b: &mut String) -> usize {
    b.push_str(a);
    nothing().await;
    b.len()
}

#[stage(Steps::Only)]
async fn borrows<'a>(a: &'a mut [u32], _b: &u32) -> Option<&'a mut u32> {
    a.first_mut()
}

#[stage(Steps::Only)]
async fn with_impl(n: u32) -> Result<Vec<impl Display>, String> {
    if n > 3 {
        return Err("too many".to_owned());
    }
    Ok(vec![n])
}

#[stage(Steps::Only)]
async fn returns_closure(n: u32) -> impl Fn(u32) -> u32 {
    move |m| m + n
}

#[stage(Steps::Only)]
async fn impl_argument(x: impl Display, y: &(impl Display + ?Sized)) -> String {
    nothing().await;
    format!("{x}{y}")
}

#[stage(Steps::Only)]
async fn generic<T, const N: usize>(x: [T; N]) -> String
where
    T: Display,
{
    nothing().await;
    x[0].to_string()
}

#[stage(Steps::Only)]
async fn not_send(x: Rc<u32>) -> u32 {
    nothing().await;
    *x
}

#[stage(Steps::Only)]
async fn never(stop: bool) -> ! {
    nothing().await;
    assert!(!stop, "stopped");
    loop {
        nothing().await;
    }
}

#[stage(Steps::Only)]
async fn always_panics() -> u32 {
    panic!("always")
}

#[stage(Steps::Only)]
async fn recursion(n: u32) -> u32 {
    if n == 0 {
        return 0;
    }
    Box::pin(recursion(n - 1)).await + 1
}

async fn bare(x: [u8; 256]) -> u8 {
    nothing().await;
    x[0]
}

#[stage(Steps::Only)]
async fn staged(x: [u8; 256]) -> u8 {
    nothing().await;
    x[0]
}

#[must_use]
#[stage(Steps::Only)]
async fn kept_async(x: u32) -> u32 {
    nothing().await;
    x
}

#[test]
fn async_functions_do_what_the_bare_ones_do() {
    run(nothing());
    assert_eq!(run(question_mark("7")).ok(), Some(7));
    assert!(run(question_mark("-7")).is_err());
    assert_eq!(run(coerced(1)).to_string(), "1");
    let mut text = String::from("a");
    assert_eq!(run(two_lifetimes("bc", &mut text)), 3);
    assert!(run(borrows(&mut [1], &2)).is_some());
    assert_eq!(run(with_impl(1)).map(|v| v[0].to_string()), Ok("1".to_owned()));
    assert_eq!(run(returns_closure(1))(2), 3);
    assert_eq!(run(impl_argument(1, "a")), "1a");
    assert_eq!(run(generic([1, 2])), "1");
    assert_eq!(run(not_send(Rc::new(1))), 1);
    assert!(std::panic::catch_unwind(|| -> u32 { run(never(true)) }).is_err());
    assert!(std::panic::catch_unwind(|| run(always_panics())).is_err());
    assert_eq!(run(recursion(1000)), 1000);
    assert_eq!(run(kept_async(3)), 3);

    is_send(&nothing());
    is_send(&question_mark("7"));
    is_send(&two_lifetimes("a", &mut text));
    is_send(&generic([1, 2]));
    is_send(&impl_argument(1, "a"));

    let (bare, staged) = (bare([1; 256]), staged([1; 256]));
    assert!(size_of_val(&staged) <= size_of_val(&bare) + 64);
    assert_eq!(run(bare), run(staged));
}
