//! How spans come in: new ones are appended, known ones replaced by what is known better.

use std::cmp::Ordering;
use std::hash::BuildHasher as _;

use hashbrown::HashMap;
use stagetrace_wire::id::TraceId;

use super::batch::{Batch, Parsed, Place, Standing};
use super::{Failure, NONE, Record, SpanNumber, Store, Trace, TraceNumber, details};

impl Store {
    /// Takes spans in, and their details as they stand.
    pub(crate) fn take(&mut self, batch: Batch) {
        self.make_room();
        let chunk = self.chunks.next();
        let mut used = 0;
        for span in &batch.spans {
            let new = batch.details.get(span.at as usize..).unwrap_or_default();
            used += u32::from(self.add(span, new, chunk, span.at));
        }
        used -= std::mem::take(&mut self.superseded);
        if used > 0 {
            self.chunks.push(batch.details, batch.place, used);
        }
    }

    /// Takes spans in of which most are known already, and the details of the others alone.
    pub(crate) fn take_news(&mut self, batch: &Batch) {
        self.make_room();
        let chunk = self.chunks.next();
        let (mut kept, mut used) = (Vec::new(), 0);
        for span in &batch.spans {
            let new = batch.details.get(span.at as usize..).unwrap_or_default();
            if self.add(span, new, chunk, kept.len() as u32) {
                kept.extend_from_slice(details::of_one(new));
                used += 1;
            }
        }
        used -= std::mem::take(&mut self.superseded);
        if used > 0 {
            self.chunks.push(kept, None, used);
        }
    }

    /// Pieces of files that hold details of a trace which made room, by their chunks.
    pub(crate) fn missing(&self, trace: TraceNumber) -> Vec<(u32, Place)> {
        let chunks = self.spans_of(trace).map(|span| self.record(span).chunk);
        let mut missing: Vec<_> =
            chunks.filter_map(|chunk| Some((chunk, self.chunks.missing(chunk)?))).collect();
        missing.sort_by_key(|(chunk, _)| *chunk);
        missing.dedup();
        missing
    }

    /// Where the details of a span are to be read again, if they made room and can be.
    pub(crate) fn missing_of(&self, span: SpanNumber) -> Option<(u32, Place)> {
        let chunk = self.record(span).chunk;
        Some((chunk, self.chunks.missing(chunk)?))
    }

    /// Puts details back that were read again. If they are not those that they were, since the file was
    /// written anew, they are gone.
    pub(crate) fn put_back(&mut self, chunk: u32, batch: Batch) {
        let mut found = HashMap::new();
        // Of several the first one counts.
        for span in batch.spans.iter().rev() {
            let Some(number) = self.find_span(span.trace_id, span.span_id) else { continue };
            let record = self.record(number);
            let is_it = record.chunk == chunk
                && (span.standing, span.start, span.end)
                    == (record.standing, record.start, record.end);
            if is_it {
                found.insert(number, span.at);
            }
        }
        let is_whole = found.len() == self.chunks.used(chunk) as usize;
        if is_whole {
            for (number, at) in found {
                self.spans[number.0 as usize].at = at;
            }
        }
        self.chunks.put_back(chunk, is_whole.then_some(batch.details));
    }

    /// Lets the oldest details go that can be read again, while there is too little room.
    pub(crate) fn make_room(&mut self) {
        while self.bytes() > self.max_bytes {
            if !self.chunks.evict() {
                self.is_full = true;
                return;
            }
        }
        self.is_full = false;
    }

    /// Whether the span is news, and refers to its details.
    fn add(&mut self, span: &Parsed, new: &[u8], chunk: u32, at: u32) -> bool {
        if let Some(trace) = self.find_trace(span.trace_id)
            && let Some(place) = self.place_of(trace.0, span.span_id)
        {
            return self.improve(place, span, new, chunk, at);
        }
        if !self.wants(span.origin) {
            return false;
        }
        if self.is_full || self.spans.len() >= NONE as usize - 1 {
            self.stats.refused += 1;
            return false;
        }
        let trace = self.trace_of(span.trace_id);
        self.append(trace, span, chunk, at);
        if span.has_links {
            self.note_links(self.spans.len() as u32 - 1, span.trace_id, new);
        }
        true
    }

