//! `tracing` with `tracing-opentelemetry` on the OpenTelemetry SDK: as it is by default, and with all that can be
//! switched off.

use super::exporters;
use super::{Peer, Setup, attributes, opentelemetry};
use ::tracing::{Instrument, Span, info_span, instrument};
use std::hint::black_box;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Its spans have location, thread and timings beside what was asked for.
pub(crate) struct TracingOpenTelemetry;

/// Without those.
pub(crate) struct TracingOpenTelemetryLean;

fn start(setup: Setup, is_lean: bool) {
    if setup == Setup::Off {
        return;
    }
    opentelemetry::start(setup);
    let mut layer = tracing_opentelemetry::layer().with_tracer(opentelemetry::tracer().clone());
    if is_lean {
        layer = layer
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_target(false);
    }
    tracing_subscriber::registry().with(LevelFilter::INFO).with(layer).init();
}

macro_rules! peer {
    ($peer:ident, lean: $is_lean:expr) => {
        impl Peer for $peer {
            fn start(setup: Setup) {
                start(setup, $is_lean);
            }

            fn in_root(work: impl FnOnce()) {
                let _entered = info_span!("request").entered();
                work();
            }

            #[inline(always)]
            fn child(i: usize) {
                child(i);
            }

            #[inline(always)]
            fn child_with_attributes(i: usize) {
                let (user, retries, score, client) = attributes(i);
                let _span = info_span!("child", user.id = user, retries, score, client).entered();
            }

            #[inline(always)]
            fn child_around(work: impl FnOnce()) {
                let _span = info_span!("child").entered();
                work();
            }

            #[inline(always)]
            fn detail(i: usize) {
                detail(i);
            }

            fn ready(children: usize) -> impl Future<Output = ()> {
                let children = async move {
                    for i in 0..children {
                        ready(i).await;
                    }
                };
                children.instrument(info_span!("request"))
            }

            fn yielding(children: usize) -> impl Future<Output = ()> {
                let children = async move {
                    for i in 0..children {
                        yielding(i).await;
                    }
                };
                children.instrument(info_span!("request"))
            }

            type Request = Span;

            fn begin() -> Span {
                let request = info_span!("request");
                request.in_scope(|| drop(info_span!("accept").entered()));
                request
            }

            fn serve(request: Span, children: usize) {
                let _entered = request.entered();
                (0..children).for_each(child);
            }

            fn flush() {
                opentelemetry::flush();
            }

            fn exported() -> u64 {
                exporters::exported()
            }
        }
    };
}

peer!(TracingOpenTelemetry, lean: false);
peer!(TracingOpenTelemetryLean, lean: true);

#[instrument(skip_all)]
fn child(i: usize) {
    black_box(i);
}

#[instrument(skip_all, level = "debug")]
fn detail(i: usize) {
    black_box(i);
}

#[instrument(skip_all)]
async fn ready(i: usize) {
    for _ in 0..3 {
        std::future::ready(()).await;
    }
    black_box(i);
}

#[instrument(skip_all)]
async fn yielding(i: usize) {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    black_box(i);
}
