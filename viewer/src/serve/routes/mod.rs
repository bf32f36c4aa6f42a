//! Which address asks what.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::guard::{self, Access, Guard};
use super::live::Live;
use super::{assets, events};

mod compare;
mod group;
mod overview;
mod processes;
mod sample;
mod samples;
mod span;
mod stages;
mod state;
mod step;
mod steps;

/// Everything that the server answers.
pub(super) fn all(live: Arc<Live>, access: Access, address: SocketAddr) -> Router {
    let guard = Guard::new(access, address);
    let pages = Router::new()
        .route("/", get(assets::index))
        .route("/pages/{*name}", get(assets::asset))
        .route("/api/events", get(events::events))
        .with_state(Arc::clone(&live));
    pages
        .merge(questions(live))
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(guard, guard::check))
}

/// The questions that pages ask.
pub(super) fn questions(live: Arc<Live>) -> Router {
    Router::new()
        .route("/api/state", get(state::state))
        .route("/api/overview", get(overview::overview))
        .route("/api/samples", get(samples::samples))
        .route("/api/group", get(group::group))
        .route("/api/step", get(step::step))
        .route("/api/steps", get(steps::steps))
        .route("/api/processes", get(processes::processes))
        .route("/api/lanes", get(processes::lanes))
        .route("/api/compare", get(compare::compare))
        .route("/api/stages", get(stages::stages))
        .route("/api/stage", get(stages::stage))
        .route("/api/sample", get(sample::sample))
        .route("/api/span", get(span::span))
        .with_state(live)
}

async fn nothing() -> Response {
    (StatusCode::NOT_FOUND, "there is nothing here; the pages are at /\n").into_response()
}
