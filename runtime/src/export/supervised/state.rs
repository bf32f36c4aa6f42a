//! The rules of the queue: what may wait, what is due, what is lost and to what, when an exporter
//! hangs.

mod stored;

use super::failure::{Cause, Failure, Losses};
use super::filling::Filling;
use super::{BATCH_BYTES, Batch, QUEUE_BYTES};
use crate::collect::Standing;
use crate::config::Batching;
use crate::stats::SinkStatus;
use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant, SystemTime};
use stored::Stored;

#[cfg(feature = "_network")]
pub(in super::super) use stored::{Asked, Listen, News};

/// How much longer than allowed a call may take before the exporter is said to hang: what can be
/// cancelled has been.
const GRACE: Duration = Duration::from_millis(100);

/// Empty batches that are kept.
const SPARE: usize = 8;

/// A batch that waits.
#[derive(Debug)]
struct Waiting<B> {
    batch: B,
    since: Instant,
    /// Spans that came before it.
    first: u64,
    closed: bool,
}

/// What the exporter's thread is to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Task<B> {
    Export(B),
    /// Until then if possible.
    Flush(Instant),
    /// Flush and shut down, until then if possible.
    Close(Instant),
}

/// What waits, what became of the rest, and what goes on.
#[derive(Debug)]
pub(super) struct State<B> {
    batching: Batching,
    waiting: VecDeque<Waiting<B>>,
    /// Since when the batch waits that is being filled.
    out: Option<Instant>,
    spare: Vec<B>,
    /// Spans and bytes of what waits.
    spans: usize,
    bytes: usize,
    /// Spans that came so far, with those that found no room.
    taken: u64,
    /// Spans that found room so far; they leave in the same order.
    entered: u64,
    exported: u64,
    failed: Losses,
    panics: u64,
    failing: Option<String>,
    failing_since: Option<SystemTime>,
    call: Option<Call>,
    /// Whether the call should have returned long ago. Its spans are lost, and so is what comes
    /// until it does.
    hangs: bool,
    closed: bool,
    asked: Option<FlushRequest>,
    trouble: Trouble,
    /// What the exporter keeps on disk, and is about to.
    stored: Stored,
    /// What to say aloud; every cause once.
    complaints: Vec<(&'static str, String)>,
    said: [bool; Cause::ALL.len()],
}

/// The call into the exporter that goes on.
#[derive(Debug)]
struct Call {
    name: &'static str,
    /// Since when nothing was heard of it.
    since: Instant,
    spans: u64,
    /// Spans that came before these.
    first: u64,
    /// Whether it is what was asked for.
    answers: bool,
}

/// What was asked for and has not begun.
#[derive(Clone, Copy, Debug)]
struct FlushRequest {
    /// How many of those that entered must have left before.
    upto: u64,
    deadline: Instant,
    last: bool,
}

/// What went wrong since the last verdict.
#[derive(Debug, Default)]
struct Trouble {
    lost: Losses,
    first: Option<String>,
}

impl<B: Batch> State<B> {
    pub(super) fn new(batching: Batching) -> State<B> {
        State {
            batching,
            waiting: VecDeque::new(),
            out: None,
            spare: Vec::new(),
            spans: 0,
            bytes: 0,
            taken: 0,
            entered: 0,
            exported: 0,
            failed: Losses::default(),
            panics: 0,
            failing: None,
            failing_since: None,
            call: None,
            hangs: false,
            closed: false,
            asked: None,
            trouble: Trouble::default(),
            stored: Stored::default(),
            complaints: Vec::new(),
            said: Default::default(),
        }
    }

    /// Gives a batch to fill: the last one, if there is room in it, else an empty one.
    pub(super) fn fill(&mut self, now: Instant) -> Filling<B> {
        let has_room = |last: &Waiting<B>| !last.is_whole(&self.batching);
        let last = match self.waiting.back().is_some_and(has_room) {
            true => self.waiting.pop_back(),
            false => None,
        };
        let (batch, since, first) = match last {
            Some(Waiting { batch, since, first, .. }) => {
                self.spans -= batch.spans();
                self.bytes -= batch.bytes();
                self.entered -= batch.spans() as u64;
                self.out = Some(since);
                (batch, since, first)
            }
            None => (self.spare.pop().unwrap_or_default(), now, self.taken),
        };
        let spans = self.batching.max_queue_size.unwrap_or(usize::MAX);
        let most = match self.closed || self.hangs {
            true => (0, 0),
            false => (spans.saturating_sub(self.spans), QUEUE_BYTES.saturating_sub(self.bytes)),
        };
        let before = batch.spans();
        Filling { batch, since, first, before, most, closed: false, refused: 0, too_large: 0 }
    }

