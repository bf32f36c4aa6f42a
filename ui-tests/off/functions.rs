//! Functions that are compiled twice with `--cfg stagetrace_off`: as they are, and staged. `tests/off.rs` compares what
//! the compiler makes of them. Each that it looks at keeps its name.

#![crate_type = "lib"]
#![allow(unexpected_cfgs, reason = "`staged` is the test's own")]
#![allow(missing_docs)]
#![allow(clippy::manual_async_fn, reason = "the shape is what is looked at")]
#![deny(warnings)]

use stagetrace::{Outcome, Stages, TraceState, Traced};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

#[derive(Stages)]
pub enum Steps {
    Prepare,
    #[stage(within = Prepare)]
    Run,
}

#[derive(Traced)]
#[traced(name = "request", stages = Steps)]
pub struct Request {
    #[traced(id)]
    pub id: u64,
    #[traced(attr = "steps")]
    pub steps: u32,
    pub values: Vec<u64>,
    #[traced(state)]
    pub trace: TraceState,
}

/// Does something that no compiler leaves out.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn work(n: u64) -> u64 {
    std::hint::black_box(n).rotate_left(7) ^ 0x5bd1
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Prepare))]
pub fn sync_plain(n: u64) -> u64 {
    work(n) + work(n + 1)
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage("free", kind = client, attrs("n" = n, "twice" = n * 2)))]
pub fn sync_attributes(n: u32) -> u64 {
    work(u64::from(n))
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Run, req, attrs("len" = req.values.len())))]
pub fn sync_request(req: &mut Request) -> u64 {
    req.steps += 1;
    req.values.iter().map(|value| work(*value)).sum()
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Run, req))]
pub fn sync_by_value(req: Request) -> u64 {
    work(req.id)
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Run, err))]
pub fn sync_result(text: &str) -> Result<u64, std::num::ParseIntError> {
    if text.is_empty() {
        return Ok(0);
    }
    let n: u64 = text.parse()?;
    Ok(work(n))
}

/// A value that is returned through memory.
#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Run, ret))]
pub fn sync_large(n: u64) -> Vec<i64> {
    vec![work(n) as i64]
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Run))]
pub fn sync_array(n: u64) -> [u64; 64] {
    let mut all = [0; 64];
    for (at, value) in all.iter_mut().enumerate() {
        *value = work(n + at as u64);
    }
    all
}

#[unsafe(no_mangle)]
#[cfg_attr(staged, stagetrace::stage(Steps::Run, detached))]
pub fn sync_never(n: u64) -> ! {
    work(n);
    std::process::abort()
}

#[unsafe(no_mangle)]
#[track_caller]
#[cfg_attr(staged, stagetrace::stage(Steps::Run))]
pub fn sync_location() -> u32 {
    std::panic::Location::caller().line()
}

#[cfg_attr(staged, stagetrace::stage(Steps::Run, job.0, no_err))]
fn generic<T: Into<u64> + Copy, const N: usize>(job: (&Request, [T; N])) -> Option<u64> {
    let mut sum = job.0.id;
    for value in job.1 {
        sum += work(value.into());
    }
    (sum > 0).then_some(sum)
}

#[unsafe(no_mangle)]
pub fn sync_generic(req: &Request) -> Option<u64> {
    generic((req, [1u32, 2, 3]))
}

pub struct Server {
    factor: u64,
}

pub trait Serve {
    fn serve(&self, req: &Request) -> u64;
}

impl Serve for Server {
    #[cfg_attr(staged, stagetrace::stage(Steps::Run, req, attrs("factor" = self.factor)))]
    fn serve(&self, req: &Request) -> u64 {
        work(req.id) * self.factor
    }
}

#[unsafe(no_mangle)]
pub fn sync_method(server: &Server, req: &Request) -> u64 {
    server.serve(req)
}

/// Ready at the second poll.
#[derive(Default)]
struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg_attr(staged, stagetrace::stage(Steps::Run, req, err, attrs("steps" = req.steps)))]
async fn later(req: &mut Request, more: Vec<u64>) -> Result<u64, std::num::ParseIntError> {
    req.steps += 1;
    Once::default().await;
    let n: u64 = "7".parse()?;
    Ok(work(n) + more.len() as u64)
}

#[unsafe(no_mangle)]
pub fn async_poll(req: &mut Request, task: &mut Context<'_>) -> Poll<u64> {
    pin!(later(req, vec![1, 2])).poll(task).map(|result| result.unwrap_or(0))
}

/// The whole of the future's code, however often it is polled.
#[unsafe(no_mangle)]
pub fn async_dyn(req: &mut Request) -> Pin<Box<dyn Future<Output = bool> + '_>> {
    let later = later(req, vec![1, 2]);
    Box::pin(async move { later.await.is_ok() })
}

#[unsafe(no_mangle)]
pub fn async_size(req: &mut Request) -> usize {
    size_of_val(&later(req, Vec::new()))
}

#[cfg_attr(staged, stagetrace::stage(Steps::Run))]
fn boxed(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    let first = work(n);
    Box::pin(async move {
        Once::default().await;
        first + work(n)
    })
}

#[unsafe(no_mangle)]
pub fn async_boxed(task: &mut Context<'_>) -> Poll<u64> {
    boxed(7).as_mut().poll(task)
}

#[cfg_attr(staged, stagetrace::stage(Steps::Run))]
fn returned(n: u64) -> impl Future<Output = u64> {
    async move { work(n) }
}

#[unsafe(no_mangle)]
pub fn async_returned(task: &mut Context<'_>) -> Poll<u64> {
    pin!(returned(7)).poll(task)
}

/// What is written by hand costs nothing either, and none of its values is worked out.
#[unsafe(no_mangle)]
pub fn hand_written(req: &mut Request) -> u64 {
    #[cfg(staged)]
    req.begin(None);
    #[cfg(staged)]
    let span = stagetrace::span!("by hand", parent = stagetrace::current(), "n" = work(1));
    #[cfg(staged)]
    {
        span.set_attribute("late", 7);
        stagetrace::event!("event", "n" = work(2));
        stagetrace::set_attribute("key", "value");
        stagetrace::add_event("event", &[("n", &7)]);
    }
    #[cfg(not(staged))]
    let n = work(req.id);
    #[cfg(staged)]
    let n = span.in_scope(|| work(req.id));
    #[cfg(staged)]
    {
        drop(span);
        req.finish(Outcome::Ok);
    }
    #[cfg(not(staged))]
    let _ = Outcome::Ok;
    n
}

// Mistakes, each of which the test switches on.

#[cfg(undeclared_stage)]
#[stagetrace::stage(Steps::Nothing)]
pub fn undeclared_stage() {}

#[cfg(untraced_request)]
#[stagetrace::stage(Steps::Run, req)]
pub fn untraced_request(req: &String) {
    drop(req.clone());
}

#[cfg(foreign_request)]
#[derive(Stages)]
pub enum Foreign {
    Only,
}

#[cfg(foreign_request)]
#[stagetrace::stage(Foreign::Only, req)]
pub fn foreign_request(req: &Request) -> u64 {
    req.id
}

#[cfg(unrecordable_value)]
#[stagetrace::stage(Steps::Run, attrs("value" = std::thread::current()))]
pub fn unrecordable_value() {}

#[cfg(unknown_option)]
#[stagetrace::stage(Steps::Run, knd = client)]
pub fn unknown_option() {}

#[cfg(unrecordable_event)]
pub fn unrecordable_event() {
    stagetrace::event!("event", "value" = std::thread::current());
}
