//! Options of `#[stage]`: attributes, names, kinds, and how the outcome is judged.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, clippy::trivially_copy_pass_by_ref)]
#![forbid(unsafe_code)]

use std::{
    future::Future,
    ops::ControlFlow,
    pin::pin,
    process::ExitCode,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use stagetrace::{Position, Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[derive(Stages)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Default)]
pub struct Request {
    name: String,
    steps: u32,
    #[traced(state)]
    trace: TraceState,
}

const SPAN_NAME: &str = "from a constant";

/// Keys as constants.
pub mod keys {
    /// A model.
    pub const MODEL: &str = "gen_ai.request.model";
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

#[stage(
    Steps::Only,
    req,
    attrs(
        "name" = req.name,
        keys::MODEL = req.name.as_str(),
        "steps" = req.steps,
        "double" = req.steps * 2,
        "temporary" = format!("{}!", req.name),
        "option" = Some(x),
        "cast" = f64::from(req.steps),
        "block" = if x > 0 { "some" } else { "none" },
    ),
    kind = client,
)]
fn eight_attributes(req: &mut Request, x: u32) -> u32 {
    req.name.push('x');
    x
}

#[stage(Steps::Only, attrs("1" = a, "2" = a, "3" = a, "4" = a, "5" = a, "6" = a, "7" = a, "8" = a, "9" = a, "10" = a))]
fn ten_attributes(a: &str) -> usize {
    a.len()
}

#[stage(Steps::Only, attrs("1" = a, "2" = a, "3" = a, "4" = a, "5" = a, "6" = a, "7" = a, "8" = a, "9" = a, "10" = a))]
async fn ten_attributes_async(a: String) -> usize {
    a.len()
}

#[stage(Steps::Only, attrs("length" = text.len()), detached)]
fn detached(text: &str) -> usize {
    text.len()
}

#[stage(Steps::Only, detached, attrs("length" = text.len()))]
async fn detached_async(text: &str) -> usize {
    text.len()
}

#[stage(Steps::Only, attrs("length" = text.len()), ret)]
fn with_prelude(text: &str) -> impl Future<Output = usize> {
    let length = text.len();
    async move { length }
}

#[stage("a literal", kind = producer)]
fn named_by_literal() {}

#[stage(name = SPAN_NAME)]
fn named_by_constant() {}

#[stage(name = SPAN_NAME, req)]
fn named_with_request(req: &Request) -> u32 {
    req.steps
}

#[stage("a literal", req)]
async fn named_async(req: &Request) -> u32 {
    req.steps
}

#[stage(Steps::Only, position)]
fn of_position(position: Position) -> usize {
    size_of_val(&position)
}

#[stage(Steps::Only, state)]
fn of_state(state: &TraceState) -> bool {
    state.is_null()
}

#[stage(Steps::Only, jobs.1)]
fn of_field(jobs: &(u32, Arc<Request>)) -> u32 {
    jobs.0
}

#[stage(Steps::Only, jobs[0])]
fn of_element(jobs: &[Request]) -> u32 {
    jobs[0].steps
}

#[stage(Steps::Only, *job)]
fn of_target(job: &Request) -> u32 {
    job.steps
}

#[stage(Steps::Only, request)]
fn of_option(request: Option<&Request>) -> bool {
    request.is_some()
}

#[stage(Steps::Only, err, ret)]
fn result(x: u32) -> Result<u32, String> {
    if x > 3 { Err("too much".to_owned()) } else { Ok(x) }
}

#[stage(Steps::Only, err, ret)]
async fn result_async(x: u32) -> Result<u32, String> {
    if x > 3 { Err("too much".to_owned()) } else { Ok(x) }
}

#[stage(Steps::Only, no_err)]
fn not_judged(x: u32) -> Result<(), Opaque> {
    if x > 3 { Err(Opaque) } else { Ok(()) }
}

/// Neither `Debug` nor `Display`.
pub struct Opaque;

#[stage(Steps::Only)]
fn judged_opaque(x: u32) -> Result<(), Opaque> {
    if x > 3 { Err(Opaque) } else { Ok(()) }
}

#[stage(Steps::Only, err)]
fn option(x: u32) -> Option<u32> {
    x.checked_sub(1)
}

#[stage(Steps::Only, err)]
fn control_flow(x: u32) -> ControlFlow<u32> {
    if x > 3 { ControlFlow::Break(x) } else { ControlFlow::Continue(()) }
}

#[stage(Steps::Only)]
fn poll(x: u32) -> Poll<Result<u32, String>> {
    if x > 3 { Poll::Ready(Err(String::new())) } else { Poll::Pending }
}

#[stage(Steps::Only)]
fn exit_code(x: u8) -> ExitCode {
    ExitCode::from(x)
}

#[stage(Steps::Only)]
fn any<T>(x: T) -> T {
    x
}

#[stage(Steps::Only)]
fn unsized_reference(x: &str) -> &str {
    x
}

#[test]
fn every_option_compiles() {
    let mut req = Request::default();
    assert_eq!(eight_attributes(&mut req, 1), 1);
    assert_eq!(req.name, "x");
    assert_eq!(ten_attributes("a"), 1);
    assert_eq!(run(ten_attributes_async("a".to_owned())), 1);
    assert_eq!(detached("a"), 1);
    assert_eq!(run(detached_async("a")), 1);
    assert_eq!(run(with_prelude("a")), 1);
    named_by_literal();
    named_by_constant();
    assert_eq!(named_with_request(&req), 0);
    assert_eq!(run(named_async(&req)), 0);
    assert_eq!(of_position(Position::default()), 32);
    assert!(of_state(&TraceState::default()));
    assert_eq!(of_field(&(1, Arc::default())), 1);
    assert_eq!(of_element(&[Request::default()]), 0);
    assert_eq!(of_target(&req), 0);
    assert!(of_option(Some(&req)));
    assert_eq!(result(1), Ok(1));
    assert_eq!(run(result_async(1)), Ok(1));
    assert!(not_judged(4).is_err());
    assert!(judged_opaque(4).is_err());
    assert_eq!(option(1), Some(0));
    assert!(control_flow(4).is_break());
    assert!(poll(1).is_pending());
    let _ = exit_code(0);
    assert_eq!(any(1), 1);
    assert_eq!(unsized_reference("a"), "a");
}
