//! The way out through any `opentelemetry_sdk` span exporter: records → `SpanData`.
//!
//! Supervised as the others are. Besides the exporter's own thread, one drives the private runtime that its connections
//! and timers need.

mod convert;
mod outlet;

use super::supervised::{Batch, Encode, Outlet, Supervised};
use crate::collect::{OpenSink, SpanView};
use convert::Converter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use outlet::{Build, OfSdk};

/// A sink that hands its spans to the exporter that `build` makes, on the exporter's own thread.
pub(crate) fn through<E: SpanExporter + 'static>(
    name: &'static str,
    build: impl FnOnce() -> Result<E, String> + Send + 'static,
) -> OpenSink {
    Box::new(move |resource, _, batching| {
        let resource = convert::resource(resource);
        let build: Build = Box::new(move || {
            Ok(Box::new(OfSdk { exporter: build()?, resource }) as Box<dyn Outlet<Spans>>)
        });
        let start = |queue: &_| outlet::start(build, queue);
        Box::new(Supervised::new(name, Converter::new(), batching, start))
    })
}

/// Converted spans.
#[derive(Debug, Default)]
struct Spans {
    spans: Vec<SpanData>,
    bytes: usize,
}

impl Batch for Spans {
    fn spans(&self) -> usize {
        self.spans.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        *self = Spans::default();
    }
}

impl Encode for Converter {
    type Batch = Spans;

    fn add(&mut self, batch: &mut Spans, span: &SpanView<'_>) {
        let span = self.convert(span);
        batch.bytes += convert::weight(&span);
        batch.spans.push(span);
    }
}
