//! What a route answers: JSON, or why not.

use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use stagetrace_wire::id::TraceId;
use tokio::task::JoinHandle;

use super::live::{Live, Question};
use crate::store::TraceNumber;

/// Why a question is not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// What was asked makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The sources are being read for the first time.
    #[error("the sources are still being read")]
    Loading,
    /// The query failed, which is a fault of ours.
    #[error("the question could not be answered")]
    Failed,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Loading => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = serde_json::json!({ "error": self.to_string() });
        (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
    }
}

/// Asks on a thread that may take its time.
pub(super) async fn answer<R: Serialize + Send + 'static>(
    live: Arc<Live>,
    query: impl FnOnce(&Question<'_>) -> Result<R, Refusal> + Send + 'static,
) -> Response {
    if !live.is_loaded() {
        return Refusal::Loading.into_response();
    }
    let asked = tokio::task::spawn_blocking(move || {
        let answer = live.ask(query)?;
        serde_json::to_vec(&answer).map_err(|_| Refusal::Failed)
    });
    respond(asked).await
}

/// The same about one trace, all details of which are read again first if they have made room.
pub(super) async fn answer_of_trace<R: Serialize + Send + 'static>(
    live: Arc<Live>,
    trace: TraceId,
    query: impl FnOnce(&Question<'_>, TraceNumber) -> Result<R, Refusal> + Send + 'static,
) -> Response {
    if !live.is_loaded() {
        return Refusal::Loading.into_response();
    }
    let asked = tokio::task::spawn_blocking(move || {
        let number = live.data().store.find_trace(trace).ok_or_else(|| {
            let why = "it may not have been written yet, or be in another run";
            Refusal::NotFound(format!("no span of trace {trace} was read; {why}"))
        })?;
        live.restore(number);
        let answer = live.ask(|question| query(question, number))?;
        serde_json::to_vec(&answer).map_err(|_| Refusal::Failed)
    });
    respond(asked).await
}

async fn respond(asked: JoinHandle<Result<Vec<u8>, Refusal>>) -> Response {
    match asked.await {
        Ok(Ok(json)) => {
            let headers =
                [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
            (headers, json).into_response()
        }
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => Refusal::Failed.into_response(),
    }
}
