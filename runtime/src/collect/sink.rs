//! What takes spans from the collector.

use super::run::Run;
use super::view::SpanView;
use crate::config::Batching;
use crate::error::SinkError;
use crate::stats::SinkStatus;
use stagetrace_wire::span::{Resource, Scope};
use std::path::Path;
use std::time::Instant;

/// Makes a sink, once it is known whose spans it will take.
pub(crate) type OpenSink = Box<dyn FnOnce(&Opening<'_>) -> Box<dyn Sink> + Send>;

/// Whose spans a sink will take, and what it needs for that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'o> {
    pub(crate) resource: &'o Resource,
    pub(crate) scope: &'o Scope,
    pub(crate) batching: &'o Batching,
    /// The run's directory, and the beginning of this process's file names.
    #[cfg_attr(
        not(feature = "_network"),
        expect(dead_code, reason = "only batches to send wait there")
    )]
    pub(crate) dir: Option<&'o Path>,
    #[cfg_attr(
        not(feature = "_network"),
        expect(dead_code, reason = "only batches to send wait there")
    )]
    pub(crate) stem: &'o str,
}

/// How far a sink has got with what it was handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Spans that came to it.
    pub(crate) taken: u64,
    /// So many of them, from the first on, have left it: they are out, or lost.
    pub(crate) gone: u64,
    /// Spans that it lost.
    pub(crate) lost: u64,
}

/// A way out for spans. Called by the collector's thread only; what is slow or may hang has a thread of its own behind.
pub(crate) trait Sink: Send {
    /// Takes a span into the batch at hand. Whether that is large enough now to be let go.
    fn add(&mut self, span: &SpanView<'_>) -> bool;

    /// Takes plain spans, likewise.
    fn add_run(&mut self, run: &Run<'_>) -> bool;

    /// Whether it gets every span at once, also those that tail sampling may leave out.
    fn is_before_sampling(&self) -> bool {
        false
    }

    /// Whether it gets spans of traces that are not sampled, which are recorded only if there is such a sink. It has done
    /// with them when it has been handed them: their memory is used anew.
    fn takes_unsampled(&self) -> bool {
        false
    }

    /// Lets the batch go. An error says that it is still at hand and will be tried again.
    fn commit(&mut self) -> Result<(), SinkError>;

    /// Gives up the batch at hand, which could not be let go for too long; its spans count as failed.
    fn abandon(&mut self);

    /// A flush begins: what failed is tried again at once.
    fn hurry(&mut self) {}

    /// Bytes that wait in it for being let go.
    fn backlog(&self) -> usize {
        0
    }

    /// Asks it to get all out of the process that was let go before; with `last`, to close then. Does not wait.
    fn begin_flush(&mut self, _deadline: Instant, _last: bool) {}

    /// Whether what [`Sink::begin_flush`] asked for goes on and may still succeed.
    fn is_flushing(&self) -> bool {
        false
    }

    /// Says what did not get out, when it is done or the deadline has passed. Does not wait.
    fn flush(&mut self, deadline: Instant) -> Result<(), SinkError>;

    /// How far it has got, as of the last batch that was let go. None of the three ever falls.
    fn standing(&self) -> Standing;

    /// How it stands.
    fn status(&self) -> SinkStatus;

    /// Whether its spans are safe on disk as soon as they are let go. The recording marks them then.
    fn is_durable(&self) -> bool {
        false
    }

    /// What is on disk: rotation number and length of the file.
    fn acknowledged(&self) -> (u16, u64) {
        (0, 0)
    }
}
