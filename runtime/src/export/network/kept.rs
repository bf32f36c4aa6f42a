//! What waits in the outbox, and how it leaves: the oldest first, one attempt after another, at growing intervals while
//! the server is away.

use super::beside::{before, beside};
use super::body::Body;
use super::outage::Outages;
use super::outbox::{Gone, Oldest, Outbox, Place};
use super::retry::{Backoff, Throttle, Time, Transport, Verdict};
use crate::clock::unix_ns;
use crate::complain;
use crate::config::Endpoint;
use crate::export::supervised::{Asked, Cause, Failure, Listen, Queue};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// The outbox, and whether the server is away.
pub(super) struct Kept {
    outbox: Outbox,
    endpoint: Endpoint,
    away: Option<Away>,
    outages: Outages,
    /// Whether the last batch that was put there could be written.
    takes: bool,
    /// The oldest batch, if it was cut and some of it is done with.
    rest: Option<Rest>,
    /// Spans that arrived from there, and how many of them were spoken of.
    arrived: u64,
    said: u64,
    /// Spans that dead processes left and that are lost, and to what first.
    lost: Option<(u64, String)>,
}

/// The server does not answer, or has asked for time.
struct Away {
    backoff: Backoff,
    /// When to try again.
    until: Instant,
    why: String,
}

/// What sends, and how long one attempt may take.
pub(super) struct Line<'l, T, H> {
    pub(super) transport: &'l mut T,
    pub(super) throttle: &'l mut Throttle,
    pub(super) head: &'l H,
    pub(super) timeout: Duration,
}

/// What is still to be sent of a batch: all of it, or the parts into which it was cut.
struct Rest {
    place: Place,
    /// Spans that it had.
    spans: u64,
    /// Bodies, the next one last, and how many spans each has.
    parts: Vec<(Vec<u8>, u64)>,
    losses: Vec<(u64, Failure)>,
}

/// What became of spans that waited.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) arrived: u64,
    pub(crate) waiting: u64,
    pub(crate) problems: Vec<String>,
}

/// A batch that waits on: after this time if the server says so, and for this reason.
struct Unsent(Option<Duration>, String);

impl Kept {
    pub(super) fn new(outbox: Outbox, endpoint: Endpoint) -> Kept {
        Kept {
            outbox,
            endpoint,
            away: None,
            outages: Outages::default(),
            takes: true,
            rest: None,
            arrived: 0,
            said: 0,
            lost: None,
        }
    }

    /// Takes over what dead processes left, and tells of what it leaves.
    pub(super) fn adopt(&mut self) {
        self.outbox.adopt();
        let others = self.outbox.others();
        if others.spans > 0 {
            let (runs, by) = (self.outbox.dir().parent(), others.protocols());
            let runs = runs.unwrap_or(self.outbox.dir()).display();
            let what = format_args!("stagetrace::recover sends them, by {by}");
            complain::info(format_args!("{others}, below {runs}; {what}"));
        }
    }

