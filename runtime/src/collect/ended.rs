//! What the collector hands on: one span, or many plain ones.

use super::run::Run;
use super::view::SpanView;

/// What is ready to be exported.
pub(crate) enum Ended<'a> {
    One(&'a SpanView<'a>),
    Plain(Run<'a>),
}

impl Ended<'_> {
    /// How many spans that are.
    pub(super) fn spans(&self) -> u64 {
        match self {
            Ended::One(_) => 1,
            Ended::Plain(run) => run.spans() as u64,
        }
    }

    /// Whether their traces are sampled. If not, they were recorded to be measured, and are not exported.
    pub(crate) fn is_sampled(&self) -> bool {
        match self {
            Ended::One(span) => span.record.is_sampled(),
            Ended::Plain(run) => run.is_sampled(),
        }
    }

    /// Hands over each span.
    pub(crate) fn each(&self, mut with: impl FnMut(&SpanView<'_>)) {
        match self {
            Ended::One(span) => with(span),
            Ended::Plain(run) => run.views().for_each(|span| with(&span)),
        }
    }
}
