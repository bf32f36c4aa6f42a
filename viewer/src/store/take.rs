//! How spans come in: new ones are appended, known ones replaced by what is known better.

use std::cmp::Ordering;
use std::hash::BuildHasher as _;

use hashbrown::HashMap;
use stagetrace_wire::id::TraceId;

use super::batch::{Batch, Parsed, Place, Standing};
use super::classes::Class;
use super::{FEW, Kept, NONE, SpanNumber, Store, Trace, TraceNumber, details};

impl Store {
    /// Takes spans in, and their details as they stand.
    pub(crate) fn take(&mut self, batch: Batch) {
        if batch.place.is_none() {
            // What cannot be read again is not thrown away, so it must not be more than is used.
            return self.take_news(&batch);
        }
        self.make_room();
        let chunk = self.chunks.next();
        let mut used = 0;
        for span in &batch.spans {
            used += u32::from(self.add(&batch, span, (chunk, span.at)));
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
            if self.add(batch, span, (chunk, kept.len() as u32)) {
                kept.extend_from_slice(details::of_one(batch.details_of(span)));
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
        let chunks = self.spans_of(trace).map(|span| self.spans[span.0 as usize].chunk);
        let mut missing: Vec<_> =
            chunks.filter_map(|chunk| Some((chunk, self.chunks.missing(chunk)?))).collect();
        missing.sort_by_key(|(chunk, _)| *chunk);
        missing.dedup();
        missing
    }

    /// Where the details of a span are to be read again, if they made room and can be.
    pub(crate) fn missing_of(&self, span: SpanNumber) -> Option<(u32, Place)> {
        let chunk = self.spans[span.0 as usize].chunk;
        Some((chunk, self.chunks.missing(chunk)?))
    }

    /// Puts details back that were read again. If they are not those that they were, since the file was
    /// written anew, they are gone.
    pub(crate) fn put_back(&mut self, chunk: u32, batch: Batch) {
        let mut found = HashMap::new();
        // Of several the first one counts.
        for span in batch.spans.iter().rev() {
            let Some(number) = self.find_span(span.trace_id, span.span_id) else { continue };
            let record = &self.spans[number.0 as usize];
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

    /// Whether the span is news, and refers to its details.
    fn add(&mut self, batch: &Batch, span: &Parsed, place: (u32, u32)) -> bool {
        if let Some(trace) = self.find_trace(span.trace_id)
            && let Some(known) = self.place_of(trace.0, span.span_id)
        {
            return self.improve(known, batch, span, place);
        }
        if !self.wants(span.origin) {
            return false;
        }
        let is_full = self.spans.len() >= NONE as usize - 1 || self.marks.is_full();
        if is_full || span.lacks_names || !self.has_room() {
            self.stats.refused += 1;
            return false;
        }
        let trace = self.trace_of(span.trace_id);
        let last = self.spans.get(self.traces[trace as usize].last as usize).copied();
        let kept = self.make(trace, last, batch, span, place);
        self.append(trace, kept);
        if span.has_links {
            let details = batch.details_of(span);
            self.note_links(self.spans.len() as u32 - 1, span.trace_id, details);
        }
        true
    }

    fn append(&mut self, trace: u32, kept: Kept) {
        let number = self.spans.len() as u32;
        self.stats.finished += usize::from(kept.standing.is_finished());
        self.spans.push(kept);
        let of_trace = &mut self.traces[trace as usize];
        let before = std::mem::replace(&mut of_trace.last, number);
        of_trace.count += 1;
        let count = of_trace.count;
        match before {
            NONE => of_trace.first = number,
            before => self.spans[before as usize].next = number,
        }
        match count.cmp(&(FEW + 1)) {
            Ordering::Less => {}
            Ordering::Equal => {
                let all: Vec<_> = self.spans_of(TraceNumber(trace)).collect();
                all.into_iter().for_each(|span| self.add_place(span.0));
            }
            Ordering::Greater => self.add_place(number),
        }
        self.mark_changed(trace);
    }

    fn add_place(&mut self, number: u32) {
        let Self { span_places, spans, hasher, .. } = self;
        let hash = |number: u32| {
            let span = &spans[number as usize];
            hasher.hash_one((span.trace, span.id))
        };
        span_places.insert_unique(hash(number), number, |&other| hash(other));
    }

    /// Replaces what is known of a span by what is known better; whether it is.
    fn improve(&mut self, known: u32, batch: &Batch, span: &Parsed, place: (u32, u32)) -> bool {
        let old = self.spans[known as usize];
        let is_better = match span.standing.cmp(&old.standing) {
            Ordering::Less => false,
            // An open span is looked at again and again, and may have got attributes meanwhile.
            Ordering::Equal => {
                self.stats.duplicates += u64::from(old.standing.is_finished());
                let new = details::of_one(batch.details_of(span));
                let is_same = span.is_lost == old.is_lost && self.details(&old).starts_with(new);
                span.standing == Standing::Recorded && !is_same
            }
            Ordering::Greater => true,
        };
        if is_better {
            let mut kept = self.make(old.trace, Some(old), batch, span, place);
            kept.next = old.next;
            if span.lacks_names {
                // Whose it is must not become that of others.
                kept.label = old.label;
            }
            let is_finished = kept.standing.is_finished();
            if span.depth > 0 || !is_finished {
                // Live files do not name parents.
                kept.parent = kept.parent.or(old.parent);
            }
            self.stats.finished += usize::from(is_finished && !old.standing.is_finished());
            if !old.standing.is_open() && (known as usize) < self.looked_at {
                self.replaced.entry(SpanNumber(known)).or_insert(old);
            }
            self.spans[known as usize] = kept;
            match old.chunk == kept.chunk {
                true => self.superseded += 1,
                false => self.chunks.release(old.chunk),
            }
            self.mark_changed(old.trace);
            if span.has_links {
                self.note_links(known, span.trace_id, batch.details_of(span));
            }
        }
        is_better
    }

    /// What is kept of a span. `like` is one that may say the same of whose it is and how it went.
    fn make(
        &mut self,
        trace: u32,
        like: Option<Kept>,
        batch: &Batch,
        span: &Parsed,
        (chunk, at): (u32, u32),
    ) -> Kept {
        let (label, facts) = batch.marks_of(span);
        let (like_label, like_facts) = like.map_or((NONE, NONE), |like| (like.label, like.facts));
        let class = Class {
            name: span.name,
            stage: span.stage,
            origin: span.origin,
            failure: span.failure,
            kind: span.kind,
            code: span.code,
            depth: span.depth,
            is_failed: span.is_failed,
        };
        let label = self.mark(like_label, label);
        self.labels += usize::from(label != like_label && label != NONE);
        Kept {
            id: span.span_id,
            parent: span.parent,
            start: span.start,
            end: span.end,
            trace,
            class: self.classes.number(class),
            label,
            facts: self.mark(like_facts, facts),
            chunk,
            at,
            next: NONE,
            standing: span.standing,
            is_lost: span.is_lost,
        }
    }

    /// The place of a label or of facts: a known one if it is of the same, or else a new one.
    fn mark(&mut self, like: u32, mark: &[u8]) -> u32 {
        match mark {
            [] => NONE,
            mark if like != NONE && self.marks.get(like).starts_with(mark) => like,
            mark => self.marks.push(mark),
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
