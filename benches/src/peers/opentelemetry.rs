//! The OpenTelemetry SDK with its batch processor. It has no levels and no attribute macros.

use super::exporters::{self, Encode, Null};
use super::{Peer, Setup, attributes};
use ::opentelemetry::trace::{FutureExt, TraceContextExt, Tracer, TracerProvider};
use ::opentelemetry::{Context, KeyValue, global};
use ::opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, SpanExporter,
};
use std::hint::black_box;
use std::sync::OnceLock;

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Starts the SDK; nothing for [`Setup::Off`].
pub(super) fn start(setup: Setup) {
    match setup {
        Setup::Off => {}
        Setup::Otlp | Setup::DefaultsOtlp => start_with(Encode::default(), setup),
        _ => start_with(Null, setup),
    }
}

fn start_with(exporter: impl SpanExporter + 'static, setup: Setup) {
    let mut batches = BatchConfigBuilder::default();
    if !matches!(setup, Setup::Defaults | Setup::DefaultsOtlp) {
        batches = batches.with_max_queue_size(1 << 18);
    }
    let processor =
        BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build();
    let sampler = if setup == Setup::NotSampled { Sampler::AlwaysOff } else { Sampler::AlwaysOn };
    let provider =
        SdkTracerProvider::builder().with_span_processor(processor).with_sampler(sampler).build();
    TRACER.get_or_init(|| provider.tracer("benches"));
    PROVIDER.get_or_init(|| provider);
}

/// The tracer of a started SDK.
pub(super) fn tracer() -> &'static SdkTracer {
    TRACER.get().expect("the SDK was started")
}

/// Has what the SDK holds leave.
pub(super) fn flush() {
    if let Some(provider) = PROVIDER.get() {
        provider.force_flush().expect("the exporter never fails");
    }
}

pub(crate) struct OpenTelemetry;

impl Peer for OpenTelemetry {
    fn start(setup: Setup) {
        start(setup);
    }

    fn in_root(work: impl FnOnce()) {
        in_span("request", work);
    }

    #[inline(always)]
    fn child(i: usize) {
        in_span("child", || _ = black_box(i));
    }

    #[inline(always)]
    fn child_with_attributes(i: usize) {
        let (user, retries, score, client) = attributes(i);
        let tracer = tracer();
        let span = tracer.span_builder("child").with_attributes([
            KeyValue::new("user.id", user),
            KeyValue::new("retries", retries),
            KeyValue::new("score", score),
            KeyValue::new("client", client),
        ]);
        let _entered = Context::current_with_span(span.start(tracer)).attach();
    }

    #[inline(always)]
    fn child_around(work: impl FnOnce()) {
        in_span("child", work);
    }

    fn detail(_: usize) {
        unreachable!("OpenTelemetry has no levels");
    }

    fn ready(children: usize) -> impl Future<Output = ()> {
        let children = async move {
            for i in 0..children {
                ready(i).await;
            }
        };
        children.with_context(span("request"))
    }

    fn yielding(children: usize) -> impl Future<Output = ()> {
        let children = async move {
            for i in 0..children {
                yielding(i).await;
            }
        };
        children.with_context(span("request"))
    }

    type Request = Context;

    fn begin() -> Context {
        let request = span("request");
        let _entered = request.clone().attach();
        in_span("accept", || ());
        request
    }

    fn serve(request: Context, children: usize) {
        let _entered = request.attach();
        for i in 0..children {
            Self::child(i);
        }
    }

    fn flush() {
        flush();
    }

    fn exported() -> u64 {
        exporters::exported()
    }
}

/// As documented: through the SDK's tracer, or the global one, which does nothing if no SDK was started.
#[inline(always)]
fn in_span(name: &'static str, work: impl FnOnce()) {
    match TRACER.get() {
        Some(tracer) => tracer.in_span(name, |_| work()),
        None => global::tracer("benches").in_span(name, |_| work()),
    }
}

fn span(name: &'static str) -> Context {
    Context::current_with_span(tracer().start(name))
}

fn ready(i: usize) -> impl Future<Output = ()> {
    let body = async move {
        for _ in 0..3 {
            std::future::ready(()).await;
        }
        black_box(i);
    };
    body.with_context(span("child"))
}

fn yielding(i: usize) -> impl Future<Output = ()> {
    let body = async move {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        black_box(i);
    };
    body.with_context(span("child"))
}
