//! What was read, compact and bounded: spans of fixed size by trace, their details as bytes.
//!
//! A span takes about 80 bytes of memory and its details some 60: names, keys and values that repeat
//! are kept once, and so is what spans of one class have in common. Spans are only ever added, or replaced by what is known better of them
//! ([`Standing`]); so what was read in another order, or twice, or in pieces, gives the same.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use stagetrace_wire::id::{SpanId, TraceId};

mod arena;
mod batch;
mod chunks;
mod classes;
mod details;
mod encode;
mod facts;
mod glance;
mod insert;
mod known;
mod note;
mod only;
mod record;
mod room;
mod segments;
mod tables;
mod take;
mod value;

use arena::Arena;
pub(crate) use batch::{Batch, Place, Standing};
use chunks::Chunks;
use classes::Classes;
pub(crate) use encode::{Caches, Encoder, Head, Seen, part};
pub(crate) use facts::{Facts, Label};
pub use facts::{Failure, Ident};
pub(crate) use glance::Glance;
pub(crate) use insert::seen;
pub use only::Only;
use only::Wanted;
pub(crate) use record::Record;
use record::{Kept, NONE};
use room::Room;
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
    tables: Arc<Mutex<Tables>>,
    traces: Segments<Trace>,
    trace_places: HashTable<u32>,
    spans: Segments<Kept>,
    /// Spans of traces that have many; the others are looked for one by one.
    span_places: HashTable<u32>,
    classes: Classes,
    /// Labels and facts.
    marks: Arena,
    /// Labels that are in it.
    labels: usize,
    /// For each trace the spans of other traces that link to it.
    linked: HashMap<TraceId, Vec<u32>>,
    chunks: Chunks,
    /// Spans of the batch that is being taken in that a later one of it replaced.
    superseded: u32,
    changed: Vec<TraceNumber>,
    /// Spans that were ended and are known better now, as they were when changes were last taken.
    replaced: HashMap<SpanNumber, Kept>,
    /// Spans that there were then.
    looked_at: usize,
    version: u64,
    stats: Stats,
    room: Room,
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

/// Spans of a trace up to which looking at each is faster than a table.
const FEW: u32 = 8;

impl Store {
    /// An empty store that keeps no more than about so many bytes, what is found by rules included. When
    /// there is too little room, details go that can be read again from their files; then further spans
    /// are refused.
    pub fn new(max_bytes: usize) -> Self {
        let mut tables = Tables::default();
        tables.grow_by(room::names_of(max_bytes));
        Self {
            tables: Arc::new(tables.into()),
            traces: Segments::default(),
            trace_places: HashTable::new(),
            spans: Segments::default(),
            span_places: HashTable::new(),
            classes: Classes::default(),
            marks: Arena::default(),
            labels: 0,
            linked: HashMap::new(),
            chunks: Chunks::new(max_bytes),
            superseded: 0,
            changed: Vec::new(),
            replaced: HashMap::new(),
            looked_at: 0,
            version: 0,
            stats: Stats::default(),
            room: Room::new(max_bytes),
            wanted: Wanted::default(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// The tables, for encoders on other threads.
    pub(crate) fn shared_tables(&self) -> &Arc<Mutex<Tables>> {
        &self.tables
    }

    /// The traces that have changed since this was last asked.
    pub fn take_changed(&mut self) -> Vec<TraceNumber> {
        for trace in &self.changed {
            self.traces[trace.0 as usize].is_changed = false;
        }
        self.looked_at = self.spans.len();
        std::mem::take(&mut self.changed)
    }

    /// Spans that were ended already and are known better now, as they were when this was last asked.
    pub(crate) fn take_replaced(&mut self) -> HashMap<SpanNumber, Record> {
        let replaced = std::mem::take(&mut self.replaced).into_iter();
        replaced.map(|(number, kept)| (number, self.unpack(&kept))).collect()
    }

    /// A number that rises whenever something changes.
    pub fn version(&self) -> u64 {
        self.version
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

    /// The parent of a span, if it is there.
    pub(crate) fn parent(&self, span: SpanNumber) -> Option<SpanNumber> {
        let record = self.record(span);
        self.place_of(record.trace, record.parent?).map(SpanNumber)
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

    /// Calls a function with the texts of all names, which asks the store for nothing else.
    pub(crate) fn with_texts<R>(&self, call: impl FnOnce(&Tables) -> R) -> R {
        call(&encode::lock(&self.tables))
    }

    /// The names whose text is such a one.
    pub(crate) fn names_where(&self, is_one: impl Fn(&str) -> bool) -> HashSet<Name> {
        let tables = encode::lock(&self.tables);
        tables.names().filter(|(_, text)| is_one(text)).map(|(name, _)| name).collect()
    }

    /// The name that is this text, if there is one.
    pub(crate) fn find_name(&self, text: &str) -> Option<Name> {
        encode::lock(&self.tables).find_name(text)
    }

    /// The stage of a span.
    pub fn stage(&self, span: SpanNumber) -> Name {
        self.record(span).stage
    }

    /// What went wrong in a span, as it says itself; `None` if nothing did.
    pub fn failure(&self, span: SpanNumber) -> Option<Failure> {
        let record = self.record(span);
        record.is_failed.then_some(record.failure)
    }

    /// Every process and library.
    pub fn origins(&self) -> Vec<Origin> {
        encode::lock(&self.tables).origins.clone()
    }

    /// Who recorded a span, by the number in its record.
    pub(crate) fn origin(&self, number: u32) -> Origin {
        encode::lock(&self.tables).origins.get(number as usize).cloned().unwrap_or_default()
    }

    pub(crate) fn record(&self, span: SpanNumber) -> Record {
        self.unpack(&self.spans[span.0 as usize])
    }

    /// Whose the span is, as it says itself.
    pub(crate) fn label(&self, record: &Record) -> Label {
        self.label_at(record.label)
    }

    pub(crate) fn label_at(&self, place: u32) -> Label {
        Label::read(self.marks.get(place))
    }

    /// How it went, as it says itself.
    pub(crate) fn facts(&self, record: &Record) -> Facts {
        self.facts_at(record.facts)
    }

    pub(crate) fn facts_at(&self, place: u32) -> Facts {
        Facts::read(self.marks.get(place))
    }

    fn unpack(&self, kept: &Kept) -> Record {
        Record::new(kept, self.classes.get(kept.class))
    }

    fn details(&self, kept: &Kept) -> &[u8] {
        self.chunks.get(kept.chunk).get(kept.at as usize..).unwrap_or_default()
    }

    fn place_of(&self, trace: u32, id: SpanId) -> Option<u32> {
        if self.traces[trace as usize].count <= FEW {
            let mut spans = self.spans_of(TraceNumber(trace)).map(|span| span.0);
            return spans.find(|number| self.spans[*number as usize].id == id);
        }
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
