//! The report of losses in the exported stream itself: a span `stagetrace.loss` of a trace of the process's own.

use super::sink::Sink;
use super::view::{Record, SpanView};
use crate::chunk::{DropCause, Pool};
use crate::config::SpanLimits;
use crate::stage::{Site, SpanKind, Stage, StageInfo};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::Timeline;
use stagetrace_wire::recording::value::Tag;
use std::time::{Duration, Instant};

static STAGE: StageInfo = StageInfo::new("", "stagetrace.loss", 1, None);
static SITE: Site = Site::new(Stage::new(&STAGE), SpanKind::Internal, &KEYS, "", file!(), line!());
const KEYS: [&str; DropCause::ALL.len()] = [
    "stagetrace.dropped.pool_full",
    "stagetrace.dropped.slab_full",
    "stagetrace.dropped.table_full",
    "stagetrace.dropped.detail_full",
    "stagetrace.dropped.detail_too_large",
];

/// Losses are reported at most this often.
const INTERVAL: Duration = Duration::from_secs(1);

/// What was reported.
#[derive(Debug)]
pub(crate) struct LossReport {
    pool: &'static Pool,
    reported: [u64; DropCause::ALL.len()],
    last: Option<(Instant, u64)>,
    is_last: bool,
    ids: [u64; 2],
}

impl LossReport {
    /// Nothing reported yet.
    pub(crate) fn new(pool: &'static Pool) -> LossReport {
        let mut ids = [[0; 8]; 2];
        // Without entropy the trace is named by the clock.
        if getrandom::fill(ids.as_flattened_mut()).is_err() {
            ids = [crate::clock::unix_ns().to_ne_bytes(); 2];
        }
        let ids = ids.map(|id| u64::from_ne_bytes(id).max(1));
        LossReport { pool, reported: [0; DropCause::ALL.len()], last: None, is_last: false, ids }
    }

    /// No further report will come: the next one does not wait for its interval.
    pub(crate) fn is_last(&mut self) {
        self.is_last = true;
    }

    /// Tells every sink what was lost since the last report, if anything was.
    pub(crate) fn report(&mut self, sinks: &mut [Box<dyn Sink>], timeline: &Timeline) {
        let now = DropCause::ALL.map(|cause| self.pool.dropped(cause));
        let recent = self.last.is_some_and(|(at, _)| at.elapsed() < INTERVAL) && !self.is_last;
        if now == self.reported || recent {
            return;
        }
        let end = self.pool.clock().ticks();
        let begin = self.last.map_or(end, |(_, tick)| tick);
        let mut words = [0; 2 * slot::WORDS];
        for (at, (now, before)) in now.iter().zip(self.reported).enumerate() {
            words[slot::WORDS] |= (Tag::I64 as u64) << (4 * at);
            words[slot::WORDS + 1 + at] = now.saturating_sub(before);
        }
        words[slot::META] = (DropCause::ALL.len() as u64) << 48;
        self.ids[1] = self.ids[1].wrapping_add(1).max(1);
        let ids = TraceId::from_u128(u128::from(self.ids[0])).zip(SpanId::from_u64(self.ids[1]));
        let Some((trace_id, span_id)) = ids else { return };
        let view = SpanView {
            trace_id,
            span_id,
            parent: None,
            number: u32::MAX,
            site: &SITE,
            begin: timeline.unix(begin),
            end: timeline.unix(end),
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
        self.reported = now;
        self.last = Some((Instant::now(), end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_key() {
        for (cause, key) in DropCause::ALL.iter().zip(KEYS) {
            assert_eq!(key, format!("stagetrace.dropped.{}", cause.name()));
        }
    }
}
