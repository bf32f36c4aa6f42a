//! Spans of one trace that wait for its decision, copied out of the records.

use super::super::ended::Ended;
use super::super::run::{Context, Plain, Run};
use super::super::view::{Detail, Record, SpanView, StageTime};
use crate::stage::Site;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::slot;
use std::collections::HashSet;
use std::time::Instant;

/// What is known so far of a trace.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) since: Instant,
    /// Spans that had come before its first.
    pub(super) before: u64,
    /// When its first span began, in Unix nanoseconds.
    pub(super) begin: u64,
    /// Whether a span in it failed.
    pub(super) failed: bool,
    /// Bytes that it takes, what it costs to know of it included.
    pub(super) bytes: usize,
    /// The records of its plain spans.
    plain: Vec<u64>,
    plain_spans: usize,
    others: Vec<Other>,
}

/// What a trace costs without its spans: this, its place in a map that is half empty, and one in the order of all.
const TRACE: usize = 2 * size_of::<([u64; 2], Waiting)>() + size_of::<(Instant, [u64; 2])>();

/// A span that is more than its record.
#[derive(Debug)]
struct Other {
    trace_id: TraceId,
    span_id: SpanId,
    parent: Option<SpanId>,
    number: u32,
    site: &'static Site,
    begin: u64,
    end: u64,
    words: Box<[u64]>,
    details: Box<[Detail]>,
    dropped_events: u32,
    dropped_links: u32,
    breakdown: Box<[StageTime]>,
}

/// The root whose request a span belongs to; 0 for none.
pub(super) fn root_of(words: &[u64]) -> u64 {
    Record(words).root()
}

impl Waiting {
    /// A trace of which nothing waits yet.
    pub(super) fn new(since: Instant, before: u64) -> Waiting {
        let (plain, others) = (Vec::new(), Vec::new());
        let (begin, failed, bytes) = (u64::MAX, false, TRACE);
        Waiting { since, before, begin, failed, bytes, plain, plain_spans: 0, others }
    }

    /// Adds a plain span.
    pub(super) fn add_plain(&mut self, span: &Plain<'_>) {
        let (words, before) = (span.words(), self.plain.capacity());
        self.plain.extend_from_slice(words);
        self.plain_spans += 1;
        self.begin = self.begin.min(words[slot::BEGIN]);
        self.bytes += (self.plain.capacity() - before) * size_of::<u64>();
    }

    /// Adds any span.
    pub(super) fn add(&mut self, span: &SpanView<'_>) {
        self.failed |= span.has_failed();
        self.begin = self.begin.min(span.begin);
        let other = Other {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent: span.parent,
            number: span.number,
            site: span.site,
            begin: span.begin,
            end: span.end,
            words: span.record.0.into(),
            details: span.details.into(),
            dropped_events: span.dropped_events,
            dropped_links: span.dropped_links,
            breakdown: span.breakdown.into(),
        };
        self.bytes += other.bytes();
        self.others.push(other);
    }

    /// How many spans wait.
    pub(super) fn spans(&self) -> usize {
        self.plain_spans + self.others.len()
    }

    /// The roots to whose requests they belong, each once.
    pub(super) fn roots(&self) -> Vec<u64> {
        let plain = records(&self.plain).map(root_of);
        let mut roots: Vec<u64> =
            plain.chain(self.others.iter().map(|other| root_of(&other.words))).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// The roots of requests that ended within another one of this process.
    pub(super) fn requests_below(&self) -> impl Iterator<Item = u64> {
        let ended = self.others.iter().map(|other| Record(&other.words));
        ended.filter(|record| record.flag(slot::ROOT) && !record.begins_here()).map(|r| r.root())
    }

    /// Takes out those of these roots.
    pub(super) fn take_out(&mut self, roots: &[u64]) {
        let roots: HashSet<u64> = roots.iter().copied().collect();
        let stays = |words: &[u64]| !roots.contains(&root_of(words));
        let mut plain = Vec::new();
        self.plain_spans = 0;
        for words in records(&self.plain).filter(|words| stays(words)) {
            plain.extend_from_slice(words);
            self.plain_spans += 1;
        }
        self.plain = plain;
        self.others.retain(|other| stays(&other.words));
        let others: usize = self.others.iter().map(Other::bytes).sum();
        self.bytes = TRACE + self.plain.capacity() * size_of::<u64>() + others;
    }

    /// Hands all of them over.
    pub(super) fn release(&self, context: Context<'_>, with: &mut dyn FnMut(Ended<'_>)) {
        if self.plain_spans > 0 {
            with(Ended::Plain(Run::of(&self.plain, self.plain_spans, context)));
        }
        for other in &self.others {
            with(Ended::One(&other.view(context)));
        }
    }
}

impl Other {
    fn bytes(&self) -> usize {
        let details: usize = self.details.iter().map(|detail| size_of_val(&*detail.words)).sum();
        let parts = size_of_val(&*self.words) + size_of_val(&*self.details) + details;
        // Lists that grow are half empty.
        2 * size_of::<Other>() + parts + size_of_val(&*self.breakdown)
    }

    fn view<'a>(&'a self, context: Context<'a>) -> SpanView<'a> {
        SpanView {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent: self.parent,
            number: self.number,
            site: self.site,
            begin: self.begin,
            end: self.end,
            record: Record(&self.words),
            details: &self.details,
            dropped_events: self.dropped_events,
            dropped_links: self.dropped_links,
            breakdown: &self.breakdown,
            limits: context.limits,
            timeline: context.timeline,
        }
    }
}

/// Records that stand one behind the other.
fn records(mut words: &[u64]) -> impl Iterator<Item = &[u64]> {
    std::iter::from_fn(move || {
        let size = (*words.get(slot::META)? >> 32) as u16;
        let (record, rest) = words.split_at_checked(usize::from(size))?;
        words = rest;
        Some(record)
    })
}
