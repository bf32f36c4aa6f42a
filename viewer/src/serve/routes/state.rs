//! `/api/state`: what was read, and how far.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::query::State as Answer;
use crate::serve::answer::answer;
use crate::serve::live::Live;

pub(super) async fn state(State(live): State<Arc<Live>>) -> Response {
    if !live.is_loaded() {
        let (read, total) = (live.progress.bytes(), live.progress.total());
        let loading = serde_json::json!({ "version": 0, "read_bytes": read, "total_bytes": total });
        return ([(header::CACHE_CONTROL, "no-store")], Json(loading)).into_response();
    }
    answer(live, |question| {
        let data = question.data;
        let (version, now) = (data.version, question.now);
        Ok(Answer::new(&data.store, &data.samples, &data.report, version, now, question.stuck))
    })
    .await
}
