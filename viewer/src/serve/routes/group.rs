//! `/api/group?step=&group=`: the samples of a group.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::Group;
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    group: Option<String>,
    step: Option<String>,
}

pub(super) async fn group(
    State(live): State<Arc<Live>>,
    Query(Asked { group, step }): Query<Asked>,
) -> Response {
    answer(live, move |question| {
        let group =
            group.ok_or_else(|| Refusal::Invalid("say which group, by group=".to_owned()))?;
        let (store, samples) = (&question.data.store, &question.data.samples);
        Group::new(store, samples, &group, step.as_deref(), question.now, question.stuck)
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}
