//! `/api/steps`: all steps.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::query::Steps;
use crate::serve::answer::answer;
use crate::serve::live::Live;

pub(super) async fn steps(State(live): State<Arc<Live>>) -> Response {
    answer(live, |question| {
        let (store, samples) = (&question.data.store, &question.data.samples);
        Ok(Steps::new(store, samples, question.now, question.stuck))
    })
    .await
}