    /// Whether anything waits.
    pub(super) fn has_work(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether a batch is to be put aside, since others of this process wait before it or the server is away.
    pub(super) fn goes_first(&self) -> bool {
        self.outbox.has_ours() || self.away.is_some()
    }

    /// Puts a batch aside: that of the task at hand, or one that the queue gave besides.
    ///
    /// # Errors
    /// If it cannot be written: where, and why.
    pub(super) fn take<B: Body>(
        &mut self,
        batch: &mut B,
        head: &B::Head,
        queue: &Queue<B>,
    ) -> Result<(), String> {
        let spans = batch.spans() as u64;
        let appended = self.outbox.append(batch.encoded(head), spans, unix_ns());
        self.takes = appended.is_ok();
        let gone = appended.map_err(|error| format!("{}: {error}", self.outbox.dir().display()))?;
        self.outbox.newest_counts(queue.stored(spans));
        self.lose(queue, gone, Cause::OutboxFull);
        Ok(())
    }

    /// The same for one that the queue gave besides, which is lost if that fails. Whether it could be written.
    pub(super) fn take_besides<B: Body>(
        &mut self,
        mut batch: B,
        head: &B::Head,
        queue: &Queue<B>,
    ) -> bool {
        if let Err(problem) = self.take(&mut batch, head, queue) {
            let problem = format!("it cannot wait in {problem}");
            queue.not_stored(&Failure { cause: Cause::Unavailable, problem });
        }
        self.takes
    }

    /// The server is away, for this reason.
    pub(super) fn is_away<B: Body>(&mut self, why: &str, throttle: &Throttle, queue: &Queue<B>) {
        queue.troubled(why);
        self.outages.is_away(why, &self.endpoint, self.outbox.dir());
        let mut backoff = self.away.take().map(|away| away.backoff).unwrap_or_default();
        let next = backoff.next(None);
        let until = throttle.until().map_or(next, |until| until.max(next));
        self.away = Some(Away { backoff, until, why: why.to_owned() });
    }

    /// The server is there.
    pub(super) fn is_back(&mut self) {
        self.away = None;
        self.tell_of_arrival();
    }

    /// Waits until it is time for another attempt, and makes it. Ends early if a flush is asked for.
    pub(super) async fn work<B: Body>(
        &mut self,
        line: &mut Line<'_, impl Transport, B::Head>,
        queue: &Queue<B>,
    ) {
        let head = line.head;
        if let Some(until) = self.away.as_ref().map(|away| away.until) {
            let listen = Listen { every_batch: self.takes, asked: Asked::Any };
            let keep = |batch| self.take_besides(batch, head, queue);
            if beside(pin!(sleep_until(until)), queue, listen, keep).await.is_none() {
                return;
            }
        }
        let until = Time::from_now(line.timeout).until();
        self.attempt(line, until, queue).await;
    }

    /// Sends what waits, until an attempt fails; no later than shortly before the deadline.
    pub(super) async fn flush<B: Body>(
        &mut self,
        line: &mut Line<'_, impl Transport, B::Head>,
        deadline: std::time::Instant,
        queue: &Queue<B>,
    ) {
        let end = before(deadline);
        while self.has_work() && line.throttle.until().is_none_or(|until| until <= Instant::now()) {
            let until = end.min(Time::from_now(line.timeout).until());
            if until <= Instant::now() || !self.attempt(line, until, queue).await {
                return;
            }
        }
    }

    /// Sends what waits, with as many attempts as there is time for. Gives what became of it.
    pub(super) async fn drain<B: Body>(
        &mut self,
        line: &mut Line<'_, impl Transport, B::Head>,
        deadline: std::time::Instant,
        queue: &Queue<B>,
    ) -> Sent {
        let end = before(deadline);
        loop {
            self.flush(line, deadline, queue).await;
            let next = self.away.as_ref().map_or(end, |away| away.until);
            if !self.has_work() || next >= end {
                return self.sent();
            }
            sleep_until(next).await;
        }
    }

    /// What has become of spans that dead processes left.
    fn sent(&self) -> Sent {
        let (waiting, mut problems) = (self.outbox.spans(), Vec::new());
        if let Some((spans, first)) = &self.lost {
            problems.push(format!("{spans} spans are lost: {first}"));
        }
        let (endpoint, dir) = (&self.endpoint, self.outbox.dir().display());
        if waiting > 0 {
            let more =
                if self.outbox.is_more_left() { ", and those of further files," } else { "" };
            let why = self.away.as_ref().map_or("there was no more time", |away| &away.why);
            problems.push(format!("{waiting} spans{more} wait on below {dir}: {endpoint}: {why}"));
        }
        let others = self.outbox.others();
        if others.spans > 0 {
            let by = others.protocols();
            let what = "in another encoding; sent by OTEL_EXPORTER_OTLP_PROTOCOL =";
            problems.push(format!("{others}, below {dir}, {what} {by}"));
        }
        Sent { arrived: self.arrived, waiting: waiting + others.spans, problems }
    }

    /// Makes an attempt for the oldest batch. Whether the server is there.
    async fn attempt<B: Body>(
        &mut self,
        line: &mut Line<'_, impl Transport, B::Head>,
        until: Instant,
        queue: &Queue<B>,
    ) -> bool {
        let expired = self.outbox.expire(unix_ns());
        self.lose(queue, expired, Cause::Expired);
        let begun = self.rest.take().filter(|rest| self.outbox.is_oldest(&rest.place));
        let Some(mut rest) = begun.or_else(|| self.oldest(queue)) else { return true };
        let head = line.head;
        let every_batch = self.takes && self.goes_first();
        let listen = Listen { every_batch, asked: Asked::Last };
        let begun = Instant::now();
        let sent = {
            let endpoint = self.endpoint.clone();
            let keep = |batch| self.take_besides(batch, head, queue);
            let sending = deliver::<B>(line.transport, &mut rest, &endpoint, until);
            beside(pin!(sending), queue, listen, keep).await
        };
        let sent = sent.unwrap_or_else(|| {
            line.transport.reconnect();
            Err(Unsent(None, "no answer before the shutdown".to_owned()))
        });
        let cause = match &sent {
            Ok(()) => rest.losses.first().map(|(_, failure)| failure.cause),
            Err(_) => Some(Cause::Unavailable),
        };
        queue.operated(begun.elapsed(), cause);
        match sent {
            Ok(()) => {
                self.away = None;
                self.arrived(rest, queue);
                true
            }
            Err(Unsent(least, why)) => {
                self.rest = Some(rest).filter(Rest::is_begun);
                line.throttle.set(least);
                self.is_away(&why, line.throttle, queue);
                false
            }
        }
    }

    /// The oldest batch, whole. What cannot be read is lost.
    fn oldest<B: Body>(&mut self, queue: &Queue<B>) -> Option<Rest> {
        let (oldest, damaged) = self.outbox.oldest();
        self.lose(queue, damaged, Cause::Refused);
        let Oldest { place, body, spans } = oldest?;
        Some(Rest { place, spans, parts: vec![(body, spans)], losses: Vec::new() })
    }

    /// A batch has gone, but for the losses.
    fn arrived<B: Body>(&mut self, Rest { place, spans, losses, .. }: Rest, queue: &Queue<B>) {
        let Gone { counted, inherited } = self.outbox.has_gone(&place);
        queue.settled(counted, &losses);
        let lost: u64 = losses.iter().map(|(spans, _)| spans).sum();
        if let Some((_, failure)) = losses.first() {
            self.lose_inherited(lost.min(inherited), &failure.problem);
        }
        self.arrived += spans.saturating_sub(lost);
        self.tell_of_arrival();
    }

    /// If nothing waits any more, which may have been left by dead processes while the server was always there.
    fn tell_of_arrival(&mut self) {
        let arrived = self.arrived - self.said;
        if self.outbox.is_empty() && self.outages.is_over(arrived, &self.endpoint) {
            self.said = self.arrived;
        }
    }

    /// Counts what left the outbox otherwise than by being sent.
    fn lose<B: Body>(&mut self, queue: &Queue<B>, Gone { counted, inherited }: Gone, cause: Cause) {
        if counted > 0 {
            let failure = Failure { cause, problem: cause.problem().to_owned() };
            queue.settled(counted, &[(counted, failure)]);
        }
        self.lose_inherited(inherited, cause.problem());
    }

    /// Tells of spans that dead processes left. They are not among those of this process that count.
    fn lose_inherited(&mut self, spans: u64, problem: &str) {
        if spans > 0 {
            let what = format_args!("{spans} spans that a dead process left are lost: {problem}");
            complain::warn("outbox inherited", what);
            self.lost.get_or_insert_with(|| (0, problem.to_owned())).0 += spans;
        }
    }
}

impl Rest {
    /// Whether some of it is done with.
    fn is_begun(&self) -> bool {
        self.parts.iter().map(|(_, spans)| spans).sum::<u64>() < self.spans
    }
}

/// Sends the rest of a batch, halved where it is too large.
async fn deliver<B: Body>(
    transport: &mut impl Transport,
    Rest { parts, losses, .. }: &mut Rest,
    endpoint: &Endpoint,
    until: Instant,
) -> Result<(), Unsent> {
    while let Some((body, spans)) = parts.last() {
        let (spans, mut halves) = (*spans, None);
        match transport.prepare(body) {
            Err(failure) => losses.push((spans, failure)),
            Ok(prepared) => match timeout_at(until, transport.attempt(prepared)).await {
                Ok(Verdict::Arrived(answer)) => losses.extend(answer.loss(spans, endpoint)),
                Ok(Verdict::Again(least, problem)) => return Err(Unsent(least, problem)),
                Ok(Verdict::Refused(problem)) => {
                    losses.push((spans, Failure { cause: Cause::Rejected, problem }));
                }
                Ok(Verdict::TooLarge(problem)) => {
                    halves = B::halves(body);
                    if halves.is_none() {
                        losses.push((spans, Failure { cause: Cause::TooLarge, problem }));
                    }
                }
                Err(_) => {
                    transport.reconnect();
                    return Err(Unsent(None, "no answer in time".to_owned()));
                }
            },
        }
        parts.pop();
        parts.extend(halves.into_iter().flatten());
    }
    Ok(())
}

#[cfg(all(test, unix, not(miri)))]
mod tests;
