//! The same work through each library, by the interface that its users are told to use.

mod bare;
mod exporters;
mod fastrace;
mod opentelemetry;
mod stagetrace;
mod tracing;

pub(crate) use bare::Bare;
pub(crate) use exporters::Null;
pub(crate) use fastrace::Fastrace;
pub(crate) use opentelemetry::OpenTelemetry;
pub(crate) use stagetrace::{DIRECTORY, Stagetrace};
pub(crate) use tracing::{TracingOpenTelemetry, TracingOpenTelemetryLean};

/// How a library is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// Not at all.
    Off,
    /// As by default, with queues so large that nothing is dropped. The peers' spans are thrown away at the end of their
    /// pipeline; ours are written to the recording and the .jsonl, which is our default.
    Plain,
    /// As by default.
    Defaults,
    /// A sampler, or a caller, that says no.
    NotSampled,
    /// The level is lower than that of [`Peer::detail`].
    AboveLevel,
    /// OpenTelemetry's `SpanData`, thrown away; no file.
    SpanData,
    /// The bytes of OTLP requests in protobuf, thrown away; no file.
    Otlp,
    /// The same, with the queues that there are by default.
    DefaultsOtlp,
}

/// A library under test. It is started once in a process.
pub(crate) trait Peer {
    /// Whether it records anything at all.
    const RECORDS: bool = true;

    /// Starts it.
    fn start(setup: Setup);

    /// Runs `work` inside a new root span.
    fn in_root(work: impl FnOnce());

    /// The same, not sampled.
    fn in_unsampled_root(work: impl FnOnce()) {
        Self::in_root(work);
    }

    /// A child of what is current.
    fn child(i: usize);

    /// So many children, of which each begins where the last one ends: one after the other, where there is nothing else.
    fn consecutive(children: usize) {
        (0..children).for_each(Self::child);
    }

    /// A child of what is current, with four typed attributes.
    fn child_with_attributes(i: usize);

    /// The same, around some work.
    fn child_around(work: impl FnOnce());

    /// A child that is more detailed than what is recorded.
    fn detail(i: usize);

    /// A root span with so many async children, each with three awaits that are ready.
    fn ready(children: usize) -> impl Future<Output = ()>;

    /// The same, with three awaits that yield to the executor.
    fn yielding(children: usize) -> impl Future<Output = ()>;

    /// A request that can be sent to another thread.
    type Request: Send + 'static;

    /// Begins a request: a root span with one child.
    fn begin() -> Self::Request;

    /// Gives it so many children, and ends it.
    fn serve(request: Self::Request, children: usize);

    /// Has what was recorded so far leave.
    fn flush();

    /// Spans that have left so far.
    fn exported() -> u64;

    /// Ends it, so that nothing of it is left behind.
    fn stop() {}
}

/// What attributes are made of.
#[inline(always)]
fn attributes(i: usize) -> (i64, i64, f64, &'static str) {
    let i = std::hint::black_box(i);
    let client = ["10.20.30.40:8080", "alice-01", "eu-west", "cache-hit"][i & 3];
    (i as i64 & 0xffff, i as i64 & 7, i as f64 * 0.5 + 0.25, client)
}
