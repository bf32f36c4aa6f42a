//! What was read, compact and bounded: spans of fixed size by trace, their details as bytes.
//!
//! A span takes about 100 bytes of memory and its details some 60: names, keys and values that repeat
//! are kept once. Spans are only ever added, or replaced by what is known better of them
//! ([`Standing`]); so what was read in another order, or twice, or in pieces, gives the same.

use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{SpanKind, StatusCode};

mod batch;
mod chunks;
mod details;
mod encode;
mod facts;
mod glance;
mod insert;
mod known;
mod note;
mod only;
mod segments;
mod tables;
mod take;
mod value;

pub(crate) use batch::{Batch, Place, Standing};
use chunks::Chunks;
pub(crate) use encode::{Caches, Encoder, Head, Seen, part};
use facts::NO_LABEL;
pub(crate) use facts::{Facts, Label};
pub use facts::{Failure, Ident};
pub(crate) use glance::Glance;
pub(crate) use insert::seen;
pub use only::Only;
use only::Wanted;
pub(crate) use segments::Segments;
pub(crate) use tables::Tables;
pub use tables::{Name, Origin};
pub(crate) use value::{
    put_array_head, put_bool_value, put_bytes, put_double_value, put_int_value, put_number,
    put_text_value, put_value,
};

/// A span's number in its store. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanNumber(pub(crate) u32);

/// A trace's number in its store. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceNumber(pub(crate) u32);

/// All spans that were read.
#[derive(Debug)]
pub struct Store {
    tables: Mutex<Tables>,
    traces: Vec<Trace>,
    trace_places: HashTable<u32>,
    spans: Vec<Record>,
    span_places: HashTable<u32>,
    labels: Vec<Label>,
    facts: Vec<Facts>,
    failures: Vec<Failure>,
    /// For each trace the spans of other traces that link to it.
    linked: HashMap<TraceId, Vec<u32>>,
    chunks: Chunks,
    /// Spans of the batch that is being taken in that a later one of it replaced.
    superseded: u32,
    changed: Vec<TraceNumber>,
    /// Spans that were ended and are known better now, as they were when changes were last taken.
    replaced: HashMap<SpanNumber, Record>,
    version: u64,
    stats: Stats,
    max_bytes: usize,
    is_full: bool,
    wanted: Wanted,
    hasher: DefaultHashBuilder,
}

/// What a store counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Spans that are kept, open ones included.
    pub spans: usize,
    /// Traces that they are of.
    pub traces: usize,
    /// Spans that were there already, as senders repeat batches.
    pub duplicates: u64,
    /// Spans that were not kept, since the memory limit was reached.
    pub refused: u64,
    /// Spans that have ended.
    pub finished: usize,
    /// Bytes of memory, about.
    pub bytes: usize,
}

#[derive(Debug)]
struct Trace {
    id: TraceId,
    first: u32,
    last: u32,
    count: u32,
    is_changed: bool,
}

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
    /// Place in `labels`, or [`NONE`].
    pub(crate) label: u32,
    /// Place in `facts`, or [`NONE`].
    pub(crate) facts: u32,
    /// Place in `failures`, or [`NONE`].
    failure: u32,
    chunk: u32,
    at: u32,
    /// The next span of the trace, or [`NONE`].
    next: u32,
    pub(crate) kind: SpanKind,
    pub(crate) code: StatusCode,
    pub(crate) standing: Standing,
    pub(crate) depth: u8,
    pub(crate) is_failed: bool,
    pub(crate) is_lost: bool,
}

const NONE: u32 = u32::MAX;

impl Record {
    /// Whether it has not ended, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.standing < Standing::Over
    }

    /// Whether it is there with its end.
    pub(crate) fn is_finished(&self) -> bool {
        self.standing > Standing::Over
    }

    /// Nanoseconds from start to end; 0 if it ended before its start, as clocks do.
    pub(crate) fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