    fn append(&mut self, trace: u32, span: &Parsed, chunk: u32, at: u32) {
        let number = self.spans.len() as u32;
        let record = self.make(trace, span, chunk, at);
        self.stats.finished += usize::from(record.is_finished());
        self.spans.push(record);
        let of_trace = &mut self.traces[trace as usize];
        let before = std::mem::replace(&mut of_trace.last, number);
        of_trace.count += 1;
        match before {
            NONE => of_trace.first = number,
            before => self.spans[before as usize].next = number,
        }
        let Self { span_places, spans, hasher, .. } = self;
        let hash = |number: u32| {
            let span = &spans[number as usize];
            hasher.hash_one((span.trace, span.id))
        };
        span_places.insert_unique(hash(number), number, |&other| hash(other));
        self.mark_changed(trace);
    }

    /// Replaces what is known of a span by what is known better; whether it is.
    fn improve(&mut self, place: u32, span: &Parsed, new: &[u8], chunk: u32, at: u32) -> bool {
        let old = self.spans[place as usize];
        let is_better = match span.standing.cmp(&old.standing) {
            Ordering::Less => false,
            // An open span is looked at again and again, and may have got attributes meanwhile.
            Ordering::Equal => {
                self.stats.duplicates += u64::from(old.is_finished());
                let is_same = self.details(&old).starts_with(details::of_one(new));
                let is_same = is_same && span.is_lost == old.is_lost;
                span.standing == Standing::Recorded && !is_same
            }
            Ordering::Greater => true,
        };
        if is_better {
            let mut record = self.make(old.trace, span, chunk, at);
            record.next = old.next;
            if span.depth > 0 || !record.is_finished() {
                // Live files do not name parents.
                record.parent = record.parent.or(old.parent);
            }
            self.stats.finished += usize::from(record.is_finished() && !old.is_finished());
            if !old.is_open() {
                self.replaced.entry(SpanNumber(place)).or_insert(old);
            }
            self.spans[place as usize] = record;
            match old.chunk == chunk {
                true => self.superseded += 1,
                false => self.chunks.release(old.chunk),
            }
            self.mark_changed(old.trace);
            if span.has_links {
                self.note_links(place, span.trace_id, new);
            }
        }
        is_better
    }

    fn make(&mut self, trace: u32, span: &Parsed, chunk: u32, at: u32) -> Record {
        let last = self.traces[trace as usize].last;
        let last = self.spans.get(last as usize).map(|last| (last.label, last.facts));
        let (last_label, last_facts) = last.unwrap_or((NONE, NONE));
        Record {
            id: span.span_id,
            parent: span.parent,
            start: span.start,
            end: span.end,
            trace,
            name: span.name,
            stage: span.stage,
            origin: span.origin,
            label: match span.label.is_empty() {
                true => NONE,
                false => place(&mut self.labels, last_label, span.label),
            },
            facts: match span.facts.is_empty() {
                true => NONE,
                false => place(&mut self.facts, last_facts, span.facts),
            },
            failure: match span.failure == Failure::default() {
                true => NONE,
                false => place(&mut self.failures, NONE, span.failure),
            },
            chunk,
            at,
            next: NONE,
            kind: span.kind,
            code: span.code,
            standing: span.standing,
            depth: span.depth,
            is_failed: span.is_failed,
            is_lost: span.is_lost,
        }
    }

    fn trace_of(&mut self, id: TraceId) -> u32 {
        let Self { trace_places, traces, hasher, .. } = self;
        let hash = hasher.hash_one(id);
        if let Some(number) = trace_places.find(hash, |&number| traces[number as usize].id == id) {
            return *number;
        }
        let number = traces.len() as u32;
        traces.push(Trace { id, first: NONE, last: NONE, count: 0, is_changed: false });
        trace_places
            .insert_unique(hash, number, |&other| hasher.hash_one(traces[other as usize].id));
        number
    }
}

/// The place of a value: that of the last one of the trace, if it is the same, or else a new one.
fn place<T: PartialEq>(values: &mut Vec<T>, last: u32, value: T) -> u32 {
    if values.get(last as usize) == Some(&value) {
        return last;
    }
    values.push(value);
    values.len() as u32 - 1
}
