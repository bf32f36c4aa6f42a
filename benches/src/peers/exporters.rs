//! Where the peers' spans end: counted, and thrown away.

use ::fastrace::collector::{Reporter, SpanRecord};
use ::opentelemetry_sdk::Resource;
use ::opentelemetry_sdk::error::OTelSdkResult;
use ::opentelemetry_sdk::trace::{SpanData, SpanExporter};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use prost::Message;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

static EXPORTED: AtomicU64 = AtomicU64::new(0);

/// Spans that arrived so far.
pub(super) fn exported() -> u64 {
    EXPORTED.load(Ordering::Relaxed)
}

pub(super) fn note(spans: usize) {
    EXPORTED.fetch_add(spans as u64, Ordering::Relaxed);
}

/// Takes OpenTelemetry's spans.
#[derive(Debug)]
pub(crate) struct Null;

impl SpanExporter for Null {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        note(batch.len());
        black_box(batch);
        Ok(())
    }
}

/// Makes the bytes of an OTLP request of them, as `opentelemetry-otlp` does.
#[derive(Debug, Default)]
pub(super) struct Encode {
    resource: ResourceAttributesWithSchema,
}

impl SpanExporter for Encode {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        black_box(ExportTraceServiceRequest { resource_spans }.encode_to_vec());
        note(spans);
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

impl Reporter for Null {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        note(spans.len());
        black_box(spans);
    }
}
