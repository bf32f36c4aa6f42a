//! Side records that were seen, kept until the span they belong to is exported.

use super::hash::IdMap;
use super::view::Detail;
use crate::config::SpanLimits;
use stagetrace_wire::recording::layout::{side, slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sweeps after which details without a span that ends are thrown away, if there are too many.
const OLD: u64 = 4096;
/// Words of details that are kept at most, of all spans.
const MAX_WORDS: usize = 4 << 20;

/// Spans of which details are kept at most; then old ones go.
const MAX_SPANS: usize = 64 * 1024;

/// Details by span id.
#[derive(Debug)]
pub(crate) struct Details {
    of_spans: IdMap<u64, OfSpan>,
    limits: SpanLimits,
    words: usize,
    /// Details thrown away.
    pub(crate) orphaned: u64,
}

/// The details of one span, and how many were beyond the limits.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) details: Vec<Detail>,
    pub(crate) dropped_events: u32,
    pub(crate) dropped_links: u32,
    /// The chunks that may now go, as far as this span is concerned.
    pub(crate) pins: Vec<Pin>,
}

/// A chunk in one of its uses: its page, and how often it had been recycled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) page: u32,
    pub(crate) epoch: u32,
}

#[derive(Debug, Default)]
struct OfSpan {
    seen: u32,
    touched: u64,
    events: usize,
    links: usize,
    details: Vec<Detail>,
    /// The chunks that hold its details, each once in a row.
    pins: Vec<Pin>,
}

impl Details {
    /// None yet.
    pub(crate) fn new(limits: SpanLimits) -> Details {
        Details { of_spans: IdMap::default(), limits, words: 0, orphaned: 0 }
    }

    /// Takes a side record of `size` words from this chunk. Whether the chunk must stay for it from now on.
    pub(crate) fn add(&mut self, record: &[AtomicU64], size: usize, pin: Pin, sweep: u64) -> bool {
        let word = |at: usize| record[at].load(Ordering::Relaxed);
        let of_span = self.of_spans.entry(word(slot::SPAN)).or_default();
        of_span.seen += 1;
        of_span.touched = sweep;
        let kind = word(slot::END);
        let (count, limit) = match kind {
            side::EVENT => (&mut of_span.events, self.limits.events),
            side::LINK => (&mut of_span.links, self.limits.links),
            _ => (&mut 0, usize::MAX),
        };
        *count += 1;
        if *count > limit || self.words + size > MAX_WORDS {
            return false;
        }
        let words: Box<[u64]> = (slot::WORDS..size).map(word).collect();
        self.words += words.len();
        of_span.details.push(Detail { kind, ticks: word(slot::BEGIN), words });
        let is_new = of_span.pins.last() != Some(&pin);
        if is_new {
            of_span.pins.push(pin);
        }
        is_new
    }

    /// Whether there are none of any span.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.of_spans.is_empty()
    }

    /// How many side records of a span were seen.
    pub(crate) fn seen(&self, span: u64) -> u32 {
        self.of_spans.get(&span).map_or(0, |of_span| of_span.seen)
    }

    /// The details of a span that is exported.
    pub(crate) fn take(&mut self, span: u64) -> Taken {
        let Some(of_span) = self.of_spans.remove(&span) else { return Taken::default() };
        self.words -= of_span.details.iter().map(|detail| detail.words.len()).sum::<usize>();
        let kept = |kind| of_span.details.iter().filter(|detail| detail.kind == kind).count();
        Taken {
            dropped_events: (of_span.events - kept(side::EVENT)) as u32,
            dropped_links: (of_span.links - kept(side::LINK)) as u32,
            details: of_span.details,
            pins: of_span.pins,
        }
    }

    /// Throws away the details of spans that nobody has touched for long, if they take too much room. Gives the chunks
    /// that held them.
    pub(crate) fn forget_old(&mut self, sweep: u64) -> Vec<Pin> {
        let mut pins = Vec::new();
        if self.words < MAX_WORDS / 2 && self.of_spans.len() < MAX_SPANS {
            return pins;
        }
        let (words, orphaned) = (&mut self.words, &mut self.orphaned);
        self.of_spans.retain(|_, of_span| {
            let keep = of_span.touched + OLD > sweep;
            if !keep {
                *orphaned += of_span.details.len() as u64;
                *words -= of_span.details.iter().map(|d| d.words.len()).sum::<usize>();
                pins.append(&mut of_span.pins);
            }
            keep
        });
        pins
    }
}
