//! A sample of a rollout, or a request: one root and what belongs to it.

use super::status::Status;
use crate::store::{Facts, Ident, Name, SpanNumber, TraceNumber};

/// A sample or request as it stands.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its trace.
    pub trace: TraceNumber,
    /// The id of the rollout; `None` for a request.
    pub rollout: Option<Ident>,
    /// The id of the request, if it has one.
    pub request: Option<Name>,
    /// The group: samples of one prompt.
    pub group: Option<Ident>,
    /// The step of training that it is for.
    pub step: Option<Ident>,
    /// Which attempt it is.
    pub attempt: Option<Ident>,
    /// Its session.
    pub session: Option<Ident>,
    /// Its task.
    pub task: Option<Name>,
    /// How it stands.
    pub status: Status,
    /// Whether its root has not ended, and its process is not known to have died.
    pub is_open: bool,
    /// The root, if it is known.
    pub root: Option<SpanNumber>,
    /// Spans that are there with their ends.
    pub finished_spans: u32,
    /// When the root began, in nanoseconds since 1970.
    pub start: Option<u64>,
    /// Nanoseconds from begin to end of the root, once it has ended.
    pub duration: Option<u64>,
    /// What it is in; `None` unless it is open, and an open span of it is known.
    pub current: Option<Current>,
    /// The span that ended last.
    pub last_finished: Option<SpanNumber>,
    /// Spans that are open though the root has ended.
    pub left_open: Vec<SpanNumber>,
    /// Spans that were open when their process died.
    pub lost_spans: u32,
    /// The span in which what went wrong arose.
    pub error: Option<SpanNumber>,
    /// The root is known to have ended, but never came.
    pub result_not_exported: bool,
    pub(crate) facts: Facts,
}

/// The deepest open span of an open sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The span.
    pub span: SpanNumber,
    /// Its stage.
    pub stage: Name,
    /// When it began, in nanoseconds since 1970.
    pub since: u64,
}

impl Sample {
    /// The reward, if it got one.
    pub fn reward(&self) -> Option<f64> {
        self.facts.reward()
    }

    /// Whether the reward counts as passed.
    pub fn passed(&self) -> Option<bool> {
        self.facts.pass()
    }

    /// Why the model stopped.
    pub fn finish_reason(&self) -> Option<Name> {
        self.facts.finish()
    }

    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> Option<i64> {
        self.facts.prompt_tokens()
    }

    /// Tokens that were generated.
    pub fn completion_tokens(&self) -> Option<i64> {
        self.facts.completion_tokens()
    }
}