impl Store {
    /// An empty store that keeps no more than about so many bytes of spans. When there is too little
    /// room, details go that can be read again from their files; then further spans are refused.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            tables: Mutex::default(),
            traces: Vec::new(),
            trace_places: HashTable::new(),
            spans: Vec::new(),
            span_places: HashTable::new(),
            labels: Vec::new(),
            facts: Vec::new(),
            failures: Vec::new(),
            linked: HashMap::new(),
            chunks: Chunks::default(),
            superseded: 0,
            changed: Vec::new(),
            replaced: HashMap::new(),
            version: 0,
            stats: Stats::default(),
            max_bytes,
            is_full: false,
            wanted: Wanted::default(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// The tables, for encoders on other threads.
    pub(crate) fn shared_tables(&self) -> &Mutex<Tables> {
        &self.tables
    }

    /// The traces that have changed since this was last asked.
    pub fn take_changed(&mut self) -> Vec<TraceNumber> {
        for trace in &self.changed {
            self.traces[trace.0 as usize].is_changed = false;
        }
        std::mem::take(&mut self.changed)
    }

    /// Spans that were ended already and are known better now, as they were when this was last asked.
    pub(crate) fn take_replaced(&mut self) -> HashMap<SpanNumber, Record> {
        std::mem::take(&mut self.replaced)
    }

    /// A number that rises whenever something changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tables, for as long as other threads need them and this one does not.
    pub(crate) fn lend_tables(&mut self) -> Mutex<Tables> {
        std::mem::take(&mut self.tables)
    }

    pub(crate) fn return_tables(&mut self, tables: Mutex<Tables>) {
        self.tables = tables;
    }

    /// Whether a span is there with its end.
    pub(crate) fn has_end(&self, trace: TraceId, id: SpanId) -> bool {
        self.find_span(trace, id).is_some_and(|span| self.record(span).is_finished())
    }

    /// Says of an open span that its process is gone.
    pub(crate) fn lose(&mut self, span: SpanNumber) {
        let record = &mut self.spans[span.0 as usize];
        if record.standing == Standing::Recorded && !record.is_lost {
            record.is_lost = true;
            let trace = record.trace;
            self.mark_changed(trace);
        }
    }

    /// Says of an open span of a recording that it is there no more, and not known to have ended.
    pub(crate) fn end_unknown(&mut self, span: SpanNumber, at: u64) {
        let record = &mut self.spans[span.0 as usize];
        if record.standing == Standing::Recorded {
            (record.standing, record.end) = (Standing::Over, at);
            let trace = record.trace;
            self.mark_changed(trace);
        }
    }

    /// What it counts.
    pub fn stats(&self) -> Stats {
        Stats {
            spans: self.spans.len(),
            traces: self.traces.len(),
            bytes: self.bytes(),
            ..self.stats
        }
    }

    /// Every trace, in the order in which they were met.
    pub fn traces(&self) -> impl ExactSizeIterator<Item = TraceNumber> + use<> {
        (0..self.traces.len() as u32).map(TraceNumber)
    }

    /// The number of a trace.
    pub fn find_trace(&self, id: TraceId) -> Option<TraceNumber> {
        let hash = self.hasher.hash_one(id);
        let place =
            self.trace_places.find(hash, |&number| self.traces[number as usize].id == id)?;
        Some(TraceNumber(*place))
    }

    /// The id of a trace.
    pub fn trace_id(&self, trace: TraceNumber) -> TraceId {
        self.traces[trace.0 as usize].id
    }

    /// The spans of a trace, in the order in which they were met.
    pub fn spans_of(&self, trace: TraceNumber) -> impl Iterator<Item = SpanNumber> {
        let first = self.traces[trace.0 as usize].first;
        let next = move |number: &u32| link(self.spans[*number as usize].next);
        std::iter::successors(link(first), next).map(SpanNumber)
    }

    /// The number of a span.
    pub fn find_span(&self, trace: TraceId, id: SpanId) -> Option<SpanNumber> {
        let trace = self.find_trace(trace)?;
        self.place_of(trace.0, id).map(SpanNumber)
    }

    /// How many spans a trace has.
    pub fn len_of(&self, trace: TraceNumber) -> usize {
        self.traces[trace.0 as usize].count as usize
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> String {
        self.with_text(name, str::to_owned)
    }

    /// Calls a function with the text of a name.
    pub(crate) fn with_text<R>(&self, name: Name, call: impl FnOnce(&str) -> R) -> R {
        call(encode::lock(&self.tables).text(name))
    }

    /// The stage of a span.
    pub fn stage(&self, span: SpanNumber) -> Name {
        self.record(span).stage
    }

    /// What went wrong in a span, as it says itself; `None` if nothing did.
    pub fn failure(&self, span: SpanNumber) -> Option<Failure> {
        let record = self.record(span);
        record.is_failed.then(|| self.failure_of(record))
    }

    /// Every process and library.
    pub fn origins(&self) -> Vec<Origin> {
        encode::lock(&self.tables).origins.clone()
    }

    /// Who recorded a span, by the number in its record.
    pub(crate) fn origin(&self, number: u32) -> Origin {
        encode::lock(&self.tables).origins.get(number as usize).cloned().unwrap_or_default()
    }

    pub(crate) fn record(&self, span: SpanNumber) -> &Record {
        &self.spans[span.0 as usize]
    }

    /// Whose the span is, as it says itself.
    pub(crate) fn label(&self, record: &Record) -> &Label {
        self.label_at(record.label)
    }

    pub(crate) fn label_at(&self, place: u32) -> &Label {
        self.labels.get(place as usize).unwrap_or(NO_LABEL)
    }

    /// What went wrong in it, as it says itself.
    pub(crate) fn failure_of(&self, record: &Record) -> Failure {
        self.failures.get(record.failure as usize).copied().unwrap_or_default()
    }

    /// How it went, as it says itself.
    pub(crate) fn facts(&self, record: &Record) -> Facts {
        self.facts_at(record.facts)
    }

    pub(crate) fn facts_at(&self, place: u32) -> Facts {
        self.facts.get(place as usize).copied().unwrap_or_default()
    }

    fn details(&self, record: &Record) -> &[u8] {
        self.chunks.get(record.chunk).get(record.at as usize..).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        size_of::<Record>() * self.spans.capacity()
            + size_of::<Trace>() * self.traces.capacity()
            + size_of::<Label>() * self.labels.capacity()
            + size_of::<Facts>() * self.facts.capacity()
            + size_of::<Failure>() * self.failures.capacity()
            + 5 * (self.trace_places.capacity() + self.span_places.capacity())
            + 56 * self.linked.capacity()
            + self.chunks.bytes()
            + self.tables.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }

    fn place_of(&self, trace: u32, id: SpanId) -> Option<u32> {
        let is_it = |&number: &u32| {
            let span = &self.spans[number as usize];
            span.trace == trace && span.id == id
        };
        self.span_places.find(self.hasher.hash_one((trace, id)), is_it).copied()
    }

    fn mark_changed(&mut self, trace: u32) {
        self.version += 1;
        let of_trace = &mut self.traces[trace as usize];
        if !std::mem::replace(&mut of_trace.is_changed, true) {
            self.changed.push(TraceNumber(trace));
        }
    }
}

impl Default for Store {
    /// A store of at most 4 GiB.
    fn default() -> Self {
        Self::new(4 << 30)
    }
}

fn link(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != NONE)
}