    /// Takes a batch that was filled. Whether the exporter's thread should look.
    pub(super) fn put(&mut self, filling: Filling<B>, now: Instant) -> bool {
        let Filling { mut batch, since, first, before, closed, refused, too_large, .. } = filling;
        let was_known = self.out.take().is_some() || !self.waiting.is_empty();
        let spans = batch.spans();
        self.taken += (spans - before) as u64 + refused + too_large;
        let (cause, lost) = match (self.closed, self.hangs) {
            (true, _) => (Cause::Closed, refused + spans as u64),
            (_, true) => (Cause::Hanging, refused + spans as u64),
            _ => (Cause::QueueFull, refused),
        };
        if lost > 0 {
            // That it hangs or ended is known better than each span lost to it can say.
            let known = if cause == Cause::QueueFull { None } else { self.failing.take() };
            self.lose(cause, lost, known.as_deref().unwrap_or(cause.problem()));
        }
        if too_large > 0 {
            self.lose(Cause::TooLarge, too_large, Cause::TooLarge.problem());
        }
        if cause != Cause::QueueFull || spans == 0 {
            batch.clear();
            self.keep(batch);
        } else {
            self.spans += spans;
            self.bytes += batch.bytes();
            self.entered += spans as u64;
            self.waiting.push_back(Waiting { batch, since, first, closed });
        }
        let is_late = now.duration_since(since) >= self.batching.schedule_delay;
        !was_known || is_late || self.is_batch() || self.is_crowded() || self.asked.is_some()
    }

    /// Asks for everything to leave that was put in before; with `last`, to shut down then.
    pub(super) fn ask(&mut self, deadline: Instant, last: bool) {
        if !self.closed {
            let last = last || self.asked.is_some_and(|asked| asked.last);
            self.asked = Some(FlushRequest { upto: self.entered, deadline, last });
        }
    }

    /// Whether what was asked for goes on and may still succeed.
    pub(super) fn is_flushing(&self) -> bool {
        let answering = self.call.as_ref().is_some_and(|call| call.answers);
        !self.hangs && (self.asked.is_some() || answering)
    }

