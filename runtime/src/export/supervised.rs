//! Sinks that hand batches to something that may do whatever it likes, without holding up anybody.
//!
//! - The collector's thread fills batches and puts them into a bounded queue; it never waits, and it is the one that
//!   finds out that an exporter hangs. A batch that is not full yet is taken back and filled further.
//! - The exporter's own thread runs every call into it, one after another, with panics contained.
//!
//! An exporter that never returns keeps its own thread, which nobody waits for; its spans are dropped and counted.

mod courier;
mod failure;
mod filling;
#[cfg(feature = "_network")]
mod news;
#[cfg(feature = "metrics")]
mod operation;
mod queue;
pub(super) mod silence;
mod state;

use crate::collect::{Run, Sink, SpanView, Standing};
use crate::config::Batching;
use crate::error::SinkError;
use crate::stats::SinkStatus;
pub(super) use failure::Failure;
use filling::Filling;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "otel")]
pub(super) use courier::run;
pub(super) use courier::start;
#[cfg(any(feature = "metrics", feature = "otel", feature = "_network"))]
pub(super) use failure::Cause;
#[cfg(feature = "_network")]
pub(super) use news::{Asked, Ear, Listen, News};
#[cfg(feature = "metrics")]
pub(crate) use operation::on_each;
pub(super) use queue::Queue;

/// Bytes after which a batch is let go, so that what is sent stays below the 4 MiB that receivers accept by default.
const BATCH_BYTES: usize = 2 << 20;
/// Bytes that wait for an exporter at most, and so those of the largest span.
const QUEUE_BYTES: usize = 16 << 20;

/// Spans that are sent together.
pub(super) trait Batch: Default + Send + 'static {
    /// How many there are.
    fn spans(&self) -> usize;

    /// About how many bytes they take: not less than when they are sent.
    fn bytes(&self) -> usize;

    /// Forgets them, so that the memory can serve again.
    fn clear(&mut self);
}

/// Turns spans into what a batch holds.
pub(super) trait Encode: Send {
    type Batch: Batch;

    /// Adds a span to a batch.
    fn add(&mut self, batch: &mut Self::Batch, span: &SpanView<'_>);

    /// Adds plain spans.
    fn add_run(&mut self, batch: &mut Self::Batch, run: &Run<'_>) {
        run.views().for_each(|span| self.add(batch, &span));
    }
}

/// What takes batches. Called on a thread of its own; it may block, fail and panic.
pub(super) trait Outlet<B> {
    /// Called first.
    fn open(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Lets a batch go, within this time if it can be cancelled.
    fn export(&mut self, batch: &mut B, within: Duration, queue: &Queue<B>) -> Result<(), Failure>;

    /// What was lost of the last batch though the rest of it left: spans, and to what.
    fn losses(&mut self) -> Vec<(u64, Failure)> {
        Vec::new()
    }

    /// Whether it tells by itself how long its attempts take.
    fn times_itself(&self) -> bool {
        false
    }

    /// Whether it keeps something itself that it can work on while nothing else is due.
    fn has_work(&self) -> bool {
        false
    }

    /// Works on that: for one attempt at most, and until it is asked to flush.
    fn work(&mut self, _queue: &Queue<B>) {}

    /// Lets go of what it keeps itself, by then if it can.
    fn flush(&mut self, _queue: &Queue<B>, _deadline: Instant) -> Result<(), Failure> {
        Ok(())
    }

    /// Called last.
    fn shutdown(&mut self, _within: Duration) -> Result<(), Failure> {
        Ok(())
    }
}

/// Makes an outlet, or says why it cannot be made.
pub(super) type Build<B> = Box<dyn FnOnce() -> Result<Box<dyn Outlet<B>>, String> + Send>;

/// The sink before an exporter.
pub(super) struct Supervised<E: Encode> {
    name: &'static str,
    encoder: E,
    queue: Arc<Queue<E::Batch>>,
    batch_size: usize,
    /// The batch at hand.
    filling: Option<Filling<E::Batch>>,
    handed: u64,
}

impl<E: Encode> Supervised<E> {
    /// A sink whose outlet has its thread from `start`, which runs [`courier::run`] there.
    pub(super) fn new(
        name: &'static str,
        encoder: E,
        batching: &Batching,
        start: impl FnOnce(&Arc<Queue<E::Batch>>) -> std::io::Result<()>,
    ) -> Supervised<E> {
        let queue = Arc::new(Queue::new(name, *batching));
        if let Err(error) = start(&queue) {
            queue.close(Some(&format!("its thread cannot start: {error}")));
        }
        let batch_size = batching.max_export_batch_size;
        Supervised { name, encoder, queue, batch_size, filling: None, handed: 0 }
    }

    /// A sink whose outlet is there already and needs nothing but a thread.
    pub(super) fn on_own_thread(
        name: &'static str,
        encoder: E,
        batching: &Batching,
        outlet: impl Outlet<E::Batch> + Send + 'static,
    ) -> Supervised<E> {
        Supervised::new(name, encoder, batching, |queue| {
            start(Box::new(|| Ok(Box::new(outlet))), queue)
        })
    }

    fn put(&mut self) {
        if let Some(filling) = self.filling.take() {
            self.queue.put(filling);
        }
    }
}

impl<E: Encode> Sink for Supervised<E> {
    fn add(&mut self, span: &SpanView<'_>) -> bool {
        self.handed += 1;
        let bytes = span.bytes();
        // A large span gets a batch of its own: who refuses it shall not refuse its neighbours.
        if let Some(filling) = &mut self.filling
            && filling.batch.spans() > 0
            && filling.batch.bytes() + bytes > BATCH_BYTES
        {
            filling.closed = true;
            self.put();
        }
        let filling = self.filling.get_or_insert_with(|| self.queue.fill());
        if filling.admits(bytes) {
            self.encoder.add(&mut filling.batch, span);
        }
        filling.batch.spans() >= self.batch_size || filling.batch.bytes() >= BATCH_BYTES
    }

    fn add_run(&mut self, run: &Run<'_>) -> bool {
        let mut left = *run;
        while left.spans() > 0 {
            let filling = self.filling.get_or_insert_with(|| self.queue.fill());
            let room = self.batch_size.saturating_sub(filling.batch.spans()).max(1);
            let (now, later) = left.split_at(room);
            if filling.has_room(now.spans(), now.bytes()) {
                self.handed += now.spans() as u64;
                self.encoder.add_run(&mut filling.batch, &now);
                if filling.batch.spans() >= self.batch_size || filling.batch.bytes() >= BATCH_BYTES
                {
                    self.put();
                }
            } else {
                for span in now.views() {
                    if self.add(&span) {
                        self.put();
                    }
                }
            }
            left = later;
        }
        false
    }

    fn commit(&mut self) -> Result<(), SinkError> {
        self.put();
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

    fn standing(&self) -> Standing {
        self.queue.standing()
    }

    fn status(&self) -> SinkStatus {
        let status = self.queue.status();
        let at_hand = self.filling.as_ref().map_or(0, Filling::spans);
        SinkStatus {
            name: self.name,
            handed: self.handed,
            queued: status.queued + at_hand,
            ..status
        }
    }
}

impl<E: Encode> Drop for Supervised<E> {
    fn drop(&mut self) {
        self.put();
        self.queue.flush(Instant::now(), true);
    }
}
