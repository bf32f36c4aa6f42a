//! What the exporter keeps on disk until it can be sent: counted as neither queued nor gone.

use super::State;
use crate::export::supervised::Batch;
#[cfg(feature = "_network")]
use {
    super::Failure,
    std::mem,
    std::task::Waker,
    std::time::{Duration, Instant},
};

/// Spans on disk, and those on their way there.
#[derive(Debug, Default)]
pub(super) struct Stored {
    spans: u64,
    /// Spans that were lost from there.
    lost: u64,
    moving: Option<Moving>,
    /// Whom to wake when there is news.
    #[cfg(feature = "_network")]
    waker: Option<Waker>,
}

/// A batch that was given out beside the task at hand, to be kept.
#[derive(Clone, Copy, Debug)]
struct Moving {
    spans: u64,
    /// Spans that came before these.
    first: u64,
}

/// What an exporter that is busy wants to hear of.
#[cfg(feature = "_network")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super::super) struct Listen {
    /// Every batch that is due, and not only those that there is soon no room for.
    pub(in super::super::super) every_batch: bool,
    /// Which flushes.
    pub(in super::super::super) asked: Asked,
}

/// Which flushes one listens for.
#[cfg(feature = "_network")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super::super) enum Asked {
    None,
    Any,
    Last,
}

/// What it then hears.
#[cfg(feature = "_network")]
#[derive(Debug, PartialEq)]
pub(in super::super::super) enum News<B> {
    /// A batch, to be kept on disk: [`State::stored`] or [`State::not_stored`] comes next.
    Batch(B),
    /// A flush is asked for, by then if possible.
    Flush(Instant),
}

impl Stored {
    /// Spans on disk.
    pub(super) fn spans(&self) -> u64 {
        self.spans
    }

    /// Spans that were lost from there.
    pub(super) fn lost_later(&self) -> u64 {
        self.lost
    }

    pub(super) fn moving_spans(&self) -> u64 {
        self.moving.map_or(0, |moving| moving.spans)
    }

    pub(super) fn moving_first(&self) -> Option<u64> {
        self.moving.map(|moving| moving.first)
    }

    /// Gives how many spans were on their way.
    pub(super) fn forget_moving(&mut self) -> u64 {
        self.moving.take().map_or(0, |moving| moving.spans)
    }
}

impl<B: Batch> State<B> {
    /// That spans wait there, in words.
    pub(super) fn waits_in_outbox(&self) -> Option<String> {
        let why = self.failing.as_deref().unwrap_or("not sent yet");
        let spans = self.stored.spans;
        (spans > 0).then(|| format!("{spans} spans wait in the outbox: {why}"))
    }
}

#[cfg(feature = "_network")]
impl<B: Batch> State<B> {
    /// What an exporter that is busy is to hear now, or how long until there may be something; `waker` is woken if there is
    /// before that.
    pub(in super::super) fn news(
        &mut self,
        now: Instant,
        listen: Listen,
        waker: &Waker,
    ) -> Result<News<B>, Option<Duration>> {
        let hears = |last| listen.asked == Asked::Any || last && listen.asked == Asked::Last;
        if let Some(asked) = self.asked.filter(|asked| hears(asked.last)) {
            return Ok(News::Flush(asked.deadline));
        }
        let pause = match self.due(now, listen) {
            Ok(()) => match self.waiting.pop_front() {
                Some(oldest) => {
                    let spans = oldest.batch.spans() as u64;
                    self.spans -= oldest.batch.spans();
                    self.bytes -= oldest.batch.bytes();
                    self.stored.moving = Some(Moving { spans, first: oldest.first });
                    return Ok(News::Batch(oldest.batch));
                }
                // What is being filled comes back at once.
                None => None,
            },
            Err(pause) => pause,
        };
        self.stored.waker = Some(waker.clone());
        Err(pause)
    }

    /// Whether the oldest batch is to be given out, or how long until it is.
    fn due(&self, now: Instant, listen: Listen) -> Result<(), Option<Duration>> {
        if !listen.every_batch {
            return if self.is_crowded() { Ok(()) } else { Err(None) };
        }
        let since = self.waiting.front().map(|oldest| oldest.since).or(self.out).ok_or(None)?;
        let left = self.batching.schedule_delay.saturating_sub(now.duration_since(since));
        if self.is_batch() || left.is_zero() { Ok(()) } else { Err(Some(left)) }
    }

    /// So many spans, of the batch that was given out last or of the task at hand, are on disk. Gives how many count there:
    /// those of a call that was given up are lost already.
    pub(in super::super) fn stored(&mut self, spans: u64) -> u64 {
        let counted = match (self.stored.moving.take(), &mut self.call) {
            (Some(moving), _) => moving.spans,
            (None, Some(call)) => {
                let counted = spans.min(call.spans);
                call.spans -= counted;
                counted
            }
            (None, None) => 0,
        };
        self.stored.spans += counted;
        counted
    }

    /// The batch that was given out last is lost instead.
    pub(in super::super) fn not_stored(&mut self, Failure { cause, problem }: &Failure) {
        let spans = self.stored.forget_moving();
        self.lose(*cause, spans, problem);
    }

    /// So many of the spans on disk are there no more: they are out, but for the losses. A flush that gets on does not hang.
    pub(in super::super) fn settled(
        &mut self,
        spans: u64,
        losses: &[(u64, Failure)],
        now: Instant,
    ) {
        if let Some(call) = self.call.as_mut().filter(|call| call.answers) {
            call.since = now;
        }
        let mut left = spans.min(self.stored.spans);
        self.stored.spans -= left;
        for (spans, Failure { cause, problem }) in losses {
            let lost = (*spans).min(left);
            if lost > 0 {
                left -= lost;
                self.stored.lost += lost;
                self.lose(*cause, lost, problem);
            }
        }
        self.exported += left;
        if losses.is_empty() && self.stored.spans == 0 {
            (self.failing, self.failing_since) = (None, None);
        }
    }

    /// Nothing is lost, but nothing leaves either.
    pub(in super::super) fn troubled(&mut self, problem: &str) {
        self.fails(problem);
    }

    pub(in super::super) fn take_waker(&mut self) -> Option<Waker> {
        mem::take(&mut self.stored.waker)
    }
}
