//! A span in fixed form: as it is asked for, and as it is kept, in 64 bytes.

use stagetrace_wire::id::SpanId;
use stagetrace_wire::span::{SpanKind, StatusCode};

use super::batch::Standing;
use super::classes::Class;
use super::facts::Failure;
use super::tables::Name;

/// A span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) trace: u32,
    pub(crate) name: Name,
    pub(crate) stage: Name,
    pub(crate) origin: u32,
    /// The place of what says whose it is, or [`NONE`].
    pub(crate) label: u32,
    /// The place of what says how it went, or [`NONE`].
    pub(crate) facts: u32,
    /// What went wrong, as it says itself.
    pub(crate) failure: Failure,
    pub(crate) kind: SpanKind,
    pub(crate) code: StatusCode,
    pub(crate) standing: Standing,
    pub(crate) depth: u8,
    pub(crate) is_failed: bool,
    pub(crate) is_lost: bool,
}

/// A span as it is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) trace: u32,
    /// The number of its class.
    pub(super) class: u32,
    /// Places among the marks, or [`NONE`].
    pub(super) label: u32,
    pub(super) facts: u32,
    /// Where its details are.
    pub(super) chunk: u32,
    pub(super) at: u32,
    /// The next span of the trace, or [`NONE`].
    pub(super) next: u32,
    pub(super) standing: Standing,
    pub(super) is_lost: bool,
}

pub(super) const NONE: u32 = u32::MAX;

const _: () = assert!(size_of::<Kept>() == 64, "millions of them are kept");

impl Record {
    pub(super) fn new(kept: &Kept, class: &Class) -> Self {
        Self {
            id: kept.id,
            parent: kept.parent,
            start: kept.start,
            end: kept.end,
            trace: kept.trace,
            name: class.name,
            stage: class.stage,
            origin: class.origin,
            label: kept.label,
            facts: kept.facts,
            failure: class.failure,
            kind: class.kind,
            code: class.code,
            standing: kept.standing,
            depth: class.depth,
            is_failed: class.is_failed,
            is_lost: kept.is_lost,
        }
    }

    /// Whether it has not ended, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.standing.is_open()
    }

    /// Whether it is there with its end.
    pub(crate) fn is_finished(&self) -> bool {
        self.standing.is_finished()
    }

    /// Nanoseconds from start to end; 0 if it ended before its start, as clocks do.
    pub(crate) fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}
