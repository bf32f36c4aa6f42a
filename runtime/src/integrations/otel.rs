//! OpenTelemetry: any span exporter of `opentelemetry_sdk` as a way out. Feature `otel`.
//!
//! ```no_run
//! use stagetrace::{TraceConfig, init_with, otel};
//!
//! # fn main() -> Result<(), stagetrace::InitError> {
//! let console = otel::exporter("console", opentelemetry_stdout::SpanExporter::default());
//! let _trace = init_with(TraceConfig::from_env()?.service_name("diffusion"), [console])?;
//! # Ok(())
//! # }
//! ```
//!
//! This is for exporters that stagetrace does not know. Each runs inside a private tokio runtime, so that it needs none
//! of the program's and may block; a call that is not ready in time is cancelled. Nothing that it does on its threads is
//! traced: not here, not by the OpenTelemetry SDK, and what it reports through `tracing` does not reach the program's
//! subscriber.

use crate::export::{self, Exporter};
use opentelemetry_sdk::trace::SpanExporter;
use std::convert::Infallible;
use std::fmt;

/// An [`Exporter`] that hands its spans to this one, as `SpanData`.
///
/// The name is that of its [`SinkStatus`](crate::SinkStatus), and appears in complaints. Nothing of the exporter is
/// called yet.
pub fn exporter(name: &'static str, exporter: impl SpanExporter + 'static) -> Exporter {
    build(name, || Ok::<_, Infallible>(exporter))
}

/// One that is built on its own thread, inside its private runtime: for exporters that take hold of a runtime when they
/// are built, as those over gRPC do. Of the program's own they would export only while that one runs.
///
/// If it cannot be built, that is said on standard error, and all its spans count as failed.
pub fn build<E: SpanExporter + 'static, P: fmt::Display>(
    name: &'static str,
    build: impl FnOnce() -> Result<E, P> + Send + 'static,
) -> Exporter {
    let build = || build().map_err(|problem| problem.to_string());
    Exporter::new(name, export::through(name, build))
}
