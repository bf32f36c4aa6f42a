//! What an exporter that waits for something hears meanwhile.

use super::failure::Failure;
use super::state::State;
pub(in super::super) use super::state::{Asked, Listen, News};
use super::{Batch, Queue};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Listens at a queue while something else goes on.
pub(in super::super) struct Ear<'q, B> {
    queue: &'q Queue<B>,
    timer: Pin<Box<Sleep>>,
    pub(in super::super) listen: Listen,
}

impl<'q, B: Batch> Ear<'q, B> {
    pub(in super::super) fn new(queue: &'q Queue<B>, listen: Listen) -> Ear<'q, B> {
        Ear { queue, timer: Box::pin(sleep(Duration::ZERO)), listen }
    }

    /// The next news. A batch is to be kept, or given up, before the next call.
    pub(in super::super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<News<B>> {
        loop {
            let now = std::time::Instant::now();
            let news = self.queue.with(|state| state.news(now, self.listen, context.waker()));
            match news {
                Ok(news) => return Poll::Ready(news),
                Err(None) => return Poll::Pending,
                Err(Some(pause)) => self.timer.as_mut().reset(Instant::now() + pause),
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<B: Batch> Queue<B> {
    /// Spans of the batch that was given out last, or of the task at hand, are on disk. Gives how many count there.
    pub(in super::super) fn stored(&self, spans: u64) -> u64 {
        self.with(|state| state.stored(spans))
    }

    /// The batch that was given out last is lost instead.
    pub(in super::super) fn not_stored(&self, failure: &Failure) {
        self.with(|state| state.not_stored(failure));
    }

    /// So many of the spans on disk are there no more: they are out, but for the losses.
    pub(in super::super) fn settled(&self, spans: u64, losses: &[(u64, Failure)]) {
        self.with(|state| state.settled(spans, losses, std::time::Instant::now()));
    }

    /// Nothing is lost, but nothing leaves either.
    pub(in super::super) fn troubled(&self, problem: &str) {
        self.with(|state: &mut State<B>| state.troubled(problem));
    }
}
