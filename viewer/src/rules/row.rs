//! A sample in 64 bytes, as it is kept.

use super::sample::{Current, Sample};
use super::status::Status;
use crate::store::{Facts, Ident, Label, Name, SpanNumber, Store, TraceNumber};

/// A sample or request as it stands, without what its spans say already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// When the root began, if there is one.
    pub(super) start: u64,
    /// Nanoseconds of the root, if it has ended.
    pub(super) duration: u64,
    pub(super) trace: u32,
    /// A place in the store's labels, if a span says all of the sample, or [`NONE`].
    pub(super) label: u32,
    /// A place in the store's facts, if a span says all of the sample, or [`NONE`].
    pub(super) facts: u32,
    /// The number of its step, or [`NONE`].
    pub(super) step: u32,
    /// Spans, or [`NONE`].
    pub(super) root: u32,
    pub(super) last_finished: u32,
    pub(super) error: u32,
    pub(super) current: u32,
    /// The stage of the current span.
    pub(super) stage: u32,
    pub(super) finished_spans: u32,
    /// The code of a [`Status`].
    pub(super) status: u32,
    pub(super) flags: u8,
}

/// What few samples have.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    /// What its spans say together, where none of them says all.
    pub(super) label: Label,
    pub(super) facts: Facts,
    pub(super) left_open: Box<[SpanNumber]>,
    pub(super) lost_spans: u32,
}

pub(super) const NONE: u32 = u32::MAX;

pub(super) mod flag {
    pub(in crate::rules) const OPEN: u8 = 1;
    pub(in crate::rules) const ENDED: u8 = 2;
    pub(in crate::rules) const NOT_EXPORTED: u8 = 4;
    /// There is an [`Extra`](super::Extra) of it.
    pub(in crate::rules) const EXTRA: u8 = 8;
    /// The next row is of the same trace.
    pub(in crate::rules) const MORE: u8 = 16;
}

const _: () = assert!(size_of::<Row>() == 64, "millions of them are kept");

/// A sample as it is kept: cheap to look at by the million. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct SampleRow<'a> {
    pub(super) row: &'a Row,
    pub(super) extra: Option<&'a Extra>,
}

impl<'a> SampleRow<'a> {
    /// All that is known of it. Takes no memory, unless spans were left open.
    pub fn sample(&self, store: &Store) -> Sample {
        let label = self.label(store);
        Sample {
            trace: self.trace(),
            rollout: label.rollout(),
            request: label.request(),
            group: label.group(),
            step: label.step(),
            attempt: label.attempt(),
            session: label.session(),
            task: label.task(),
            status: self.status(),
            is_open: self.is_open(),
            root: self.root(),
            finished_spans: self.finished_spans(),
            start: self.start(),
            duration: self.duration(),
            current: self.current().map(|(span, stage)| {
                let since = store.record(span).start;
                Current { span, stage, since }
            }),
            last_finished: self.last_finished(),
            left_open: self.extra.map_or(Vec::new(), |extra| extra.left_open.to_vec()),
            lost_spans: self.extra.map_or(0, |extra| extra.lost_spans),
            error: self.error(),
            result_not_exported: self.result_not_exported(),
            facts: self.facts(store),
        }
    }

    /// Its trace.
    pub fn trace(&self) -> TraceNumber {
        TraceNumber(self.row.trace)
    }

    /// The id of the rollout; `None` for a request.
    pub fn rollout(&self, store: &Store) -> Option<Ident> {
        self.label(store).rollout()
    }

    /// The group: samples of one prompt.
    pub fn group(&self, store: &Store) -> Option<Ident> {
        self.label(store).group()
    }

    /// The step of training that it is for.
    pub fn step(&self, store: &Store) -> Option<Ident> {
        self.label(store).step()
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        Status::of_code(self.row.status)
    }

    /// Whether its root has not ended, and its process is not known to have died.
    pub fn is_open(&self) -> bool {
        self.row.has(flag::OPEN)
    }

    /// The root, if it is known.
    pub fn root(&self) -> Option<SpanNumber> {
        span(self.row.root)
    }

    /// When the root began, since 1970.
    pub fn start(&self) -> Option<u64> {
        self.root().map(|_| self.row.start)
    }

    /// From begin to end of the root, once it has ended.
    pub fn duration(&self) -> Option<u64> {
        self.row.has(flag::ENDED).then_some(self.row.duration)
    }

    /// The deepest open span of an open sample, and its stage.
    pub fn current(&self) -> Option<(SpanNumber, Name)> {
        span(self.row.current).map(|span| (span, Name(self.row.stage)))
    }

    /// The span in which what went wrong arose.
    pub fn error(&self) -> Option<SpanNumber> {
        span(self.row.error)
    }

    /// The span that ended last.
    pub fn last_finished(&self) -> Option<SpanNumber> {
        span(self.row.last_finished)
    }

    /// Spans that are there with their ends.
    pub fn finished_spans(&self) -> u32 {
        self.row.finished_spans
    }

    /// The root is known to have ended, but never came.
    pub fn result_not_exported(&self) -> bool {
        self.row.has(flag::NOT_EXPORTED)
    }

    /// Spans that are open though the root has ended.
    pub fn left_open(&self) -> &'a [SpanNumber] {
        self.extra.map_or(&[], |extra| &extra.left_open)
    }

    /// The reward, if it got one.
    pub fn reward(&self, store: &Store) -> Option<f64> {
        self.facts(store).reward()
    }

    pub(super) fn facts(&self, store: &Store) -> Facts {
        self.extra.map_or_else(|| store.facts_at(self.row.facts), |extra| extra.facts)
    }

    fn label<'b>(&self, store: &'b Store) -> &'b Label
    where
        'a: 'b,
    {
        self.row.label(store, self.extra)
    }
}

impl Row {
    pub(super) fn label<'a>(&self, store: &'a Store, extra: Option<&'a Extra>) -> &'a Label {
        extra.map_or_else(|| store.label_at(self.label), |extra| &extra.label)
    }

    pub(super) fn has(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }
}

fn span(number: u32) -> Option<SpanNumber> {
    (number != NONE).then_some(SpanNumber(number))
}

impl Extra {
    pub(super) fn bytes(&self) -> usize {
        size_of::<(u32, Self)>() + size_of_val(&*self.left_open)
    }
}
