//! `/api/samples?q=&step=&sort=&desc=&offset=&limit=`: samples that a search finds.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::{Column, List, ListOptions, Search, StepChoice};
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

/// Most rows of an answer.
const MOST: usize = 500;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    q: String,
    step: Option<String>,
    sort: Option<String>,
    #[serde(default)]
    desc: bool,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

pub(super) async fn samples(State(live): State<Arc<Live>>, Query(asked): Query<Asked>) -> Response {
    answer(live, move |question| {
        let search =
            Search::parse(&asked.q).map_err(|error| Refusal::Invalid(error.to_string()))?;
        let sort = asked.sort.as_deref().unwrap_or("start");
        let sort = Column::of(sort).map_err(|error| Refusal::Invalid(error.to_string()))?;
        let limit = asked.limit.unwrap_or(100);
        if limit > MOST {
            return Err(Refusal::Invalid(format!("an answer has at most {MOST} rows")));
        }
        let options = ListOptions {
            search,
            step: asked.step.as_deref().map_or(StepChoice::All, StepChoice::parse),
            sort,
            is_descending: asked.desc,
            offset: asked.offset,
            limit,
            now: question.now,
            stuck: question.stuck,
        };
        List::new(&question.data.store, &question.data.samples, &options)
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}
