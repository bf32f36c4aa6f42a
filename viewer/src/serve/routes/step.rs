//! `/api/step?step=&sort=`: one step.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::{GroupOrder, Step, StepChoice};
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// The latest, if it is not said.
    step: Option<String>,
    sort: Option<String>,
}

pub(super) async fn step(
    State(live): State<Arc<Live>>,
    Query(Asked { step, sort }): Query<Asked>,
) -> Response {
    answer(live, move |question| {
        let step = step.as_deref().map_or(StepChoice::Latest, StepChoice::parse);
        let order = sort.as_deref().map_or(Ok(GroupOrder::default()), GroupOrder::of);
        let order = order.map_err(|unknown| Refusal::Invalid(unknown.to_string()))?;
        let (store, samples) = (&question.data.store, &question.data.samples);
        Step::new(store, samples, &step, order, question.now, question.stuck)
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}
