//! What waits for an exporter, between the collector's thread, which never waits, and the
//! exporter's own.

use super::Batch;
#[cfg(not(feature = "metrics"))]
use super::failure::Cause;
use super::failure::Failure;
use super::filling::Filling;
use super::state::{State, Task};
use crate::collect::Standing;
use crate::complain;
use crate::config::Batching;
use crate::stats::SinkStatus;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bounded queue, what became of its spans, and what is asked of the exporter.
#[derive(Debug)]
pub(in super::super) struct Queue<B> {
    name: &'static str,
    batching: Batching,
    state: Mutex<State<B>>,
    news: Condvar,
}

impl<B: Batch> Queue<B> {
    pub(in super::super) fn new(name: &'static str, batching: Batching) -> Queue<B> {
        let state = Mutex::new(State::new(batching));
        Queue { name, batching, state, news: Condvar::new() }
    }

    /// Gives a batch to fill: the last one, if there is room in it, else an empty one.
    pub(super) fn fill(&self) -> Filling<B> {
        self.with(|state| {
            let now = Instant::now();
            state.watch(now);
            state.fill(now)
        })
    }

    /// Takes a batch that was filled, and what could not enter it into account.
    pub(super) fn put(&self, filling: Filling<B>) {
        let is_news = self.with(|state| {
            let now = Instant::now();
            state.watch(now);
            state.put(filling, now)
        });
        if is_news {
            self.wake();
        }
    }

    /// Puts in a batch as it is.
    #[cfg(all(test, feature = "_network"))]
    pub(in super::super) fn put_batch(&self, batch: B) {
        let mut filling = self.fill();
        (filling.batch, filling.closed) = (batch, true);
        self.put(filling);
    }

    /// Asks for everything to leave that was put in before; with `last`, to shut down then.
    pub(super) fn flush(&self, deadline: Instant, last: bool) {
        self.with(|state| state.ask(deadline, last));
        self.wake();
    }

    /// Has the exporter's thread look, whether it waits for a task or does something meanwhile.
    fn wake(&self) {
        self.news.notify_one();
        #[cfg(feature = "_network")]
        if let Some(waker) = self.with(State::take_waker) {
            waker.wake();
        }
    }

    /// Whether what was asked for goes on and may still succeed.
    pub(super) fn is_flushing(&self) -> bool {
        self.with(|state| {
            state.watch(Instant::now());
            state.is_flushing()
        })
    }

    /// What went wrong since the last verdict, or goes wrong now.
    pub(super) fn verdict(&self) -> Result<(), String> {
        self.with(State::verdict)
    }

    /// How it stands, but for what was not put in yet.
    pub(in super::super) fn status(&self) -> SinkStatus {
        self.with(|state| {
            state.watch(Instant::now());
            state.status()
        })
    }

    /// How far it has got with what was put in.
    pub(super) fn standing(&self) -> Standing {
        self.with(|state| {
            state.watch(Instant::now());
            state.standing()
        })
    }

    /// Of which exporter it is.
    #[cfg(feature = "metrics")]
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// An export has come to an end, which nobody measures.
    #[cfg(not(feature = "metrics"))]
    pub(in super::super) fn operated(&self, _took: Duration, _error: Option<Cause>) {}

    /// How long one call into the exporter may take.
    pub(in super::super) fn export_timeout(&self) -> Duration {
        self.batching.export_timeout
    }

    /// What is to be done now, if anything is.
    pub(super) fn next_due(&self) -> Option<Task<B>> {
        self.with(|state| state.next(Instant::now()).ok())
    }

    /// Waits for something to do.
    pub(super) fn next(&self) -> Task<B> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let pause = match state.next(Instant::now()) {
                Ok(task) => return task,
                Err(pause) => pause,
            };
            state = match pause {
                None => self.news.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    let woken = self.news.wait_timeout(state, pause);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Says what became of the task, and what was lost though it succeeded; gives back its batch, empty.
    pub(super) fn done(&self, result: Result<Vec<(u64, Failure)>, Failure>, batch: Option<B>) {
        self.with(|state| state.done(result, batch));
    }

    /// Says what went wrong outside of a task.
    pub(super) fn report(&self, failure: &Failure) {
        self.with(|state| state.report(failure));
    }

    /// Nothing will be exported any more: what is left is lost, to `problem` if it came unasked.
    pub(in super::super) fn close(&self, problem: Option<&str>) {
        self.with(|state| state.close(problem));
    }

    /// Changes the state, and says afterwards, when nothing is held, what is new about it.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State<B>) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let complaints = state.take_complaints();
        drop(state);
        for (cause, problem) in complaints {
            let name = self.name;
            let subject = format!("{name} {cause}");
            complain::warn(&subject, format_args!("the exporter `{name}` loses spans: {problem}"));
        }
        result
    }
}
