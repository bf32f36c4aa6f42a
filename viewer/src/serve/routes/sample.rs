//! `/api/sample?trace=&sample=&known=`: a trace as it is drawn, and one of its samples.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use stagetrace_wire::id::TraceId;

use crate::query::{TimelineAnswer, TimelineOptions};
use crate::serve::answer::{Refusal, answer_of_trace};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    trace: String,
    sample: Option<String>,
    known: Option<String>,
}

pub(super) async fn sample(
    State(live): State<Arc<Live>>,
    Query(Asked { trace, sample, known }): Query<Asked>,
) -> Response {
    let id = match trace_id(&trace) {
        Ok(id) => id,
        Err(refusal) => return refusal.into_response(),
    };
    answer_of_trace(live, id, move |question, trace| {
        let options = TimelineOptions {
            sample: sample.as_deref().filter(|sample| !sample.is_empty()),
            known: known.as_deref(),
            now: question.now,
            stuck: question.stuck,
        };
        TimelineAnswer::new(&question.data.store, &question.data.samples, trace, &options)
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}

/// The id of a trace as it stands in an address.
pub(super) fn trace_id(text: &str) -> Result<TraceId, Refusal> {
    text.to_ascii_lowercase().parse().map_err(|_| {
        let shown: String = text.chars().take(64).collect();
        Refusal::Invalid(format!("{shown:?} is no trace id: 32 hexadecimal digits, not all 0"))
    })
}
