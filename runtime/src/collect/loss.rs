//! The report of losses: in the exported stream itself, as a span `stagetrace.loss` of a trace of the process's own, and
//! the first of each cause on standard error.

use super::sink::Sink;
use super::view::{Record, SpanView};
use crate::chunk::{DropCause, Pool};
use crate::complain;
use crate::config::SpanLimits;
use crate::stage::{Site, SpanKind, Stage, StageInfo};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::recording::time::Timeline;
use stagetrace_wire::recording::value::Tag;
use std::time::{Duration, Instant};

const CAUSES: usize = DropCause::ALL.len();

static STAGE: StageInfo = StageInfo::new("", "stagetrace.loss", 1, None);
static SITE: Site = Site::new(Stage::new(&STAGE), SpanKind::Internal, &KEYS, "", file!(), line!());
/// How many were lost since the last report: before the collector, by cause; and behind it, by this sink.
const KEYS: [&str; CAUSES + 1] = [
    "stagetrace.dropped.pool_full",
    "stagetrace.dropped.slab_full",
    "stagetrace.dropped.table_full",
    "stagetrace.dropped.detail_full",
    "stagetrace.dropped.detail_too_large",
    "stagetrace.failed",
];

/// Losses are reported at most this often.
const INTERVAL: Duration = Duration::from_secs(1);

/// What was reported.
#[derive(Debug)]
pub(crate) struct LossReport {
    pool: &'static Pool,
    reported: [u64; CAUSES],
    /// What each sink had lost.
    failed: Vec<u64>,
    /// When the sinks were last asked what they lost.
    asked: Option<Instant>,
    /// When the last report was, and up to which ticks.
    told: Option<(Instant, u64)>,
    is_last: bool,
    warned: [bool; CAUSES],
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
        LossReport {
            pool,
            reported: [0; CAUSES],
            failed: Vec::new(),
            asked: None,
            told: None,
            is_last: false,
            warned: [false; CAUSES],
            ids,
        }
    }

    /// No further report will come: the next one does not wait for its interval.
    pub(crate) fn is_last(&mut self) {
        self.is_last = true;
    }

    /// Tells every sink what was lost since the last report, if anything was.
    pub(crate) fn report(&mut self, sinks: &mut [Box<dyn Sink>], timeline: &Timeline) {
        let now = DropCause::ALL.map(|cause| self.pool.dropped(cause));
        self.warn(&now);
        let recently = |at: Instant| at.elapsed() < INTERVAL && !self.is_last;
        if self.told.is_some_and(|(at, _)| recently(at))
            || now == self.reported && self.asked.is_some_and(recently)
        {
            return;
        }
        self.asked = Some(Instant::now());
        self.failed.resize(sinks.len(), 0);
        let end = self.pool.clock().ticks();
        let begin = self.told.map_or(end, |(_, ticks)| ticks);
        // The same span for all sinks.
        self.ids[1] = self.ids[1].wrapping_add(1).max(1);
        let mut lost = [0; CAUSES + 1];
        for (lost, (now, before)) in lost.iter_mut().zip(now.iter().zip(self.reported)) {
            *lost = now.saturating_sub(before);
        }
        for (at, sink) in sinks.iter_mut().enumerate() {
            let status = sink.status();
            // What a sink that still fails is told now would be lost as well, and be a loss to report.
            let failed = if status.failing.is_none() { status.failed } else { self.failed[at] };
            lost[CAUSES] = failed.saturating_sub(self.failed[at]);
            if lost.iter().any(|count| *count > 0) {
                self.tell(sink.as_mut(), &lost, (begin, end), timeline);
                self.failed[at] = failed;
                self.told = Some((Instant::now(), end));
            }
        }
        self.reported = now;
    }

    /// Says on standard error what is lost for the first time.
    fn warn(&mut self, now: &[u64; CAUSES]) {
        for ((cause, count), warned) in DropCause::ALL.iter().zip(now).zip(&mut self.warned) {
            if *count > 0 && !*warned {
                *warned = true;
                let where_counted = "stats() and the spans stagetrace.loss say how many";
                complain::warn(
                    cause.name(),
                    format_args!("{}; {where_counted}", consequence(*cause)),
                );
            }
        }
    }

    fn tell(
        &self,
        sink: &mut dyn Sink,
        lost: &[u64; CAUSES + 1],
        (begin, end): (u64, u64),
        timeline: &Timeline,
    ) {
        let mut words = [0; 2 * slot::WORDS];
        for (at, count) in lost.iter().enumerate() {
            words[slot::WORDS] |= (Tag::I64 as u64) << (4 * at);
            words[slot::WORDS + 1 + at] = *count;
        }
        words[slot::META] = (lost.len() as u64) << 48;
        let ids = TraceId::from_u128(u128::from(self.ids[0])).zip(SpanId::from_u64(self.ids[1]));
        let Some((trace_id, span_id)) = ids else { return };
        sink.add(&SpanView {
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
        });
    }
}

/// What a loss means, in words.
fn consequence(cause: DropCause) -> &'static str {
    match cause {
        DropCause::PoolFull => {
            "spans are dropped: more are recorded than can be written away, and the memory for them is full"
        }
        DropCause::SlabFull => "requests are dropped: more are open than there is memory for",
        DropCause::TableFull => "the recording has no room for the names of further stages",
        DropCause::DetailFull => {
            "events, links or late attributes are dropped: the memory for them is full"
        }
        DropCause::DetailTooLarge => {
            "an event, a link or late attributes are dropped: larger than a chunk"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const _: () = assert!(KEYS.len() < slot::WORDS, "all of them fit behind one slot");

    #[test]
    fn every_cause_has_its_key() {
        for (cause, key) in DropCause::ALL.iter().zip(KEYS) {
            assert_eq!(key, format!("stagetrace.dropped.{}", cause.name()));
        }
    }
}
