//! A process that starts the OpenTelemetry SDK.

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};

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
    start_up::time(|| SdkTracerProvider::builder().with_batch_exporter(Null).build());
}
