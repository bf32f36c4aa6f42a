//! The batch at hand: what may still come to it.

use super::{BATCH_BYTES, Batch, QUEUE_BYTES};
use std::time::Instant;

/// A batch that the collector fills. It is out of the queue meanwhile.
#[derive(Debug)]
pub(super) struct Filling<B> {
    pub(super) batch: B,
    /// When its first span came.
    pub(super) since: Instant,
    /// Spans that came before it, and that were in it before.
    pub(super) first: u64,
    pub(super) before: usize,
    /// Spans and bytes that it may have in all.
    pub(super) most: (usize, usize),
    /// Nothing more shall come to it, though it is not full.
    pub(super) closed: bool,
    /// Spans that found no room.
    pub(super) refused: u64,
    /// Spans that never find room.
    pub(super) too_large: u64,
}

impl<B> Filling<B> {
    /// Spans that came to it.
    pub(super) fn spans(&self) -> u64
    where
        B: Batch,
    {
        self.batch.spans() as u64 + self.refused + self.too_large
    }

    /// Whether there is room for spans of so many bytes in all, and they are not too much for one batch.
    pub(super) fn has_room(&self, spans: usize, bytes: usize) -> bool
    where
        B: Batch,
    {
        let bytes = self.batch.bytes() + bytes;
        self.batch.spans() + spans <= self.most.0 && bytes <= self.most.1.min(BATCH_BYTES)
    }

    /// Whether there is room for a span of so many bytes; if not, it counts as lost.
    pub(super) fn admits(&mut self, bytes: usize) -> bool
    where
        B: Batch,
    {
        let (spans, room) = self.most;
        let fits_anywhere = bytes <= QUEUE_BYTES;
        let admits = self.batch.spans() < spans && self.batch.bytes() + bytes <= room;
        self.too_large += u64::from(!fits_anywhere);
        self.refused += u64::from(fits_anywhere && !admits);
        admits
    }
}
