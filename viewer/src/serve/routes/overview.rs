//! `/api/overview?step=`: the whole at a glance.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::{Overview, StepChoice, SummaryOptions};
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    step: Option<String>,
}

pub(super) async fn overview(
    State(live): State<Arc<Live>>,
    Query(Asked { step }): Query<Asked>,
) -> Response {
    answer(live, move |question| {
        let step = step.as_deref().map_or(StepChoice::All, StepChoice::parse);
        let options = SummaryOptions { step, now: question.now, stuck: question.stuck };
        let data = question.data;
        Overview::new(&data.store, &data.samples, &data.report, &options)
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}
