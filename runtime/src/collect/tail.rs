//! Tail sampling: the spans of a trace wait until the one that began it here has ended; then all are exported or none.
//!
//! Which spans belong together says their trace. It is decided when a span ends whose parent is not of this process: a
//! request's root, or what was begun without a request. A trace that is wanted is exported whole from then on. Of one that
//! is not, what belongs to that request and to those below it is forgotten, now and later; several requests may come with
//! one trace, and the others have decisions of their own. Nothing waits of a trace that is forced.

mod lag;
mod policy;
mod quantile;
mod verdicts;
mod waiting;

use super::ended::Ended;
use super::hash::IdMap;
use super::run::{Context, Plain, Run};
use super::sink::Standing;
use super::view::{Record, SpanView};
use crate::config::{SpanLimits, TailSampling};
use crate::record::register;
use crate::stage::Site;
use lag::Lag;
use policy::{Course, Policy};
use stagetrace_wire::recording::time::Timeline;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use verdicts::Verdicts;
use waiting::{Waiting, root_of};

/// The two halves of a trace id.
type Trace = [u64; 2];

/// What waits, and what was decided.
#[derive(Debug)]
pub(super) struct Tail {
    limits: SpanLimits,
    max_bytes: usize,
    max_age: Duration,
    policy: Policy,
    verdicts: Verdicts,
    waiting: IdMap<Trace, Waiting>,
    /// The traces that wait, the oldest first; those that were decided are among them until their turn comes.
    order: VecDeque<(Instant, Trace)>,
    sites: Vec<&'static Site>,
    bytes: usize,
    /// Spans that came.
    arrived: u64,
    lag: Lag,
    pub(super) counts: Counts,
}

/// What became of the spans.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Spans that wait.
    pub(super) undecided: u64,
    /// Spans that nobody wanted.
    pub(super) sampled_out: u64,
    /// Traces that were decided before they had ended, for want of room or time.
    pub(super) decided_early: u64,
}

/// Where spans go that are wanted.
type Out<'a> = dyn FnMut(Ended<'_>) + 'a;

impl Tail {
    /// Nothing waits.
    pub(super) fn new(rules: TailSampling, limits: SpanLimits) -> Tail {
        let now = Instant::now();
        Tail {
            limits,
            max_bytes: rules.max_bytes,
            max_age: rules.max_age,
            policy: Policy::new(rules, now),
            verdicts: Verdicts::new(rules.max_age.max(Duration::from_secs(1)), now),
            waiting: IdMap::default(),
            order: VecDeque::new(),
            sites: Vec::new(),
            bytes: 0,
            arrived: 0,
            lag: Lag::default(),
            counts: Counts::default(),
        }
    }

    /// Takes ended spans; hands out those whose trace is wanted, now or when it is decided by one of them.
    pub(super) fn take(&mut self, ended: &Ended<'_>, timeline: &Timeline, out: &mut Out<'_>) {
        let now = Instant::now();
        match ended {
            Ended::One(span) => self.take_one(span, now, timeline, out),
            Ended::Plain(run) => self.take_run(run, now, timeline, out),
        }
        self.arrived += ended.spans();
        while self.bytes > self.max_bytes && self.decide_oldest(timeline, out) {}
    }

    /// Decides the traces that have waited too long; with `all`, all of them.
    pub(super) fn look_after(&mut self, all: bool, timeline: &Timeline, out: &mut Out<'_>) {
        let now = Instant::now();
        while let Some((since, _)) = self.order.front()
            && (all || now.saturating_duration_since(*since) >= self.max_age)
        {
            self.decide_oldest(timeline, out);
        }
    }

    /// How far it has got, as if it were a sink: what is wanted has left it when those behind it, which stand so, have let
    /// it go.
    pub(super) fn standing(&mut self, behind: &[Standing]) -> Standing {
        while let Some((since, trace)) = self.order.front()
            && self.waiting.get(trace).is_none_or(|waiting| waiting.since != *since)
        {
            self.order.pop_front();
        }
        let oldest = self.order.front().and_then(|(_, trace)| self.waiting.get(trace));
        let decided = oldest.map_or(self.arrived, |waiting| waiting.before);
        Standing { taken: self.arrived, gone: self.lag.gone(decided, behind), lost: 0 }
    }

