//! The way out through any `opentelemetry_sdk` span exporter: records → `SpanData`.
//!
//! Supervised as the others are. Besides the exporter's own thread, one drives the private runtime that its connections
//! and timers need.

mod batch;
mod convert;
mod keys;
mod outlet;
mod value;
mod weight;

use super::supervised::{Outlet, Supervised};
use crate::collect::OpenSink;
use batch::{Packer, Spans};
use convert::Converter;
use opentelemetry_sdk::trace::SpanExporter;
use outlet::{Build, OfSdk};

/// A sink that hands its spans to the exporter that `build` makes, on the exporter's own thread.
pub(crate) fn through<E: SpanExporter + 'static>(
    name: &'static str,
    build: impl FnOnce() -> Result<E, String> + Send + 'static,
) -> OpenSink {
    Box::new(move |opening| {
        let resource = value::resource(opening.resource);
        let build: Build = Box::new(move || {
            let outlet = OfSdk { exporter: build()?, resource, converter: Converter::default() };
            Ok(Box::new(outlet) as Box<dyn Outlet<Spans>>)
        });
        let start = |queue: &_| outlet::start(build, queue);
        Box::new(Supervised::new(name, Packer::new(), opening.batching, start))
    })
}
