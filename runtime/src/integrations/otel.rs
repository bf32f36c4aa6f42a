//! OpenTelemetry: any span exporter of `opentelemetry_sdk` as a way out. Feature `otel`.
//!
//! ```no_run
//! use stagetrace::TraceConfig;
//! use stagetrace::otel::{Exporter, init_with};
//!
//! # fn main() -> Result<(), stagetrace::InitError> {
//! let console = Exporter::new("console", opentelemetry_stdout::SpanExporter::default());
//! let _trace = init_with(TraceConfig::from_env()?.service_name("diffusion"), [console])?;
//! # Ok(())
//! # }
//! ```
//!
//! Spans go out in batches, as `OTEL_BSP_*` or [`TraceConfig::batching`] say, beside the local file
//! and not instead of it. This is for exporters that stagetrace does not know.

use crate::collect::OpenSink;
use crate::config::TraceConfig;
use crate::error::InitError;
use crate::{export, init};
use opentelemetry_sdk::trace::SpanExporter;
use std::convert::Infallible;
use std::fmt;

/// A span exporter, supervised.
///
/// It runs on a thread of its own, inside a private tokio runtime, so that it needs none of the
/// program's and may block. It may fail, panic or never return: its spans are then counted as
/// failed in [`Stats`](crate::Stats), the first failure of each kind is said on standard error, and
/// nothing else is held up. Each export may take as long as `OTEL_BSP_EXPORT_TIMEOUT` says; of what
/// waits meanwhile at most 16 MiB are kept.
///
/// What it does on its threads is not traced, lest each export beget the next: not here, not by the
/// OpenTelemetry SDK, and what it reports through `tracing` does not reach the program's subscriber.
/// Threads that it starts by itself, as blocking HTTP clients do, are beyond that.
pub struct Exporter {
    name: &'static str,
    open: OpenSink,
}

impl Exporter {
    /// Names an exporter, for [`SinkStatus`](crate::SinkStatus) and complaints. Nothing of it is
    /// called yet.
    pub fn new(name: &'static str, exporter: impl SpanExporter + 'static) -> Exporter {
        Exporter::build(name, || Ok::<_, Infallible>(exporter))
    }

    /// One that is built on its own thread, inside its private runtime: for exporters that take
    /// hold of a runtime when they are built, as those over gRPC do. Of the program's own they
    /// would export only while that one runs.
    ///
    /// If it cannot be built, that is said on standard error, and all its spans count as failed.
    pub fn build<E: SpanExporter + 'static, P: fmt::Display>(
        name: &'static str,
        build: impl FnOnce() -> Result<E, P> + Send + 'static,
    ) -> Exporter {
        let build = || build().map_err(|problem| problem.to_string());
        Exporter { name, open: export::through(name, build) }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exporter").field(&self.name).finish()
    }
}

/// [`init`](crate::init), with exporters. They get the resource of this process, are flushed by
/// [`flush`](crate::flush) and shut down with the guard.
///
/// # Errors
/// Those of [`init`](crate::init). An exporter is never one: see [`status`](crate::status).
pub fn init_with(
    config: TraceConfig,
    exporters: impl IntoIterator<Item = Exporter>,
) -> Result<init::TraceGuard, InitError> {
    init::start(config, exporters.into_iter().map(|exporter| exporter.open).collect())
}
