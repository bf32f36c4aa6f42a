//! A process that starts `tracing` with `tracing-opentelemetry`.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[path = "../start_up/mod.rs"]
mod start_up;

#[derive(Debug)]
struct Null;

impl SpanExporter for Null {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

fn main() {
    start_up::time(|| {
        let provider = SdkTracerProvider::builder().with_batch_exporter(Null).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("benches"));
        tracing_subscriber::registry().with(layer).init();
        provider
    });
}
