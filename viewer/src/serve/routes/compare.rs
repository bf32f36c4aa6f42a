//! `/api/compare?a=&b=`: two runs, steps or services side by side.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::{Compared, SelectError, Selector};
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    a: Option<String>,
    b: Option<String>,
}

pub(super) async fn compare(
    State(live): State<Arc<Live>>,
    Query(Asked { a, b }): Query<Asked>,
) -> Response {
    answer(live, move |question| {
        let parse = |text: &String| Selector::parse(text);
        let sides = [
            a.as_ref().map(parse).transpose().map_err(refusal)?,
            b.as_ref().map(parse).transpose().map_err(refusal)?,
        ];
        Compared::new(&question.data.store, &question.data.samples, sides).map_err(refusal)
    })
    .await
}

fn refusal(error: SelectError) -> Refusal {
    match error {
        SelectError::Form(_) => Refusal::Invalid(error.to_string()),
        SelectError::Nothing(_) => Refusal::NotFound(error.to_string()),
    }
}
