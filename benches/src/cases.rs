//! The work that is measured, through the public macros.

use stagetrace::{Outcome, Stages, TraceConfig, TraceGuard, TraceState, Traced, stage};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A case: does its work for that many spans.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(usize),
}

/// All cases but the floor.
pub(crate) const CASES: &[Case] = &[
    Case { name: "stage, ambient", run: ambient },
    Case { name: "stage, of a request", run: of_request },
    Case { name: "stage, 4 attributes", run: attributes },
    Case { name: "stage, above the level", run: filtered },
    Case { name: "stage, not sampled", run: unsampled },
    Case { name: "async stage, ready", run: asynchronous },
    Case { name: "request, begin..finish", run: requests },
];

#[derive(Stages, Clone, Copy)]
enum Bench {
    Plain,
    #[stage(level = 3)]
    Detail,
}

#[derive(Traced, Default)]
#[traced(name = "request")]
struct Request {
    #[traced(id)]
    id: u64,
    #[traced(attr = "n")]
    n: u64,
    #[traced(state)]
    trace: TraceState,
}

/// Records to a temporary directory.
pub(crate) fn init() -> TraceGuard {
    let dir = std::env::temp_dir().join("stagetrace-benches");
    let config = TraceConfig::new().service_name("benches").output_dir(dir);
    stagetrace::init(config).expect("the configuration is right")
}

/// Two clock reads and a 16-byte store.
pub(crate) fn floor(n: usize) {
    let mut ring = [[0u64; 2]; 4096];
    for i in 0..n {
        let begin = ticks();
        black_box(i);
        ring[i & 4095] = [begin, ticks()];
    }
    black_box(&ring);
}

#[inline(always)]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    stagetrace::monotonic_ns()
}

#[stage(Bench::Plain)]
#[inline(never)]
fn plain(i: usize) {
    black_box(i);
}

#[stage(Bench::Plain, request)]
#[inline(never)]
fn of(request: &Request, i: usize) {
    black_box((request.n, i));
}

#[stage(Bench::Plain, attrs("user.id" = i, "retries" = i & 3, "score" = 0.5, "client" = client))]
#[inline(never)]
fn with_attributes(i: usize, client: &str) {
    black_box((i, client));
}

#[stage(Bench::Detail)]
#[inline(never)]
fn detail(i: usize) {
    black_box(i);
}

#[stage(Bench::Plain)]
async fn ready(i: usize) {
    for _ in 0..3 {
        std::future::ready(()).await;
    }
    black_box(i);
}

/// A root with 100 children each.
fn in_roots(n: usize, child: impl Fn(usize)) {
    for _ in 0..n / 100 {
        let root = stagetrace::span!("root");
        root.in_scope(|| (0..100).for_each(&child));
    }
}

fn ambient(n: usize) {
    in_roots(n, plain);
}

fn of_request(n: usize) {
    for id in 0..n as u64 / 100 {
        let mut request = Request { id, ..Request::default() };
        request.begin(None);
        (0..100).for_each(|i| of(&request, i));
        request.finish(Outcome::Ok);
    }
}

fn attributes(n: usize) {
    in_roots(n, |i| with_attributes(i, "10.20.30.40:8080"));
}

fn filtered(n: usize) {
    in_roots(n, detail);
}

fn unsampled(n: usize) {
    let headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")];
    let mut request = Request { trace: TraceState::from_headers(headers), ..Request::default() };
    request.begin(None);
    outside(&request, n);
}

#[stage(Bench::Plain, request)]
fn outside(request: &Request, n: usize) {
    black_box(request.id);
    (0..n).for_each(plain);
}

fn asynchronous(n: usize) {
    in_roots(n, |i| {
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(pin!(ready(i)).poll(&mut context), Poll::Ready(())));
    });
}

fn requests(n: usize) {
    for id in 0..n as u64 {
        let mut request = Request { id, ..Request::default() };
        request.begin(None);
        request.finish(Outcome::Ok);
    }
}
