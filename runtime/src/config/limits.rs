//! How much one span may hold, and how spans are batched.

use std::time::Duration;

/// How much one span may hold. What is beyond is dropped and counted on the span.
///
/// Each default is OpenTelemetry's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanLimits {
    /// Attributes of a span: 128.
    pub attributes: usize,
    /// Longest text value in Unicode characters; longer ones are cut. No limit by default.
    pub attribute_length: Option<usize>,
    /// Events of a span: 128.
    pub events: usize,
    /// Links of a span: 128.
    pub links: usize,
    /// Attributes of an event: 128.
    pub attributes_per_event: usize,
    /// Attributes of a link: 128.
    pub attributes_per_link: usize,
}

impl Default for SpanLimits {
    fn default() -> Self {
        Self {
            attributes: 128,
            attribute_length: None,
            events: 128,
            links: 128,
            attributes_per_event: 128,
            attributes_per_link: 128,
        }
    }
}

/// How spans are gathered for exporters that send batches. The local files do not wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batching {
    /// Longest time that an ended span waits for its batch to fill: 5 s.
    pub schedule_delay: Duration,
    /// Longest time that one export may take: 30 s.
    pub export_timeout: Duration,
    /// Most spans that wait for an exporter. By default only their bytes are bounded.
    pub max_queue_size: Option<usize>,
    /// Most spans in one batch: 512. Never more than the queue holds, never less than 1.
    pub max_export_batch_size: usize,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            schedule_delay: Duration::from_millis(5_000),
            export_timeout: Duration::from_millis(30_000),
            max_queue_size: None,
            max_export_batch_size: 512,
        }
    }
}

impl Batching {
    /// With a queue of at least one span and a batch that fits into it.
    pub(super) fn fitted(mut self) -> Self {
        self.max_queue_size = self.max_queue_size.map(|size| size.max(1));
        let most = self.max_queue_size.unwrap_or(usize::MAX);
        self.max_export_batch_size = self.max_export_batch_size.clamp(1, most);
        self
    }
}

/// How much may wait on disk for a server that takes no spans, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutboxLimits {
    /// 0: nothing.
    pub(crate) max_bytes: u64,
    pub(crate) max_age: Duration,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        // Half an hour of 1000 spans a second; and later than a day nobody looks for them.
        Self { max_bytes: 256 << 20, max_age: Duration::from_secs(24 * 60 * 60) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_fits_into_its_queue_and_holds_a_span() {
        let batching = |queue, batch| Batching {
            max_queue_size: queue,
            max_export_batch_size: batch,
            ..Batching::default()
        };
        assert_eq!(batching(Some(100), 512).fitted().max_export_batch_size, 100);
        assert_eq!(batching(Some(2048), 512).fitted().max_export_batch_size, 512);
        assert_eq!(batching(None, 0).fitted().max_export_batch_size, 1);
        assert_eq!(batching(Some(0), 0).fitted(), batching(Some(1), 1));
    }
}
