//! `/api/processes?from=&until=&process=` and `/api/lanes?from=&until=&width=&by=&process=`: who recorded, and what ran
//! where.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::{LaneOf, Lanes, LanesOptions, Processes, ProcessesOptions};
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    from: Option<u64>,
    until: Option<u64>,
    process: Option<String>,
    width: Option<usize>,
    by: Option<LaneOf>,
}

/// Dots in which lanes are drawn, at most: screens are not wider.
const WIDEST: usize = 4096;

pub(super) async fn processes(
    State(live): State<Arc<Live>>,
    Query(Asked { from, until, process, .. }): Query<Asked>,
) -> Response {
    answer(live, move |question| {
        check(from, until)?;
        let options = ProcessesOptions { from, until, process, now: question.now };
        let data = question.data;
        Ok(Processes::new(&data.store, &data.samples, &data.report, &options))
    })
    .await
}

pub(super) async fn lanes(
    State(live): State<Arc<Live>>,
    Query(Asked { from, until, process, width, by }): Query<Asked>,
) -> Response {
    answer(live, move |question| {
        check(from, until)?;
        let width = width.unwrap_or(1000).clamp(100, WIDEST);
        let by = by.unwrap_or_default();
        let options = LanesOptions { from, until, width, by, process, now: question.now };
        let lanes = Lanes::new(&question.data.store, &question.data.samples, &options);
        lanes.ok_or_else(|| Refusal::NotFound("there are no spans of that".to_owned()))
    })
    .await
}

fn check(from: Option<u64>, until: Option<u64>) -> Result<(), Refusal> {
    match from.zip(until) {
        Some((from, until)) if from >= until => {
            Err(Refusal::Invalid(format!("a window from {from} until {until} is empty")))
        }
        _ => Ok(()),
    }
}
