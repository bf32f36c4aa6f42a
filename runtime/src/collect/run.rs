//! Plain spans, which are nearly all: their records say everything, so they go to the sinks many at a time.
//!
//! A plain span has a parent in this process, ended without an outcome, and has no side records. It is copied out of its
//! chunk once, with its times in Unix nanoseconds, behind others of the same walk.

use super::view::{Record, SpanView};
use crate::config::SpanLimits;
use crate::stage::Site;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::Execution;
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::Timeline;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of the spans that are gathered: with what the sinks make of them they stay in a processor's nearest cache.
const WORDS: usize = 1024;

/// What of the word LIFE a plain span has not.
const NOT_PLAIN: u64 = slot::REMOTE
    | slot::MAX_SIDES << slot::SIDES_SHIFT
    | 7 << slot::OUTCOME_SHIFT
    | slot::EXPORTED
    | slot::DISCARDED
    | slot::TAKEN;

/// Plain spans that are being gathered.
#[derive(Debug)]
pub(super) struct Gathered {
    words: Box<[u64; WORDS]>,
    used: usize,
    spans: usize,
    /// The greatest number of a site among all spans so far.
    highest_site: u32,
    /// A plain span has fewer attributes inline than this.
    fewer: u64,
}

impl Gathered {
    /// None yet. Spans that limits may cut are not plain.
    pub(super) fn new(limits: &SpanLimits) -> Gathered {
        let fewer = match limits.attribute_length {
            // One more is the function.
            None => limits.attributes.min(u8::MAX.into()) as u64,
            Some(_) => 0,
        };
        Gathered { words: Box::new([0; WORDS]), used: 0, spans: 0, highest_site: 0, fewer }
    }

    /// Whether an ended span is plain, going by its slot.
    #[inline]
    pub(super) fn admits(&self, slot: &[AtomicU64; slot::WORDS]) -> bool {
        let word = |at: usize| slot[at].load(Ordering::Relaxed);
        // Flags stand above the number of attributes, and a plain span has none.
        word(slot::LIFE) & NOT_PLAIN == 0
            && word(slot::PARENT) != 0
            && word(slot::META) >> 48 < self.fewer
    }

    /// Whether there is room for a record with so many words behind its slot.
    #[inline]
    pub(super) fn has_room(&self, behind: usize) -> bool {
        self.used + slot::WORDS + behind <= WORDS
    }

    /// Whether a span with this word LIFE may go with those that are there, to the same sinks: all of them are sampled, or
    /// none is.
    #[inline]
    pub(super) fn goes_with(&self, life: u64) -> bool {
        self.is_empty() || (self.words[slot::LIFE] ^ life) & slot::UNSAMPLED == 0
    }

    /// Adds a span, for which there is room: its slot, its times, and what stands behind the slot.
    #[inline]
    pub(super) fn add(
        &mut self,
        slot: &[AtomicU64; slot::WORDS],
        (begin, end): (u64, u64),
        behind: &[AtomicU64],
    ) {
        let Some((place, rest)) = self.words[self.used..].split_first_chunk_mut() else { return };
        let word = |at: usize| slot[at].load(Ordering::Relaxed);
        let meta = word(slot::META);
        *place = [begin, end, word(2), word(3), word(4), word(5), meta, word(slot::LIFE)];
        for (copy, word) in rest.iter_mut().zip(behind) {
            *copy = word.load(Ordering::Relaxed);
        }
        self.highest_site = self.highest_site.max(meta as u32);
        self.used += slot::WORDS + behind.len();
        self.spans += 1;
    }

    /// All of them; none are left.
    pub(super) fn take<'a>(&'a mut self, context: Context<'a>) -> Run<'a> {
        let (used, spans) = (std::mem::take(&mut self.used), std::mem::take(&mut self.spans));
        Run { words: &self.words[..used], spans, context }
    }

    /// The greatest number of a site that a span had so far.
    pub(super) fn highest_site(&self) -> u32 {
        self.highest_site
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.spans == 0
    }
}

/// What is known beside the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// The sites of all records, by their numbers less one.
    pub(super) sites: &'a [&'static Site],
    pub(super) limits: &'a SpanLimits,
    pub(super) timeline: &'a Timeline,
}

/// Plain spans in the order in which they were found: all of them sampled, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    words: &'a [u64],
    spans: usize,
    context: Context<'a>,
}

/// A plain span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<'a>(Record<'a>);

