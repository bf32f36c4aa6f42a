//! All samples of a store, kept up to date trace by trace.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::HashMap;

use super::look;
use super::row::{Extra, NONE, Row, SampleRow, flag};
use super::sample::Sample;
use super::status::Status;
use super::steps::Steps;
use super::totals::{Change, Totals};
use super::tree::Tree;
use crate::store::{Ident, Record, Segments, SpanNumber, Store, TraceNumber};

/// Every sample and request of a store, and whose each span is. Only traces that have changed are
/// looked at again. A sample takes 64 bytes, a span twelve, and its duration eight.
#[derive(Debug, Default)]
pub struct Samples {
    /// Those of one trace stand together. Those that no trace refers to are left over.
    rows: Segments<Row>,
    left_over: usize,
    extras: HashMap<u32, Extra>,
    /// By trace: the place of its first row, or [`NONE`].
    first: Segments<u32>,
    /// By span: the place of its sample among those of its trace, with [`COUNTED`], or [`NONE`].
    owners: Segments<u32>,
    /// By span.
    self_ns: Segments<u64>,
    steps: Steps,
    totals: Totals,
    counted: usize,
    open: BTreeSet<TraceNumber>,
    lost: BTreeSet<TraceNumber>,
    version: u64,
}

/// The span has ended, and is in the totals.
const COUNTED: u32 = 1 << 31;
/// Rows that may be left over, whatever there are.
const MAX_LEFT_OVER: usize = 4096;

impl Samples {
    /// Looks at the traces that have changed since this was last called, and returns them. Who else
    /// asks the store for them takes them from here.
    pub fn refresh(&mut self, store: &mut Store) -> Vec<TraceNumber> {
        let changed = store.take_changed();
        let replaced = store.take_replaced();
        let stats = store.stats();
        self.first.grow(stats.traces, NONE);
        self.owners.grow(stats.spans, NONE);
        self.self_ns.grow(stats.spans, 0);
        for trace in &changed {
            self.look_at(store, *trace, &replaced);
        }
        if self.left_over > MAX_LEFT_OVER + self.rows.len() / 2 {
            self.compact();
        }
        self.totals.settle();
        self.steps.settle(store);
        self.version = store.version();
        changed
    }

    /// The version of the store that was looked at last. What is asked of two equal ones is equal.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.totals.samples
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every sample, in the order of traces.
    pub fn iter(&self, store: &Store) -> impl Iterator<Item = Sample> {
        self.rows().map(|row| row.sample(store))
    }

    /// The samples of a trace.
    pub fn of_trace(&self, store: &Store, trace: TraceNumber) -> impl Iterator<Item = Sample> {
        self.rows_of(trace).map(|row| row.sample(store))
    }

    /// The sample that a span is of; `None` if it is of none.
    pub fn of_span(&self, store: &Store, span: SpanNumber) -> Option<Sample> {
        self.row_of_span(store, span).map(|row| row.sample(store))
    }

    /// The place of a span's sample among those of its trace.
    pub(crate) fn place(&self, span: SpanNumber) -> Option<usize> {
        let owner = *self.owners.get(span.0 as usize).filter(|owner| **owner != NONE)?;
        Some((owner & !COUNTED) as usize)
    }

    /// Nanoseconds of an ended span in which none of its ended children ran.
    pub fn self_ns(&self, span: SpanNumber) -> u64 {
        self.self_ns.get(span.0 as usize).copied().unwrap_or(0)
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
            + self.first.bytes()
            + self.owners.bytes()
            + self.self_ns.bytes()
            + self.extras.values().map(Extra::bytes).sum::<usize>()
            + self.steps.bytes()
            + self.totals.bytes()
            + 16 * (self.open.len() + self.lost.len())
    }

