//! fastrace. It has no levels, and all its attributes are text.

use super::exporters::{self, Encode, Null};
use super::{Peer, Setup, attributes};
use ::fastrace::collector::Config;
use ::fastrace::future::FutureExt;
use ::fastrace::prelude::{LocalSpan, Span, SpanContext, trace};
use ::opentelemetry_sdk::Resource;
use ::opentelemetry_sdk::trace::SpanExporter;
use fastrace_opentelemetry::OpenTelemetryReporter;
use opentelemetry::InstrumentationScope;
use std::borrow::Cow;
use std::hint::black_box;

pub(crate) struct Fastrace;

impl Peer for Fastrace {
    fn start(setup: Setup) {
        match setup {
            Setup::Off => {}
            Setup::SpanData => through(Null),
            Setup::Otlp | Setup::DefaultsOtlp => through(Encode::default()),
            // Its queues have no setting.
            _ => ::fastrace::set_reporter(Null, Config::default()),
        }
    }

    fn in_root(work: impl FnOnce()) {
        let root = root();
        let _entered = root.set_local_parent();
        work();
    }

    fn in_unsampled_root(work: impl FnOnce()) {
        let root = Span::root("request", SpanContext::random().sampled(false));
        let _entered = root.set_local_parent();
        work();
    }

    #[inline(always)]
    fn child(i: usize) {
        child(i);
    }

    #[inline(always)]
    fn child_with_attributes(i: usize) {
        let _span = LocalSpan::enter_with_local_parent("child").with_properties(|| {
            let (user, retries, score, client) = attributes(i);
            [
                ("user.id", Cow::Owned(user.to_string())),
                ("retries", Cow::Owned(retries.to_string())),
                ("score", Cow::Owned(score.to_string())),
                ("client", Cow::Borrowed(client)),
            ]
        });
    }

    #[inline(always)]
    fn child_around(work: impl FnOnce()) {
        let _span = LocalSpan::enter_with_local_parent("child");
        work();
    }

    fn detail(_: usize) {
        unreachable!("fastrace has no levels");
    }

    fn ready(children: usize) -> impl Future<Output = ()> {
        let children = async move {
            for i in 0..children {
                ready(i).await;
            }
        };
        children.in_span(root())
    }

    fn yielding(children: usize) -> impl Future<Output = ()> {
        let children = async move {
            for i in 0..children {
                yielding(i).await;
            }
        };
        children.in_span(root())
    }

    type Request = Span;

    fn begin() -> Span {
        let root = root();
        let _entered = root.set_local_parent();
        drop(LocalSpan::enter_with_local_parent("accept"));
        drop(_entered);
        root
    }

    fn serve(request: Span, children: usize) {
        let _entered = request.set_local_parent();
        (0..children).for_each(child);
    }

    fn flush() {
        ::fastrace::flush();
    }

    fn exported() -> u64 {
        exporters::exported()
    }
}

fn root() -> Span {
    Span::root("request", SpanContext::random())
}

fn through(exporter: impl SpanExporter + 'static) {
    let resource = Cow::Owned(Resource::builder().build());
    let scope = InstrumentationScope::builder("benches").build();
    let reporter = OpenTelemetryReporter::new(exporter, resource, scope);
    ::fastrace::set_reporter(reporter, Config::default());
}

#[trace(short_name = true)]
fn child(i: usize) {
    black_box(i);
}

#[trace(short_name = true)]
async fn ready(i: usize) {
    for _ in 0..3 {
        std::future::ready(()).await;
    }
    black_box(i);
}

#[trace(short_name = true)]
async fn yielding(i: usize) {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    black_box(i);
}