impl<'a> Run<'a> {
    /// Plain spans that were kept: their words, one behind the other.
    pub(super) fn of(words: &'a [u64], spans: usize, context: Context<'a>) -> Run<'a> {
        Run { words, spans, context }
    }

    /// How many there are.
    pub(crate) fn spans(&self) -> usize {
        self.spans
    }

    /// Whether their traces are sampled.
    pub(super) fn is_sampled(&self) -> bool {
        Record(self.words).is_sampled()
    }

    /// About how many bytes they take, never less than their values do.
    pub(crate) fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    /// The first so many of them, and the others.
    pub(crate) fn split_at(&self, spans: usize) -> (Run<'a>, Run<'a>) {
        if spans >= self.spans {
            return (*self, Run { words: &[], spans: 0, ..*self });
        }
        let words = self.iter().take(spans).map(|span| span.0.0.len()).sum();
        let (first, others) = self.words.split_at(words);
        (
            Run { words: first, spans, ..*self },
            Run { words: others, spans: self.spans - spans, ..*self },
        )
    }

    /// One after the other.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Plain<'a>> + use<'a> {
        let mut rest = self.words;
        std::iter::from_fn(move || {
            let size = (*rest.get(slot::META)? >> 32) as u16;
            let (record, after) = rest.split_at_checked(usize::from(size))?;
            rest = after;
            Some(Plain(Record(record)))
        })
    }

    /// The site of a number.
    pub(crate) fn site(&self, number: u32) -> Option<&'static Site> {
        self.context.sites.get((number as usize).checked_sub(1)?).copied()
    }

    /// One after the other, as any span is seen.
    pub(crate) fn views(&self) -> impl Iterator<Item = SpanView<'a>> + use<'a> {
        let run = *self;
        run.iter().filter_map(move |span| {
            let (execution, site) = (span.execution()?, run.site(span.number())?);
            Some(SpanView {
                trace_id: execution.trace_id,
                span_id: execution.span_id,
                parent: Some(execution.parent_span_id),
                number: span.number(),
                site,
                begin: execution.start_unix_nano,
                end: execution.end_unix_nano,
                record: span.0,
                details: &[],
                dropped_events: 0,
                dropped_links: 0,
                breakdown: &[],
                limits: run.context.limits,
                timeline: run.context.timeline,
            })
        })
    }
}

impl<'a> Plain<'a> {
    /// Number of its site.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.0.site()
    }

    /// Whether it has attributes.
    #[inline]
    pub(crate) fn has_attributes(&self) -> bool {
        self.0.0.len() > slot::WORDS
    }

    /// The halves of its trace's id.
    pub(super) fn trace(&self) -> [u64; 2] {
        self.0.trace()
    }

    /// All of its words, with its times in Unix nanoseconds.
    pub(super) fn words(&self) -> &'a [u64] {
        self.0.0
    }

    /// How many places for attributes stand behind its slot.
    #[inline]
    pub(crate) fn attributes(&self) -> u8 {
        (self.0.word(slot::META) >> 48) as u8
    }

    /// The words behind its slot.
    #[inline]
    pub(crate) fn attribute_words(&self) -> &'a [u64] {
        self.0.0.get(slot::WORDS..).unwrap_or_default()
    }

    /// What an encoder puts into its template. `None` for a span without ids, which nobody records.
    #[inline]
    pub(crate) fn execution(&self) -> Option<Execution> {
        let [begin, end, span, parent, upper, lower, _, life] = *self.0.0.first_chunk()?;
        Some(Execution {
            trace_id: TraceId::from_u128(u128::from(upper) << 64 | u128::from(lower))?,
            span_id: SpanId::from_u64(span)?,
            parent_span_id: SpanId::from_u64(parent)?,
            flags: SpanView::flags_of(life),
            start_unix_nano: begin,
            end_unix_nano: end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slot of a plain span, with one word changed.
    fn slot(change: impl Fn(&mut [u64; slot::WORDS])) -> [AtomicU64; slot::WORDS] {
        let mut slot = [10, 20, 3, 2, 5, 6, 8 << 32 | 1, slot::ACTIVE];
        change(&mut slot);
        slot.map(AtomicU64::new)
    }

    #[test]
    fn a_plain_span_has_a_parent_here_and_nothing_but_its_record() {
        let gathered = Gathered::new(&SpanLimits::default());
        assert!(gathered.admits(&slot(|_| ())));
        let flags = [slot::SIDE, slot::ROOT, slot::NANOSECONDS, slot::MISPLACED];
        for flag in flags {
            assert!(!gathered.admits(&slot(|slot| slot[slot::META] |= u64::from(flag) << 56)));
        }
        let remote = slot::REMOTE;
        let marks = [slot::EXPORTED, slot::DISCARDED, slot::TAKEN];
        let counts = [1 << slot::SIDES_SHIFT, 1 << slot::OUTCOME_SHIFT, 4 << slot::OUTCOME_SHIFT];
        for bits in marks.into_iter().chain(counts).chain([remote]) {
            assert!(!gathered.admits(&slot(|slot| slot[slot::LIFE] |= bits)), "{bits:#x}");
        }
        assert!(!gathered.admits(&slot(|slot| slot[slot::PARENT] = 0)));
        let of_a_request = 7 | 3 << slot::ROOT_GENERATION_SHIFT | 3 << slot::TRACE_FLAGS_SHIFT;
        assert!(gathered.admits(&slot(|slot| slot[slot::LIFE] |= of_a_request)));
    }

    #[test]
    fn what_limits_may_cut_is_not_plain() {
        let with_two = slot(|slot| slot[slot::META] |= 2 << 48);
        let admits = |limits: SpanLimits, slot: &_| Gathered::new(&limits).admits(slot);
        assert!(admits(SpanLimits::default(), &with_two));
        // The function is an attribute too.
        assert!(admits(SpanLimits { attributes: 3, ..SpanLimits::default() }, &with_two));
        assert!(!admits(SpanLimits { attributes: 2, ..SpanLimits::default() }, &with_two));
        let (short, none) = (
            SpanLimits { attribute_length: Some(9), ..SpanLimits::default() },
            SpanLimits { attributes: 0, ..SpanLimits::default() },
        );
        let with_none = slot(|_| ());
        for limits in [short, none] {
            // Also the function may be cut.
            assert!(!admits(limits, &with_two) && !admits(limits, &with_none));
        }
    }
}
