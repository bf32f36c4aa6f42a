//! The report of what happened to the clocks in the exported stream itself: a span `stagetrace.clock` between the two
//! looks that saw it, in a trace of its own.

use super::anchors::Change;
use super::sink::Sink;
use super::view::{Record, SpanView};
use crate::config::SpanLimits;
use crate::stage::{Site, SpanKind, Stage, StageInfo};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::Timeline;
use stagetrace_wire::recording::value::Tag;

static STAGE: StageInfo = StageInfo::new("", "stagetrace.clock", 1, None);
static SITE: Site = Site::new(Stage::new(&STAGE), SpanKind::Internal, &KEYS, "", file!(), line!());
/// Seconds, absent if that did not happen.
const KEYS: [&str; 3] =
    ["stagetrace.clock.forward", "stagetrace.clock.backward", "stagetrace.clock.counter"];

/// Tells every sink what happened to the clocks.
pub(crate) fn report(change: &Change, sinks: &mut [Box<dyn Sink>], timeline: &Timeline) {
    let mut ids = [[0; 8]; 2];
    // Without entropy the trace is named by the clock.
    if getrandom::fill(ids.as_flattened_mut()).is_err() {
        ids = [crate::clock::unix_ns().to_ne_bytes(); 2];
    }
    let [trace, span] = ids.map(|id| u64::from_ne_bytes(id).max(1));
    let ids = TraceId::from_u128(u128::from(trace)).zip(SpanId::from_u64(span));
    let Some((trace_id, span_id)) = ids else { return };
    let words = words(change);
    let (begin, end) = change.between;
    let view = SpanView {
        trace_id,
        span_id,
        parent: None,
        number: u32::MAX,
        site: &SITE,
        begin,
        end,
        record: Record(&words),
        details: &[],
        dropped_events: 0,
        dropped_links: 0,
        breakdown: &[],
        limits: &SpanLimits::default(),
        timeline,
    };
    for sink in sinks {
        sink.add(&view);
    }
}

/// The words of a record with what happened as its inline attributes.
fn words(change: &Change) -> [u64; 2 * slot::WORDS] {
    let values = [change.forward as f64, change.backward as f64, change.counter as f64];
    let mut words = [0; 2 * slot::WORDS];
    let mut at = slot::WORDS + 1;
    for (key, ns) in values.into_iter().enumerate() {
        if ns != 0.0 {
            words[slot::WORDS] |= (Tag::F64 as u64) << (4 * key);
            words[at] = (ns / 1e9).to_bits();
            at += 1;
        }
    }
    words[slot::META] = (KEYS.len() as u64) << 48;
    words
}
