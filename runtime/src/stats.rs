//! Public counters: what became of every span.

use crate::chunk::DropCause;
use std::time::SystemTime;

/// What became of every span so far, as the collector saw it at one moment.
///
/// `begun` is `dropped + open + ended`; `ended` is `waiting + discarded + unsampled + handed`; of each sink, `handed` is
/// `queued + outbox + exported + failed`. A sink behind [tail sampling](crate::TailSampling) was handed
/// `handed - undecided - sampled_out`, that of metrics `handed + unsampled`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Spans begun, those included that found no room.
    pub begun: u64,
    /// Spans open now.
    pub open: u64,
    /// Spans ended.
    pub ended: u64,
    /// Spans that have ended and wait in the collector: roots for one sweep, others for their details.
    pub waiting: u64,
    /// Spans thrown away by [`Span::discard`](crate::Span::discard).
    pub discarded: u64,
    /// Spans of traces that are not [sampled](crate::Sampler), recorded and handed to the sink of metrics alone.
    pub unsampled: u64,
    /// Spans handed to every sink, or to the decision whether those behind tail sampling get them.
    pub handed: u64,
    /// Spans that wait for the decision about their trace.
    pub undecided: u64,
    /// Spans of traces that tail sampling did not want.
    pub sampled_out: u64,
    /// Traces that tail sampling had to decide before they had ended, for want of room or time.
    pub decided_early: u64,
    /// Losses before the collector, by cause. Only causes that [are of spans](DropCause::is_span) count in `begun`.
    pub dropped: Vec<(DropCause, u64)>,
    /// The sinks.
    pub sinks: Vec<SinkStatus>,
    /// Stages that did not lie within the stage they declare.
    pub misplaced: u64,
    /// Guards that ended in another order than they began.
    pub out_of_order: u64,
    /// Calls of `begin` on a request that had begun.
    pub begun_twice: u64,
    /// Calls of `finish` on a request that had finished.
    pub finished_twice: u64,
    /// Attributes, events and links that found no span.
    pub without_span: u64,
    /// Details whose span was never seen to end, thrown away.
    pub orphaned_details: u64,
    /// Received carriers of which something could not be read.
    pub unreadable_carriers: u64,
    /// Bytes of the pool in use.
    pub memory: u64,
    /// Panics of the collector or a sink that were contained.
    pub contained_panics: u64,
    /// What happened to the clocks.
    pub clock: ClockStats,
    /// The spool.
    pub spool: SpoolStats,
}

/// How the spool stands: the file to which spans go, without a `.jsonl`, that must make room before every exporter has let
/// them go, or that one of them lost. What it holds is recovered with the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpoolStats {
    /// Bytes of the file. It takes 64 MiB at most.
    pub bytes: u64,
    /// Spans that had to make room when it was full or could not be written: they are safe only if every exporter has
    /// exported them since.
    pub given_up: u64,
    /// Writes that failed.
    pub failures: u64,
    /// The error with which it cannot be written now.
    pub failing: Option<String>,
}

/// What happened to the clocks so far, and how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockStats {
    /// How far times may be from the monotonic clock now, in nanoseconds.
    pub error: u64,
    /// Nanoseconds that times are ahead of the wall clock now: it was set back, or jumped by less than is followed.
    pub ahead: i64,
    /// Jumps of the wall clock forward by more than a second, since it was set or the machine slept: times follow.
    pub wall_forward: u64,
    /// Steps of the wall clock back by more than a second: times do not follow.
    pub wall_backward: u64,
    /// How often the time stamp counter and the monotonic clock parted: a suspend through which the counter ran, a
    /// virtual machine that moved, a counter that began anew.
    pub counter_jumps: u64,
}

/// How a sink stands. Spans that dead processes left in outboxes and that this one sends count in none of its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SinkStatus {
    /// Its name: `jsonl`, or that of its exporter.
    pub name: &'static str,
    /// Spans handed to it.
    pub handed: u64,
    /// Spans that wait in it.
    pub queued: u64,
    /// Spans that wait in its [outbox](crate::TraceConfig::outbox_max_bytes), on disk, until they can be sent.
    pub outbox: u64,
    /// Spans that left it.
    pub exported: u64,
    /// Spans that it lost.
    pub failed: u64,
    /// The same by cause, as `error.type` names it, without those that took none.
    pub failed_by: Vec<(&'static str, u64)>,
    /// The error that it fails with now; `None` while it is well.
    pub failing: Option<String>,
    /// Since when it has failed without a success in between; `None` while it is well.
    pub failing_since: Option<SystemTime>,
    /// Panics of its exporter that were contained.
    pub panics: u64,
}

impl SinkStatus {
    /// It fails, with this.
    pub(crate) fn fails(&mut self, problem: String) {
        self.failing = Some(problem);
        self.failing_since.get_or_insert_with(SystemTime::now);
    }

    /// It is well again.
    pub(crate) fn recovers(&mut self) {
        (self.failing, self.failing_since) = (None, None);
    }
}

impl Stats {
    /// Losses of one cause.
    pub fn dropped(&self, cause: DropCause) -> u64 {
        self.dropped.iter().filter(|(other, _)| *other == cause).map(|(_, count)| count).sum()
    }

    /// Spans that were lost before the collector.
    pub fn dropped_spans(&self) -> u64 {
        self.dropped.iter().filter(|(cause, _)| cause.is_span()).map(|(_, count)| count).sum()
    }
}
