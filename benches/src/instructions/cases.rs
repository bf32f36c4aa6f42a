//! What is counted. A case brings about what the span needs and hands the rest to [`Counted`].

use super::counted::{COLLECTED, Counted};
use crate::staged::{self, Request, bare};
use stagetrace::{Outcome, TraceState, Traced, stage};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A case. Its name is that of its line in `limits.txt`.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) setup: Setup,
    /// Where callgrind collects.
    pub(crate) collected: &'static str,
    /// Does the work for that many spans.
    pub(crate) run: fn(&mut Counted),
    /// The same work without spans, whose instructions are taken off; `None` where none run without them.
    pub(crate) bare: Option<fn(&mut Counted)>,
}

/// What is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setup {
    Nothing,
    /// A recorder that writes the `.jsonl`.
    Recorder,
    /// A recorder whose spans become OTLP bytes, which are thrown away, and nothing else.
    Otlp,
    /// A recorder whose spans go to an exporter of the OpenTelemetry SDK, and nowhere else.
    SpanData,
}

/// All that the collector's thread does with spans, looks at chunks that have none included.
const WALKS: &str = "*Sweep*walk";
/// What the collector's thread does to give spans to an exporter.
const GIVES: &str = "*Supervised*Sink>::add_run";
/// What the exporter's thread does with a batch: it makes `SpanData`, which the exporter throws away.
const EXPORTS: &str = "*OfSdk*Outlet*>::export";

/// All cases.
pub(crate) const CASES: &[Case] = &[
    case("ambient", ambient, bare_child),
    case("of a request", of_a_request, bare_child_of),
    case("4 attributes", attributes, bare_attributes),
    case("consecutive", consecutive, bare_child),
    case("above the level", above_the_level, bare_child),
    case("not sampled", not_sampled, bare_child),
    Case { setup: Setup::Nothing, ..case("nothing installed", outside, bare_child) },
    Case {
        setup: Setup::Nothing,
        ..case("nothing installed, 4 attributes", attributes, bare_attributes)
    },
    case("async, ready", asynchronous, bare_asynchronous),
    case("request, begin to finish", requests, nothing),
    case("request across a channel, 12 spans", across_a_channel, bare_across_a_channel),
    behind("to the .jsonl, ambient", Setup::Recorder, WALKS, ambient),
    behind("to the .jsonl, 4 attributes", Setup::Recorder, WALKS, attributes),
    behind("to OTLP, ambient", Setup::Otlp, WALKS, ambient),
    behind("to OTLP, 4 attributes", Setup::Otlp, WALKS, attributes),
    behind("to SpanData, the collector's part", Setup::SpanData, GIVES, ambient),
    behind("to SpanData, the exporter's part", Setup::SpanData, EXPORTS, ambient),
    behind("4 attributes, the collector's part", Setup::SpanData, GIVES, attributes),
    behind("4 attributes, the exporter's part", Setup::SpanData, EXPORTS, attributes),
];

const fn case(name: &'static str, run: fn(&mut Counted), bare: fn(&mut Counted)) -> Case {
    Case { name, setup: Setup::Recorder, collected: COLLECTED, run, bare: Some(bare) }
}

/// What happens behind the recording threads.
const fn behind(
    name: &'static str,
    setup: Setup,
    collected: &'static str,
    run: fn(&mut Counted),
) -> Case {
    Case { name, setup, collected, run, bare: None }
}

fn in_a_root(work: impl FnOnce()) {
    let root = stagetrace::span!("root");
    root.in_scope(work);
}

fn ambient(counted: &mut Counted) {
    in_a_root(|| counted.each(staged::child));
}

fn of_a_request(counted: &mut Counted) {
    let mut request = Request::default();
    request.begin(None);
    counted.each(|i| staged::child_of(&request, i));
    request.finish(Outcome::Ok);
}

fn attributes(counted: &mut Counted) {
    in_a_root(|| counted.each(|i| staged::with_attributes(i, "10.20.30.40:8080")));
}

fn consecutive(counted: &mut Counted) {
    in_a_root(|| {
        let mut now = stagetrace::next(staged::Bench::ACCEPT);
        counted.each(|i| {
            now.next(staged::Bench::CHILD);
            bare::child(i);
        });
    });
}

fn above_the_level(counted: &mut Counted) {
    in_a_root(|| counted.each(staged::detail));
}

fn not_sampled(counted: &mut Counted) {
    let headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")];
    let mut request = Request { trace: TraceState::from_headers(headers), ..Request::default() };
    request.begin(None);
    inside(&request, counted);
}

#[stage(staged::Bench::Accept, request)]
fn inside(request: &Request, counted: &mut Counted) {
    black_box(request.id);
    counted.each(staged::child);
}

fn outside(counted: &mut Counted) {
    counted.each(staged::child);
}

fn asynchronous(counted: &mut Counted) {
    in_a_root(|| counted.each(|i| poll_once(staged::ready(i))));
}

/// Polls a future that is ready at once.
fn poll_once(future: impl Future<Output = ()>) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(future).poll(&mut context), Poll::Ready(())));
}

fn requests(counted: &mut Counted) {
    counted.each(|i| {
        let mut request = Request { id: i as u64, ..Request::default() };
        request.begin(None);
        request.finish(Outcome::Ok);
    });
}

/// One thread begins requests, with one stage each; when they are all on their way another one gives each ten stages
/// and finishes it. So neither waits for the other, which would not be the same work twice.
fn across_a_channel(counted: &mut Counted) {
    let begin = |i| {
        let mut request = Request { id: i as u64, ..Request::default() };
        request.begin(None);
        staged::accept(&request);
        request
    };
    let serve = |request: Request| {
        (0..10).for_each(|i| staged::child_of(&request, i));
        request.finish(Outcome::Ok);
    };
    counted.across(begin, serve);
}

fn bare_across_a_channel(counted: &mut Counted) {
    let begin = |i| Request { id: i as u64, ..Request::default() };
    let serve = |request: Request| (0..10).for_each(|i| bare::child_of(&request, i));
    counted.across(begin, serve);
}

fn bare_child(counted: &mut Counted) {
    counted.each(bare::child);
}

fn bare_child_of(counted: &mut Counted) {
    let request = Request::default();
    counted.each(|i| bare::child_of(&request, i));
}

fn bare_attributes(counted: &mut Counted) {
    counted.each(|i| bare::with_attributes(i, "10.20.30.40:8080"));
}

fn bare_asynchronous(counted: &mut Counted) {
    counted.each(|i| poll_once(bare::ready(i)));
}

fn nothing(counted: &mut Counted) {
    counted.each(|i| _ = black_box(i));
}
