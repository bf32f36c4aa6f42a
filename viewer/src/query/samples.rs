//! Samples as rows of a table.

use serde::Serialize;
use serde_json::Value as Json;

use super::json::{ident, number};
use crate::rules::{Sample, Samples};
use crate::store::{Ident, Store};

/// A sample as a row of a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    trace_id: String,
    /// Which of the samples of its trace it is.
    sample: usize,
    /// The rollout, or what the request calls itself.
    id: Json,
    group_id: Json,
    step: Json,
    attempt: Json,
    session: Json,
    task: Option<String>,
    status: String,
    is_open: bool,
    start_unix_nano: Option<String>,
    /// From begin to end, or to now while it is open.
    duration_ns: Option<String>,
    /// What it is in, and since when; of a lost one what it was in.
    stage: Option<String>,
    stage_age_ns: Option<String>,
    spans: u32,
    reward: Option<f64>,
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
    finish_reason: Option<String>,
    error_stage: Option<String>,
    error: Option<String>,
    /// The name of the root.
    name: Option<String>,
}

impl Row {
    pub(crate) fn new(store: &Store, samples: &Samples, sample: &Sample, now: u64) -> Self {
        let place =
            samples.rows_of(sample.trace).position(|other| other.rollout(store) == sample.rollout);
        let text = |name| store.text(name);
        let error = sample.error.and_then(|error| store.failure(error));
        let error = error.map(|failure| {
            let parts = [failure.kind, failure.message].into_iter().flatten();
            parts.map(text).collect::<Vec<_>>().join(": ")
        });
        let age = |since: u64| number(now.saturating_sub(since));
        let open_age = || sample.start.filter(|_| sample.is_open).map(age);
        Self {
            trace_id: store.trace_id(sample.trace).to_string(),
            sample: place.unwrap_or(0),
            id: ident(store, sample.rollout.or(sample.request.map(Ident::Text))),
            group_id: ident(store, sample.group),
            step: ident(store, sample.step),
            attempt: ident(store, sample.attempt),
            session: ident(store, sample.session),
            task: sample.task.map(text),
            status: sample.status.text(store),
            is_open: sample.is_open,
            start_unix_nano: sample.start.map(number),
            duration_ns: sample.duration.map(number).or_else(open_age),
            stage: sample.current.map(|current| text(current.stage)),
            stage_age_ns: sample.current.map(|current| age(current.since)),
            spans: sample.finished_spans,
            reward: sample.reward(),
            prompt_tokens: sample.prompt_tokens(),
            completion_tokens: sample.completion_tokens(),
            finish_reason: sample.finish_reason().map(text),
            error_stage: sample.error.map(|error| text(store.stage(error))),
            error,
            name: sample.root.map(|root| text(store.record(root).name)),
        }
    }
}
