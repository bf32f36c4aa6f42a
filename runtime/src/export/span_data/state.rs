//! The rules of the queue: what may wait, what is due, what is lost and to what, when an exporter
//! hangs.

use super::convert::weight;
use super::failure::{Cause, Failure, Losses};
use super::{BATCH_BYTES, QUEUE_BYTES};
use crate::config::Batching;
use crate::stats::SinkStatus;
use opentelemetry_sdk::trace::SpanData;
use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

/// How much longer than allowed a call may take before the exporter is said to hang: what can be
/// cancelled has been.
const GRACE: Duration = Duration::from_millis(100);

/// A span that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    span: SpanData,
    bytes: usize,
    since: Instant,
}

/// What the exporter's thread is to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Task {
    Export(Vec<SpanData>),
    Flush,
    /// Flush and shut down, until then if possible.
    Close(Instant),
}

/// What waits, what became of the rest, and what goes on.
#[derive(Debug)]
pub(super) struct State {
    batching: Batching,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Spans that found room so far; they leave in the same order.
    entered: u64,
    exported: u64,
    failed: Losses,
    panics: u64,
    failing: Option<String>,
    call: Option<Call>,
    /// Whether the call should have returned long ago. Its spans are lost, and so is what comes
    /// until it does.
    hangs: bool,
    closed: bool,
    asked: Option<Asked>,
    trouble: Trouble,
    /// What to say aloud; every cause once.
    complaints: Vec<(&'static str, String)>,
    said: [bool; Cause::ALL.len()],
}

/// The call into the exporter that goes on.
#[derive(Debug)]
struct Call {
    name: &'static str,
    since: Instant,
    spans: u64,
    /// Whether it is what was asked for.
    answers: bool,
}

/// What was asked for and has not begun.
#[derive(Clone, Copy, Debug)]
struct Asked {
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

impl State {
    pub(super) fn new(batching: Batching) -> State {
        State {
            batching,
            waiting: VecDeque::new(),
            bytes: 0,
            entered: 0,
            exported: 0,
            failed: Losses::default(),
            panics: 0,
            failing: None,
            call: None,
            hangs: false,
            closed: false,
            asked: None,
            trouble: Trouble::default(),
            complaints: Vec::new(),
            said: Default::default(),
        }
    }

    /// Takes these spans, as far as there is room. Whether the exporter's thread should look.
    pub(super) fn put(&mut self, spans: &mut Vec<Waiting>) -> bool {
        let was_idle = self.waiting.is_empty();
        for span in spans.drain(..) {
            if let Some(cause) = self.refusal(&span) {
                // That it hangs or ended is known better than each span lost to it can say.
                let known = if cause == Cause::QueueFull { None } else { self.failing.take() };
                self.lose(cause, 1, known.as_deref().unwrap_or(cause.problem()));
                continue;
            }
            self.entered += 1;
            self.bytes += span.bytes;
            self.waiting.push_back(span);
        }
        self.is_batch() || was_idle && !self.waiting.is_empty()
    }