    /// What went wrong since the last verdict, or goes wrong now.
    pub(super) fn verdict(&mut self) -> Result<(), String> {
        let Trouble { lost, first } = mem::take(&mut self.trouble);
        let mut problems = Vec::new();
        problems.extend((lost != Losses::default()).then(|| format!("lost {lost}")));
        problems.extend(if self.hangs { self.failing.clone() } else { first });
        problems.extend(self.waits_in_outbox());
        if self.is_flushing() {
            let queued = self.queued();
            let why =
                self.failing.iter().find(|why| !problems.iter().any(|said| said.contains(*why)));
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            problems.push(format!(
                "not done at the deadline, {queued} spans are not exported yet{why}"
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// How it stands; the caller adds what only the sink knows.
    pub(super) fn status(&self) -> SinkStatus {
        SinkStatus {
            queued: self.queued(),
            outbox: self.stored.spans(),
            exported: self.exported,
            failed: self.failed.total(),
            failed_by: self.failed.by_cause().map(|(cause, count)| (cause.name(), count)).collect(),
            failing: self.failing.clone(),
            failing_since: self.failing_since,
            panics: self.panics,
            ..SinkStatus::default()
        }
    }

    /// How far it has got. What is being filled has not come yet.
    pub(super) fn standing(&self) -> Standing {
        let in_call = self.call.as_ref().filter(|call| call.spans > 0).map(|call| call.first);
        let moving = || self.stored.moving_first();
        let waiting = || self.waiting.front().map(|oldest| oldest.first);
        let gone = in_call.or_else(moving).or_else(waiting).unwrap_or(self.taken);
        // What is lost later was safe when it left the queue.
        let lost = self.failed.total() - self.stored.lost_later();
        Standing { taken: self.taken, gone, lost }
    }

    /// What is due now, or how long until something is; forever, if that depends on others.
    pub(super) fn next(&mut self, now: Instant) -> Result<Task<B>, Option<Duration>> {
        if self.closed {
            return Err(None);
        }
        if let Some(asked) = self.asked {
            let left = self.entered - self.queued();
            if left < asked.upto || asked.last && !self.waiting.is_empty() {
                // What is being filled comes back at once.
                return self.export(now).ok_or(None);
            }
            self.asked = None;
            let name = if asked.last { "shutdown" } else { "force_flush" };
            self.call = Some(Call { name, since: now, spans: 0, first: 0, answers: true });
            let task = if asked.last { Task::Close } else { Task::Flush };
            return Ok(task(asked.deadline));
        }
        let Some(since) = self.waiting.front().map(|oldest| oldest.since).or(self.out) else {
            return Err(None);
        };
        let left = self.batching.schedule_delay.saturating_sub(now.duration_since(since));
        if self.is_batch() || left.is_zero() {
            self.export(now).ok_or(None)
        } else {
            Err(Some(left))
        }
    }

    /// Says what became of the task, and what was lost though it succeeded; gives back its batch, empty.
    pub(super) fn done(&mut self, result: Result<Vec<(u64, Failure)>, Failure>, batch: Option<B>) {
        if let Some(batch) = batch {
            self.keep(batch);
        }
        let Some(call) = self.call.take() else { return };
        let was_given_up = mem::take(&mut self.hangs);
        match result {
            Ok(_) if was_given_up => {}
            Ok(losses) => {
                let mut left = call.spans;
                for (spans, Failure { cause, problem }) in losses {
                    let lost = spans.min(left);
                    left -= lost;
                    self.lose(cause, lost, &format!("`{}`: {problem}", call.name));
                }
                self.exported += left;
                if left > 0 && left == call.spans && self.stored.spans() == 0 {
                    (self.failing, self.failing_since) = (None, None);
                }
            }
            Err(Failure { cause, problem }) => {
                self.panics += u64::from(cause == Cause::Panic);
                self.lose(cause, call.spans, &format!("`{}`: {problem}", call.name));
            }
        }
    }

    /// Says what went wrong outside of a task.
    pub(super) fn report(&mut self, failure: &Failure) {
        self.panics += u64::from(failure.cause == Cause::Panic);
        self.lose(failure.cause, 0, &failure.problem);
    }

    /// Nothing will be exported any more: what is left is lost, to `problem` if it came unasked.
    pub(super) fn close(&mut self, problem: Option<&str>) {
        if mem::replace(&mut self.closed, true) {
            return;
        }
        let in_call = self.call.take().map_or(0, |call| call.spans);
        let left = in_call + self.stored.forget_moving() + self.forget_waiting();
        self.asked = None;
        self.hangs = false;
        if left > 0 || problem.is_some() {
            self.lose(Cause::Closed, left, problem.unwrap_or(Cause::Closed.problem()));
        }
    }

    /// Finds out whether the exporter hangs.
    pub(super) fn watch(&mut self, now: Instant) {
        let allowed = self.batching.export_timeout;
        let Some(call) = &mut self.call else { return };
        if self.hangs || now.duration_since(call.since) <= allowed.saturating_add(GRACE) {
            return;
        }
        let problem = format!("`{}` has not returned within {allowed:?}", call.name);
        let in_call = mem::take(&mut call.spans);
        self.hangs = true;
        let dropped = self.forget_waiting();
        // Said once, for both.
        self.said[Cause::Hanging as usize] = true;
        self.lose(Cause::Timeout, in_call, &problem);
        self.lose(Cause::Hanging, dropped, &problem);
    }

    /// What is to be said aloud.
    pub(super) fn take_complaints(&mut self) -> Vec<(&'static str, String)> {
        mem::take(&mut self.complaints)
    }

    /// Whether a batch waits that nothing more comes to.
    fn is_batch(&self) -> bool {
        self.waiting.front().is_some_and(|first| first.is_whole(&self.batching))
    }

    /// Whether half of the queue is taken.
    fn is_crowded(&self) -> bool {
        let most = self.batching.max_queue_size.unwrap_or(usize::MAX);
        self.spans > most / 2 || self.bytes > QUEUE_BYTES / 2
    }

    /// Takes the first batch out.
    fn export(&mut self, now: Instant) -> Option<Task<B>> {
        let Waiting { batch, first, .. } = self.waiting.pop_front()?;
        self.spans -= batch.spans();
        self.bytes -= batch.bytes();
        let spans = batch.spans() as u64;
        self.call = Some(Call { name: "export", since: now, spans, first, answers: false });
        Some(Task::Export(batch))
    }

    /// Throws away what waits; gives how many spans that were.
    fn forget_waiting(&mut self) -> u64 {
        self.waiting.clear();
        self.bytes = 0;
        mem::take(&mut self.spans) as u64
    }

    fn keep(&mut self, empty: B) {
        if self.spare.len() < SPARE {
            self.spare.push(empty);
        }
    }

    /// Counts spans as lost, none perhaps.
    fn lose(&mut self, cause: Cause, spans: u64, problem: &str) {
        self.failed.add(cause, spans);
        self.trouble.lost.add(cause, spans);
        self.trouble.first.get_or_insert_with(|| problem.to_owned());
        self.fails(problem);
        if !mem::replace(&mut self.said[cause as usize], true) {
            self.complaints.push((cause.name(), problem.to_owned()));
        }
    }

    fn fails(&mut self, problem: &str) {
        self.failing_since.get_or_insert_with(SystemTime::now);
        if self.failing.as_deref() != Some(problem) {
            self.failing = Some(problem.to_owned());
        }
    }

    fn queued(&self) -> u64 {
        let in_call = self.call.as_ref().map_or(0, |call| call.spans);
        self.spans as u64 + in_call + self.stored.moving_spans()
    }
}

impl<B: Batch> Waiting<B> {
    /// Whether nothing more comes to it.
    fn is_whole(&self, batching: &Batching) -> bool {
        self.closed || is_full(&self.batch, batching)
    }
}

/// Whether a batch is as large as it may be.
fn is_full<B: Batch>(batch: &B, batching: &Batching) -> bool {
    batch.spans() >= batching.max_export_batch_size || batch.bytes() >= BATCH_BYTES
}

#[cfg(all(test, feature = "_network"))]
mod outbox_tests;
#[cfg(test)]
mod tests;