    fn take_run(&mut self, run: &Run<'_>, now: Instant, timeline: &Timeline, out: &mut Out<'_>) {
        // Spans come in rows of one trace: its decision is looked up once for each.
        let mut left = *run;
        while let Some(first) = left.iter().next() {
            let of = |span: &Plain<'_>| {
                (root_of(span.words()), span.trace(), Record(span.words()).is_forced())
            };
            let (root, trace, is_forced) = of(&first);
            let is_same = |span: &Plain<'_>| of(span) == (root, trace, is_forced);
            let row = left.iter().take_while(is_same).count();
            let (row, rest) = left.split_at(row);
            left = rest;
            if self.keeps(trace, is_forced, now, timeline, out) {
                out(Ended::Plain(row));
            } else if self.verdicts.drops(&(root, trace)) {
                self.counts.sampled_out += row.spans() as u64;
            } else {
                self.wait(trace, row.spans(), now, |waiting| {
                    row.iter().for_each(|span| waiting.add_plain(&span));
                });
            }
        }
    }

    fn take_one(
        &mut self,
        span: &SpanView<'_>,
        now: Instant,
        timeline: &Timeline,
        out: &mut Out<'_>,
    ) {
        let (root, trace) = (span.record.root(), span.record.trace());
        if self.keeps(trace, span.record.is_forced(), now, timeline, out) {
            return out(Ended::One(span));
        }
        if self.verdicts.drops(&(root, trace)) {
            self.counts.sampled_out += 1;
            return;
        }
        let begins = span.begins_here();
        // Or a request below another one, which has ended before and was not wanted.
        let decides = begins || span.is_root() && self.verdicts.drops_part_of(&trace);
        let waiting = self.wait(trace, 1, now, |waiting| waiting.add(span));
        if !decides {
            return;
        }
        let course = Course {
            trace_id: span.trace_id.to_u128(),
            site: Some(span.number),
            took: Duration::from_nanos(span.end - span.begin),
            failed: waiting.failed,
        };
        let mut roots = vec![root];
        if begins {
            roots.extend(waiting.requests_below());
        }
        self.decide(trace, &course, &roots, now, timeline, out);
    }

    /// Whether all of a trace is exported. The first span of one that is forced decides that, and what waits of it goes
    /// out before.
    fn keeps(
        &mut self,
        trace: Trace,
        is_forced: bool,
        now: Instant,
        timeline: &Timeline,
        out: &mut Out<'_>,
    ) -> bool {
        if self.verdicts.keeps(&trace) {
            return true;
        }
        if is_forced {
            let waiting = self.no_longer_waits(trace);
            self.keep(trace, waiting, now, timeline, out);
        }
        is_forced
    }

    /// Has `add` add so many spans to what waits of a trace.
    fn wait(
        &mut self,
        trace: Trace,
        spans: usize,
        now: Instant,
        add: impl FnOnce(&mut Waiting),
    ) -> &Waiting {
        let waiting = self.waiting.entry(trace).or_insert_with(|| {
            self.order.push_back((now, trace));
            let waiting = Waiting::new(now, self.arrived);
            self.bytes += waiting.bytes;
            waiting
        });
        let before = waiting.bytes;
        add(waiting);
        self.bytes += waiting.bytes - before;
        self.counts.undecided += spans as u64;
        waiting
    }

    /// Decides the trace that has waited longest, as it stands. `false` if none waits.
    fn decide_oldest(&mut self, timeline: &Timeline, out: &mut Out<'_>) -> bool {
        let Some((since, trace)) = self.order.pop_front() else { return false };
        let Some(waiting) = self.waiting.get(&trace).filter(|waiting| waiting.since == since)
        else {
            return true;
        };
        let so_far = crate::clock::unix_ns().saturating_sub(waiting.begin);
        let course = Course {
            trace_id: u128::from(trace[0]) << 64 | u128::from(trace[1]),
            site: None,
            took: Duration::from_nanos(so_far),
            failed: waiting.failed,
        };
        let roots = waiting.roots();
        self.counts.decided_early += 1;
        self.decide(trace, &course, &roots, Instant::now(), timeline, out);
        true
    }

    /// Decides a trace, of which these roots are those that have ended or can wait no longer.
    fn decide(
        &mut self,
        trace: Trace,
        course: &Course,
        roots: &[u64],
        now: Instant,
        timeline: &Timeline,
        out: &mut Out<'_>,
    ) {
        let is_wanted = self.policy.wants(course, now);
        let Some(mut waiting) = self.no_longer_waits(trace) else { return };
        if is_wanted {
            return self.keep(trace, Some(waiting), now, timeline, out);
        }
        let spans = waiting.spans();
        roots.iter().for_each(|root| self.verdicts.drop((*root, trace), now));
        waiting.take_out(roots);
        self.counts.sampled_out += (spans - waiting.spans()) as u64;
        if waiting.spans() > 0 {
            // Another request's of the same trace. It keeps its place among those that wait.
            self.bytes += waiting.bytes;
            self.counts.undecided += waiting.spans() as u64;
            self.waiting.insert(trace, waiting);
        }
        self.forget_decided();
    }

    /// Takes out what waits of a trace.
    fn no_longer_waits(&mut self, trace: Trace) -> Option<Waiting> {
        let waiting = self.waiting.remove(&trace)?;
        self.bytes -= waiting.bytes;
        self.counts.undecided -= waiting.spans() as u64;
        Some(waiting)
    }

    /// Has a trace be exported: what waited of it now, the rest as it comes.
    fn keep(
        &mut self,
        trace: Trace,
        waiting: Option<Waiting>,
        now: Instant,
        timeline: &Timeline,
        out: &mut Out<'_>,
    ) {
        self.verdicts.keep(trace, now);
        if let Some(waiting) = waiting {
            let known = self.sites.len();
            self.sites.extend(register::sites_after(known));
            let context = Context { sites: &self.sites, limits: &self.limits, timeline };
            waiting.release(context, out);
            self.forget_decided();
        }
    }

    /// Keeps the order of those that wait from growing with those that do not.
    fn forget_decided(&mut self) {
        if self.order.len() > 2 * self.waiting.len() + 1024 {
            let waits = |(since, trace): &(Instant, Trace)| {
                self.waiting.get(trace).is_some_and(|waiting| waiting.since == *since)
            };
            self.order.retain(waits);
        }
    }
}
