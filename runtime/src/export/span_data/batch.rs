//! Spans on their way from the collector's thread to the exporter's.
//!
//! A span of which its record says all, as nearly all are, is copied as it stands and converted on the exporter's
//! thread. So the collector, which all exporters share, has little to do for it, what waits is small, and its
//! `SpanData` is allocated and freed by one thread. What had more to it is converted at once, while that is at hand.

use super::convert::Converter;
use super::weight;
use crate::collect::{Record, SpanView};
use crate::config::SpanLimits;
use crate::export::sites::Sites;
use crate::export::supervised::{Batch, Encode};
use crate::stage::Site;
use opentelemetry_sdk::trace::SpanData;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::Timeline;

/// Words of records whose memory a batch keeps when it is used again.
const KEPT: usize = 64 * 1024;

/// Spans that wait.
#[derive(Debug, Default)]
pub(super) struct Spans {
    spans: Vec<Waiting>,
    /// The records, one after another.
    words: Vec<u64>,
    limits: SpanLimits,
    bytes: usize,
}

/// A span that waits.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Its record says all.
    Recorded(Recorded),
    /// It had more.
    Converted(Box<SpanData>),
}

/// A span whose record is in [`Spans::words`], behind those of the spans before it.
#[derive(Debug)]
pub(super) struct Recorded {
    trace_id: TraceId,
    span_id: SpanId,
    parent: Option<SpanId>,
    site: &'static Site,
    number: u32,
    /// How many words the record has.
    words: u32,
    begin: u64,
    end: u64,
}

impl Spans {
    /// Takes all spans out, each as `SpanData`, in the order in which they came.
    pub(super) fn convert(&mut self, converter: &mut Converter) -> Vec<SpanData> {
        let Spans { spans, words, limits, .. } = self;
        // Only the times of events need one, and no span has any whose record says all.
        let timeline = Timeline::default();
        let mut words = &words[..];
        let convert = |span| match span {
            Waiting::Converted(span) => *span,
            Waiting::Recorded(span) => {
                let (record, rest) = words.split_at(span.words as usize);
                words = rest;
                converter.convert_plain(&span.view(record, limits, &timeline))
            }
        };
        spans.drain(..).map(convert).collect()
    }
}

impl Recorded {
    fn view<'a>(
        self,
        record: &'a [u64],
        limits: &'a SpanLimits,
        timeline: &'a Timeline,
    ) -> SpanView<'a> {
        SpanView {
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent: self.parent,
            number: self.number,
            site: self.site,
            begin: self.begin,
            end: self.end,
            record: Record(record),
            details: &[],
            dropped_events: 0,
            dropped_links: 0,
            breakdown: &[],
            limits,
            timeline,
        }
    }
}

impl Batch for Spans {
    fn spans(&self) -> usize {
        self.spans.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.words.clear();
        self.words.shrink_to(KEPT);
        self.bytes = 0;
    }
}

/// Puts spans into batches.
#[derive(Debug)]
pub(super) struct Packer {
    converter: Converter,
    /// What a span of each site weighs without its values.
    weights: Sites<usize>,
}

impl Packer {
    pub(super) fn new() -> Packer {
        Packer { converter: Converter::default(), weights: Sites::new() }
    }
}

impl Encode for Packer {
    type Batch = Spans;

    #[inline]
    fn add(&mut self, batch: &mut Spans, span: &SpanView<'_>) {
        if !is_said_by_record(span) {
            let span = self.converter.convert(span);
            batch.bytes += weight::of_span(&span);
            return batch.spans.push(Waiting::Converted(Box::new(span)));
        }
        let record = span.record.0;
        batch.limits = *span.limits;
        // Values that are bytes become base64, which is longer by a third.
        let values = size_of_val(record) * 3 / 2;
        let weight = self.weights.of(span.number, || Some(weight::of_site(span.site)));
        batch.bytes += values + weight.copied().unwrap_or_default();
        batch.words.extend_from_slice(record);
        batch.spans.push(Waiting::Recorded(Recorded {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent: span.parent,
            site: span.site,
            number: span.number,
            words: record.len() as u32,
            begin: span.begin,
            end: span.end,
        }));
    }
}

/// Whether a span has nothing but what stands in its record, and what is constant of its site.
fn is_said_by_record(span: &SpanView<'_>) -> bool {
    let record = &span.record;
    let says_all = !record.flag(slot::ROOT | slot::MISPLACED) && record.outcome() == 0;
    says_all && !span.has_details() && span.breakdown.is_empty()
}
