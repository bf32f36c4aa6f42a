//! The way out through any `opentelemetry_sdk` span exporter.
//!
//! Three threads, so that an exporter can do whatever it likes without holding up anybody:
//!
//! - the collector's converts spans and puts them into a bounded queue; it never waits, and it is
//!   the one that finds out that an exporter hangs;
//! - the exporter's own runs every call into it, one after another, with a deadline and with panics
//!   contained;
//! - one drives the private runtime that the exporter's connections and timers need.
//!
//! An exporter that never returns keeps its own thread, which nobody waits for; its spans are
//! dropped and counted.

mod convert;
mod courier;
mod failure;
mod queue;
mod silence;
mod state;

use crate::collect::{OpenSink, Sink, SpanView};
use crate::config::Batching;
use crate::error::SinkError;
use crate::stats::SinkStatus;
use convert::Converter;
use courier::{Build, Outlet};
use opentelemetry_sdk::trace::SpanExporter;
use queue::Queue;
use stagetrace_wire::span::Resource;
use state::Waiting;
use std::sync::Arc;
use std::time::Instant;

/// Bytes after which a batch is let go, so that what is sent stays below the 4 MiB that receivers
/// accept by default.
const BATCH_BYTES: usize = 2 << 20;
/// Bytes that wait for an exporter at most.
const QUEUE_BYTES: usize = 16 << 20;

/// A sink that hands its spans to the exporter that `build` makes, on the exporter's own thread.
pub(crate) fn through<E: SpanExporter + 'static>(
    name: &'static str,
    build: impl FnOnce() -> Result<E, String> + Send + 'static,
) -> OpenSink {
    let build: Build = Box::new(|| Ok(Box::new(build()?) as Box<dyn Outlet>));
    Box::new(move |resource, batching| {
        Box::new(SpanDataSink::open(name, build, resource, batching))
    })
}

/// Hands spans to an exporter.
struct SpanDataSink {
    name: &'static str,
    converter: Converter,
    /// The batch at hand.
    spans: Vec<Waiting>,
    bytes: usize,
    batch_size: usize,
    queue: Arc<Queue>,
    handed: u64,
}

impl SpanDataSink {
    fn open(
        name: &'static str,
        build: Build,
        resource: &Resource,
        batching: &Batching,
    ) -> SpanDataSink {
        let queue = Arc::new(Queue::new(name, *batching));
        if let Err(error) = courier::start(build, convert::resource(resource), &queue) {
            queue.close(Some(&format!("its thread cannot start: {error}")));
        }
        SpanDataSink {
            name,
            converter: Converter::new(),
            spans: Vec::new(),
            bytes: 0,
            batch_size: batching.max_export_batch_size,
            queue,
            handed: 0,
        }
    }
}

impl Sink for SpanDataSink {
    fn add(&mut self, span: &SpanView<'_>) {
        let span = Waiting::new(self.converter.convert(span));
        self.bytes += span.bytes();
        self.spans.push(span);
        self.handed += 1;
    }

    fn is_full(&self) -> bool {
        self.spans.len() >= self.batch_size || self.bytes >= BATCH_BYTES
    }

    fn commit(&mut self) -> Result<(), SinkError> {
        self.bytes = 0;
        self.queue.put(&mut self.spans);
        Ok(())
    }

    fn abandon(&mut self) {}

    fn begin_flush(&mut self, deadline: Instant, last: bool) {
        self.queue.flush(deadline, last);
    }

    fn is_flushing(&self) -> bool {
        self.queue.is_flushing()
    }

    fn flush(&mut self, _: Instant) -> Result<(), SinkError> {
        self.queue.verdict().map_err(|problem| SinkError { sink: self.name, problem })
    }

    fn status(&self) -> SinkStatus {
        let status = self.queue.status();
        let queued = status.queued + self.spans.len() as u64;
        SinkStatus { name: self.name, handed: self.handed, queued, ..status }
    }
}

impl Drop for SpanDataSink {
    fn drop(&mut self) {
        self.queue.flush(Instant::now(), true);
    }
}
