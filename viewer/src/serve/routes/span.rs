//! `/api/span?trace=&span=&whole=`: one span with all it owns.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use stagetrace_wire::id::SpanId;

use super::sample::trace_id;
use crate::query::SpanDetails;
use crate::serve::answer::{Refusal, answer_of_trace};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    trace: String,
    #[serde(default)]
    span: String,
    #[serde(default)]
    whole: bool,
}

pub(super) async fn span(
    State(live): State<Arc<Live>>,
    Query(Asked { trace, span, whole }): Query<Asked>,
) -> Response {
    let ids = trace_id(&trace).and_then(|trace| Ok((trace, span_id(&span)?)));
    let (trace, span) = match ids {
        Ok(ids) => ids,
        Err(refusal) => return refusal.into_response(),
    };
    answer_of_trace(live, trace, move |question, number| {
        let store = &question.data.store;
        SpanDetails::new(store, &question.data.samples, number, span, whole).ok_or_else(|| {
            Refusal::NotFound(format!("trace {trace} has no span {span}, as far as it was read"))
        })
    })
    .await
}

fn span_id(text: &str) -> Result<SpanId, Refusal> {
    text.to_ascii_lowercase().parse().map_err(|_| {
        let shown: String = text.chars().take(64).collect();
        Refusal::Invalid(format!("{shown:?} is no span id: 16 hexadecimal digits, not all 0"))
    })
}
