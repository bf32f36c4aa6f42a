//! stagetrace, through its macros.

use super::exporters::{self, Null};
use super::{Peer, Setup, attributes};
use crate::staged::{self, Bench, Request};
use ::stagetrace::otel::{Exporter, init_with};
use ::stagetrace::{InSpan, Outcome, TraceConfig, TraceGuard, TraceState, Traced, span, stage};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

pub(crate) struct Stagetrace;

static STARTED: OnceLock<Started> = OnceLock::new();

struct Started {
    trace: Mutex<Option<TraceGuard>>,
    /// Whether spans go to an exporter and not into a file.
    is_exporting: bool,
}

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
        let is_exporting = matches!(setup, Setup::SpanData | Setup::Otlp | Setup::DefaultsOtlp);
        let trace = if is_exporting {
            init_with(config.jsonl(false), [Exporter::new("null", Null)])
        } else {
            ::stagetrace::init(config)
        };
        let trace = trace.expect("the configuration is right");
        STARTED.get_or_init(|| Started { trace: Mutex::new(Some(trace)), is_exporting });
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
        if STARTED.get().is_some() {
            ::stagetrace::flush(Duration::from_secs(60)).expect("nothing fails");
        }
    }

    fn exported() -> u64 {
        match STARTED.get() {
            None => 0,
            Some(started) if started.is_exporting => exporters::exported(),
            Some(_) => {
                let stats = ::stagetrace::stats().expect("it is running");
                stats.sinks.iter().map(|sink| sink.exported).sum()
            }
        }
    }

    fn stop() {
        let trace = STARTED.get().and_then(|started| started.trace.lock().ok()?.take());
        // Closes the recording, which otherwise the next process would take for that of a dead one.
        drop(trace);
    }
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
    std::hint::black_box((user, retries, score, client));
}