    /// Every sample as it is kept, in the order of traces. Takes no memory.
    pub fn rows(&self) -> impl Iterator<Item = SampleRow<'_>> {
        (0..self.first.len() as u32).flat_map(|trace| self.rows_of(TraceNumber(trace)))
    }

    /// The samples of a trace as they are kept.
    pub fn rows_of(&self, trace: TraceNumber) -> impl Iterator<Item = SampleRow<'_>> {
        self.places(trace).map(|at| self.row(at))
    }

    /// The samples of a step, in the order of traces.
    pub fn rows_of_step(&self, step: Ident) -> impl Iterator<Item = SampleRow<'_>> {
        let number = self.steps.number(step).unwrap_or(NONE);
        let traces = self.steps.traces(number).into_iter();
        traces.flat_map(|trace| self.rows_of(trace)).filter(move |row| row.row.step == number)
    }

    /// The samples whose root has not ended, of a step or of all, in the order of traces.
    pub(crate) fn open(&self, step: Option<Ident>) -> impl Iterator<Item = SampleRow<'_>> {
        self.among(&self.open, step).filter(|row| row.is_open())
    }

    /// The samples whose process died, of a step or of all, in the order of traces.
    pub(crate) fn lost(&self, step: Option<Ident>) -> impl Iterator<Item = SampleRow<'_>> {
        self.among(&self.lost, step).filter(|row| row.status() == Status::Lost)
    }

    /// The sample that a span is of, as it is kept.
    pub fn row_of_span(&self, store: &Store, span: SpanNumber) -> Option<SampleRow<'_>> {
        let owner = *self.owners.get(span.0 as usize).filter(|owner| **owner != NONE)?;
        let trace = TraceNumber(store.record(span).trace);
        self.places(trace).nth((owner & !COUNTED) as usize).map(|at| self.row(at))
    }

    /// Every step, in order.
    pub fn steps(&self) -> &[Ident] {
        self.steps.ordered()
    }

    /// Ended spans that are of samples.
    pub(crate) fn counted_spans(&self) -> usize {
        self.counted
    }

    /// What all samples add up to, which is kept up to date, or those of a step, which takes time in
    /// proportion to their spans.
    pub(crate) fn totals(&self, store: &Store, step: Option<Ident>) -> Cow<'_, Totals> {
        let Some(step) = step else { return Cow::Borrowed(&self.totals) };
        let number = self.steps.number(step).unwrap_or(NONE);
        if self.steps.samples(number) == self.totals.samples {
            return Cow::Borrowed(&self.totals);
        }
        let mut totals = Totals::default();
        for sample in self.rows_of_step(step) {
            let error = sample.error().map(|error| store.record(error));
            totals.sample(Change::Add, store, sample, error);
        }
        for trace in self.steps.traces(number) {
            let first = self.places(trace).start;
            for span in store.spans_of(trace) {
                let owner = self.owners.get(span.0 as usize).copied().unwrap_or(NONE);
                let is_counted = owner != NONE && owner & COUNTED != 0;
                if is_counted && self.rows[(first + (owner & !COUNTED)) as usize].step == number {
                    totals.span(Change::Add, store.record(span), self.self_ns(span));
                }
            }
        }
        totals.settle();
        Cow::Owned(totals)
    }

    fn look_at(
        &mut self,
        store: &Store,
        trace: TraceNumber,
        replaced: &HashMap<SpanNumber, Record>,
    ) {
        let tree = Tree::new(store, trace);
        let found = look::samples(store, trace, &tree);
        for ((node, owner), self_ns) in tree.nodes.iter().zip(found.owners).zip(tree.self_times()) {
            let at = node.number.0 as usize;
            let owner = match owner {
                Some(owner) if node.record.is_finished() => owner | COUNTED,
                owner => owner.unwrap_or(NONE),
            };
            let old_owner = std::mem::replace(&mut self.owners[at], owner);
            let old_self_ns = std::mem::replace(&mut self.self_ns[at], self_ns);
            let is_counted = |owner: u32| owner != NONE && owner & COUNTED != 0;
            match (is_counted(old_owner), is_counted(owner), replaced.get(&node.number)) {
                (true, true, None) => self.totals.self_time(node.record, old_self_ns, self_ns),
                (was, is, old) => {
                    if was {
                        let old = old.unwrap_or(node.record);
                        self.totals.span(Change::Remove, old, old_self_ns);
                        self.counted -= 1;
                    }
                    if is {
                        self.totals.span(Change::Add, node.record, self_ns);
                        self.counted += 1;
                    }
                }
            }
        }
        let old = self.take_rows(store, trace, replaced);
        self.put_rows(store, trace, found.rows, old);
    }

    /// Counts the samples of a trace no more. Returns where they are.
    fn take_rows(
        &mut self,
        store: &Store,
        trace: TraceNumber,
        replaced: &HashMap<SpanNumber, Record>,
    ) -> Range<u32> {
        let places = self.places(trace);
        for at in places.clone() {
            let row = self.rows[at as usize];
            let extra = self.extras.remove(&at);
            let sample = SampleRow { row: &row, extra: extra.as_ref() };
            let as_it_was = |span| replaced.get(&span).unwrap_or_else(|| store.record(span));
            let error = sample.error().map(as_it_was);
            self.totals.sample(Change::Remove, store, sample, error);
            self.steps.leave(row.step);
        }
        self.open.remove(&trace);
        self.lost.remove(&trace);
        places
    }

    fn put_rows(
        &mut self,
        store: &Store,
        trace: TraceNumber,
        rows: Vec<(Row, Option<Extra>)>,
        old: Range<u32>,
    ) {
        let count = rows.len();
        let mut old_steps: Vec<u32> = old.clone().map(|at| self.rows[at as usize].step).collect();
        old_steps.sort_unstable();
        let is_in_place = count <= old.len();
        self.left_over += if is_in_place { old.len() - count } else { old.len() };
        let first = if is_in_place { old.start } else { self.rows.len() as u32 };
        self.first[trace.0 as usize] = if count == 0 { NONE } else { first };
        for (at, (mut row, extra)) in (first..).zip(rows) {
            if let Some(step) = row.label(store, extra.as_ref()).step() {
                let is_new = |number: u32| old_steps.binary_search(&number).is_err();
                row.step = self.steps.enter(step, trace, is_new);
            }
            if at - first + 1 < count as u32 {
                row.flags |= flag::MORE;
            }
            let sample = SampleRow { row: &row, extra: extra.as_ref() };
            let error = sample.error().map(|error| store.record(error));
            self.totals.sample(Change::Add, store, sample, error);
            if sample.is_open() {
                self.open.insert(trace);
            }
            if sample.status() == Status::Lost {
                self.lost.insert(trace);
            }
            match is_in_place {
                true => self.rows[at as usize] = row,
                false => self.rows.push(row),
            }
            self.extras.extend(extra.map(|extra| (at, extra)));
        }
    }

    /// Throws away what is left over.
    fn compact(&mut self) {
        let mut rows = Segments::default();
        let mut extras = HashMap::new();
        for trace in (0..self.first.len() as u32).map(TraceNumber) {
            let places = self.places(trace);
            if !places.is_empty() {
                self.first[trace.0 as usize] = rows.len() as u32;
            }
            for at in places {
                let extra = self.extras.remove(&at);
                extras.extend(extra.map(|extra| (rows.len() as u32, extra)));
                rows.push(self.rows[at as usize]);
            }
        }
        (self.rows, self.extras, self.left_over) = (rows, extras, 0);
    }

    fn among<'a>(
        &'a self,
        traces: &'a BTreeSet<TraceNumber>,
        step: Option<Ident>,
    ) -> impl Iterator<Item = SampleRow<'a>> {
        let number = step.map(|step| self.steps.number(step).unwrap_or(NONE));
        let rows = traces.iter().flat_map(|trace| self.rows_of(*trace));
        rows.filter(move |row| number.is_none_or(|number| row.row.step == number))
    }

    /// Where the rows of a trace are.
    fn places(&self, trace: TraceNumber) -> Range<u32> {
        let first = self.first.get(trace.0 as usize).copied().unwrap_or(NONE);
        if first == NONE {
            return 0..0;
        }
        let mut last = first;
        while self.rows[last as usize].has(flag::MORE) {
            last += 1;
        }
        first..last + 1
    }

    fn row(&self, at: u32) -> SampleRow<'_> {
        let row = &self.rows[at as usize];
        SampleRow { row, extra: self.extras.get(&at).filter(|_| row.has(flag::EXTRA)) }
    }
}

#[cfg(test)]
mod tests;
