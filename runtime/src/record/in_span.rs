//! Futures that run inside a span, or at a position.

use super::local;
use super::polling::Polling;
use super::{Context, Position};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

/// A future during which a span or a position is current. Made by [`InSpan`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Inside<F, S> {
    future: F,
    inside: Context,
    /// What lives as long as the future runs.
    kept: Option<S>,
}

/// Runs futures inside a span, or at a position.
pub trait InSpan: Future + Sized {
    /// Makes the span current at every poll, and ends it when the future is done or dropped.
    fn in_span(self, span: super::Span) -> Inside<Self, super::Span> {
        Inside { future: self, inside: span.inside(), kept: Some(span) }
    }

    /// Makes the position current at every poll.
    fn at_position(self, position: Position) -> Inside<Self, ()> {
        Inside { future: self, inside: Context::at(position), kept: None }
    }

    /// Keeps what is current now current at every poll; for `spawn`.
    fn in_current_span(self) -> Inside<Self, ()> {
        self.at_position(super::current())
    }
}

impl<F: Future> InSpan for F {}

impl<F: Future, S> Future for Inside<F, S> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<F::Output> {
        // SAFETY: only the future is pinned structurally.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the future is never moved out of the pinned `this`.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if !this.inside.state.is_active() {
            return future.poll(task);
        }
        let polling = Polling::context(local::here(), &this.inside);
        let polled = future.poll(task);
        drop(polling);
        if polled.is_ready() {
            this.kept = None;
        }
        polled
    }
}
