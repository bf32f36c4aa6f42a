//! Parameters that are patterns, and requests and attributes inside of them.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::non_minimal_cfg)]
#![allow(clippy::trivially_copy_pass_by_ref)]
#![forbid(unsafe_code)]

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use stagetrace::{Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Default)]
pub struct Request {
    steps: u32,
    #[traced(state)]
    trace: TraceState,
}

/// An extractor, as of a web framework.
pub struct Json<T>(pub T);

/// Two halves.
pub struct Pair {
    left: Request,
    right: u32,
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

#[stage(Steps::Only, req, attrs("steps" = req.steps, "twice" = twice * 2))]
fn extracted(Json(mut req): Json<Request>, (twice, _): (u32, String)) -> u32 {
    req.steps += twice;
    req.steps
}

#[stage(Steps::Only, req, attrs("steps" = req.steps, "n" = n))]
async fn extracted_async(Json(mut req): Json<Request>, (mut n, _): (u32, String)) -> u32 {
    req.steps += n;
    n += 1;
    req.steps + n
}

#[stage(Steps::Only, left)]
async fn fields(Pair { left, right }: Pair) -> u32 {
    left.steps + right
}

#[stage(Steps::Only)]
async fn unused_parts(Pair { left: mut one, .. }: Pair, _: String, [first, ..]: [u32; 3]) -> u32 {
    one.steps += first;
    one.steps
}

#[stage(Steps::Only)]
fn references(&(a, b): &(u32, u32), ref c: String, d @ 0..=u32::MAX: u32) -> usize {
    c.len() + (a + b + d) as usize
}

#[stage(Steps::Only)]
fn with_conditions(
    #[cfg(all())] a: u32,
    #[cfg(any())] a: u64,
    #[allow(unused_variables)] b: u32,
    #[expect(unused_variables)] c: u32,
    _d: u32,
) -> u32 {
    a
}

#[test]
fn patterns_bind_what_they_bound() {
    let request = |steps| Request { steps, ..Request::default() };
    assert_eq!(extracted(Json(request(1)), (2, String::new())), 3);
    assert_eq!(run(extracted_async(Json(request(1)), (2, String::new()))), 6);
    let pair = |right| Pair { left: request(1), right };
    assert_eq!(run(fields(pair(2))), 3);
    assert_eq!(run(unused_parts(pair(2), String::new(), [4, 5, 6])), 5);
    assert_eq!(references(&(1, 2), String::from("abc"), 3), 9);
    assert_eq!(with_conditions(1, 2, 3, 4), 1);
}
