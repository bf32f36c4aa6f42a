//! stagetrace, through its macros.

use super::exporters::Null;
use super::{Peer, Setup, attributes};
use crate::staged::{self, Bench, Request};
use ::stagetrace::{
    Consecutive, Exporter, FlushError, InSpan, Outcome, TraceConfig, TraceGuard, TraceState,
    Traced, init_with, next, otel, span, stage,
};
use std::convert::Infallible;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

pub(crate) struct Stagetrace;

static TRACE: Mutex<Option<TraceGuard>> = Mutex::new(None);

/// Where its files go: whoever starts this process says so, and removes it.
pub(crate) const DIRECTORY: &str = "BENCHES_DIRECTORY";

impl Peer for Stagetrace {
    fn start(setup: Setup) {
        if setup == Setup::Off {
            return;
        }
        let directory = std::env::var_os(DIRECTORY).map(PathBuf::from);
        let directory =
            directory.unwrap_or_else(|| std::env::temp_dir().join("stagetrace-benches"));
        let config = TraceConfig::new().service_name("benches").output_dir(directory);
        let trace = match setup {
            Setup::SpanData => init_with(config.jsonl(false), [otel::exporter("null", Null)]),
            Setup::Otlp | Setup::DefaultsOtlp => {
                init_with(config.jsonl(false), [Exporter::otlp("null", throw_away)])
            }
            _ => ::stagetrace::init(config),
        };
        *lock() = Some(trace.expect("the configuration is right"));
    }

    fn in_root(work: impl FnOnce()) {
        span!("request").in_scope(work);
    }

    fn in_unsampled_root(work: impl FnOnce()) {
        let headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")];
        let mut request =
            Request { trace: TraceState::from_headers(headers), ..Request::default() };
        request.begin(None);
        inside(&request, work);
    }

    #[inline(always)]
    fn child(i: usize) {
        staged::child(i);
    }

    fn consecutive(children: usize) {
        let mut now = None::<Consecutive>;
        for i in 0..children {
            match &mut now {
                None => now = Some(next(Bench::CHILD)),
                Some(now) => now.next(Bench::CHILD),
            }
            staged::bare::child(i);
        }
    }

    #[inline(always)]
    fn child_with_attributes(i: usize) {
        let (user, retries, score, client) = attributes(i);
        with_attributes(user, retries, score, client);
    }

    #[inline(always)]
    fn child_around(work: impl FnOnce()) {
        around(work);
    }

    #[inline(always)]
    fn detail(i: usize) {
        staged::detail(i);
    }

    fn ready(children: usize) -> impl Future<Output = ()> {
        let children = async move {
            for i in 0..children {
                staged::ready(i).await;
            }
        };
        children.in_span(span!("request"))
    }

    fn yielding(children: usize) -> impl Future<Output = ()> {
        let children = async move {
            for i in 0..children {
                staged::yielding(i).await;
            }
        };
        children.in_span(span!("request"))
    }

    type Request = Request;

    fn begin() -> Request {
        let mut request = Request::default();
        request.begin(None);
        staged::accept(&request);
        request
    }

    fn serve(request: Request, children: usize) {
        (0..children).for_each(|i| staged::child_of(&request, i));
        request.finish(Outcome::Ok);
    }

    fn flush() {
        if lock().is_some() {
            // What a sink had no room for, flat out, is an error here. It is not exported, and that is counted.
            let flushed = ::stagetrace::flush(Duration::from_secs(60));
            assert!(matches!(flushed, Ok(_) | Err(FlushError::Sinks(_))), "{flushed:?}");
        }
    }

    fn exported() -> u64 {
        let stats = ::stagetrace::stats().unwrap_or_default();
        stats.sinks.iter().map(|sink| sink.exported).sum()
    }

    fn stop() {
        // Closes the recording, which otherwise the next process would take for that of a dead one.
        drop(lock().take());
    }
}

/// Takes an OTLP request as it would be sent.
fn throw_away(request: &[u8]) -> Result<(), Infallible> {
    black_box(request);
    Ok(())
}

fn lock() -> MutexGuard<'static, Option<TraceGuard>> {
    TRACE.lock().expect("nothing panics while it is held")
}

#[stage(Bench::Accept, request)]
fn inside(request: &Request, work: impl FnOnce()) {
    let _ = request.id;
    work();
}

#[stage(Bench::Child)]
fn around(work: impl FnOnce()) {
    work();
}

#[stage(
    Bench::Child,
    attrs("user.id" = user, "retries" = retries, "score" = score, "client" = client)
)]
fn with_attributes(user: i64, retries: i64, score: f64, client: &str) {
    black_box((user, retries, score, client));
}
