//! How far the reading is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How much was read, and how much there is, for whoever watches from another thread. Counted over all
/// polls; recordings are not counted.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    bytes: AtomicU64,
    spans: AtomicU64,
}

impl Progress {
    /// Bytes of files that there are to be read, those that were read included.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Bytes of files that were read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Spans in them.
    pub fn spans(&self) -> u64 {
        self.spans.load(Relaxed)
    }

    /// Says how many bytes are left.
    pub(super) fn expect(&self, left: u64) {
        self.total.store(self.bytes().saturating_add(left), Relaxed);
    }

    pub(super) fn add(&self, bytes: u64, spans: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.spans.fetch_add(spans as u64, Relaxed);
    }
}