    /// Asks for everything to leave that was put in before; with `last`, to shut down then.
    pub(super) fn ask(&mut self, deadline: Instant, last: bool) {
        if !self.closed {
            let last = last || self.asked.is_some_and(|asked| asked.last);
            self.asked = Some(Asked { upto: self.entered, deadline, last });
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
        if self.is_flushing() {
            let queued = self.queued();
            problems.push(format!("not done at the deadline, {queued} spans are not exported yet"));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// How it stands; the caller adds what only the sink knows.
    pub(super) fn status(&self) -> SinkStatus {
        SinkStatus {
            queued: self.queued(),
            exported: self.exported,
            failed: self.failed.total(),
            failed_by: self.failed.by_cause().map(|(cause, count)| (cause.name(), count)).collect(),
            failing: self.failing.clone(),
            panics: self.panics,
            ..SinkStatus::default()
        }
    }

    /// What is due now, or how long until something is; forever, if that depends on others.
    pub(super) fn next(&mut self, now: Instant) -> Result<Task, Option<Duration>> {
        if self.closed {
            return Err(None);
        }
        if let Some(asked) = self.asked {
            let left = self.entered - self.queued();
            if left < asked.upto || asked.last && !self.waiting.is_empty() {
                return Ok(self.export(now));
            }
            self.asked = None;
            let name = if asked.last { "shutdown" } else { "force_flush" };
            self.call = Some(Call { name, since: now, spans: 0, answers: true });
            return Ok(if asked.last { Task::Close(asked.deadline) } else { Task::Flush });
        }
        let Some(oldest) = self.waiting.front() else { return Err(None) };
        let left = self.batching.schedule_delay.saturating_sub(now.duration_since(oldest.since));
        if self.is_batch() || left.is_zero() { Ok(self.export(now)) } else { Err(Some(left)) }
    }

    /// Says what became of the task.
    pub(super) fn done(&mut self, result: Result<(), Failure>) {
        let Some(call) = self.call.take() else { return };
        let was_given_up = mem::take(&mut self.hangs);
        match result {
            Ok(()) if was_given_up => {}
            Ok(()) => {
                self.exported += call.spans;
                if call.spans > 0 {
                    self.failing = None;
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
        let left = in_call + self.forget_waiting();
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
        if self.hangs || now.duration_since(call.since) <= allowed + GRACE {
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

    fn refusal(&self, span: &Waiting) -> Option<Cause> {
        let most = self.batching.max_queue_size.unwrap_or(usize::MAX);
        match self {
            State { closed: true, .. } => Some(Cause::Closed),
            State { hangs: true, .. } => Some(Cause::Hanging),
            _ if self.waiting.len() >= most => Some(Cause::QueueFull),
            _ if self.bytes + span.bytes > QUEUE_BYTES => Some(Cause::QueueFull),
            _ => None,
        }
    }

    fn is_batch(&self) -> bool {
        self.waiting.len() >= self.batching.max_export_batch_size || self.bytes >= BATCH_BYTES
    }

    /// Takes a batch out, one span at least.
    fn export(&mut self, now: Instant) -> Task {
        let mut batch =
            Vec::with_capacity(self.waiting.len().min(self.batching.max_export_batch_size));
        let mut bytes = 0;
        while let Some(span) = self.waiting.front()
            && batch.len() < self.batching.max_export_batch_size
            && (batch.is_empty() || bytes + span.bytes <= BATCH_BYTES)
        {
            bytes += span.bytes;
            batch.extend(self.waiting.pop_front().map(|waiting| waiting.span));
        }
        self.bytes -= bytes;
        let spans = batch.len() as u64;
        self.call = Some(Call { name: "export", since: now, spans, answers: false });
        Task::Export(batch)
    }

    /// Throws away what waits; gives how many spans that were.
    fn forget_waiting(&mut self) -> u64 {
        self.bytes = 0;
        mem::take(&mut self.waiting).len() as u64
    }

    /// Counts spans as lost, none perhaps.
    fn lose(&mut self, cause: Cause, spans: u64, problem: &str) {
        self.failed.add(cause, spans);
        self.trouble.lost.add(cause, spans);
        self.trouble.first.get_or_insert_with(|| problem.to_owned());
        if self.failing.as_deref() != Some(problem) {
            self.failing = Some(problem.to_owned());
        }
        if !mem::replace(&mut self.said[cause as usize], true) {
            self.complaints.push((cause.name(), problem.to_owned()));
        }
    }

    fn queued(&self) -> u64 {
        self.waiting.len() as u64 + self.call.as_ref().map_or(0, |call| call.spans)
    }
}

impl Waiting {
    /// A span that waits from now on.
    pub(super) fn new(span: SpanData) -> Waiting {
        let bytes = weight(&span);
        Waiting { span, bytes, since: Instant::now() }
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
