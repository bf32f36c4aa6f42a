//! The words of spans and side records, copied out of their chunks.

use crate::id::{SpanId, TraceId};
use crate::recording::layout::slot;
use crate::recording::value::{self, ValueRef};

/// The words of a span: its slot, then its inline attributes.
#[derive(Clone, Debug)]
pub(super) struct Record(pub(super) Box<[u64]>);

/// A side record of a span.
#[derive(Clone, Debug)]
pub(super) struct Detail {
    pub(super) kind: u64,
    pub(super) ticks: u64,
    /// The record's payload.
    pub(super) words: Box<[u64]>,
    /// When it was reported, in nanoseconds since 1970.
    pub(super) time: u64,
}

impl Record {
    pub(super) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(super) fn flag(&self, flag: u8) -> bool {
        (self.word(slot::META) >> 56) as u8 & flag != 0
    }

    /// Trace and span; `None` if one of them is no id.
    pub(super) fn identity(&self) -> Option<(TraceId, SpanId)> {
        let (upper, lower) = (self.word(slot::TRACE), self.word(slot::TRACE + 1));
        let trace = TraceId::from_u128(u128::from(upper) << 64 | u128::from(lower))?;
        Some((trace, SpanId::from_u64(self.word(slot::SPAN))?))
    }

    pub(super) fn site(&self) -> u32 {
        self.word(slot::META) as u32
    }

    /// Number of its request's root, 0 for none.
    pub(super) fn root(&self) -> u64 {
        self.word(slot::LIFE) & slot::ROOT_MASK
    }

    pub(super) fn sides(&self) -> usize {
        slot::sides(self.word(slot::LIFE)) as usize
    }

    /// The W3C flags of its trace, as they are exported.
    pub(super) fn trace_flags(&self) -> u8 {
        slot::exported_flags(self.word(slot::LIFE))
    }

    pub(super) fn has_remote_parent(&self) -> bool {
        self.word(slot::LIFE) & slot::REMOTE != 0
    }

    pub(super) fn mark(&self, mark: u64) -> bool {
        self.word(slot::LIFE) & mark != 0
    }

    pub(super) fn is_open(&self) -> bool {
        self.word(slot::END) == 0
    }

    /// Code of its outcome. One that is about to end has none yet, though its word may say so.
    pub(super) fn outcome(&self) -> u8 {
        if self.is_open() { 0 } else { slot::outcome(self.word(slot::LIFE)) }
    }

    pub(super) fn inline(&self) -> impl Iterator<Item = (usize, ValueRef<'_>)> {
        let words = self.0.get(slot::WORDS..).unwrap_or_default();
        value::inline((self.word(slot::META) >> 48) as u8, words)
    }
}

impl Detail {
    /// The side record with these words.
    pub(super) fn new(words: &[u64]) -> Detail {
        Detail {
            kind: words[slot::END],
            ticks: words[slot::BEGIN],
            words: words[slot::WORDS..].into(),
            time: 0,
        }
    }
}
