//! `/api/stages?step=` and `/api/stage?stage=&step=`: all stages, and one of them.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::query::{Catalogue, OneStage, StepChoice};
use crate::serve::answer::{Refusal, answer};
use crate::serve::live::Live;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    step: Option<String>,
    stage: Option<String>,
}

impl Asked {
    fn step(&self) -> StepChoice {
        self.step.as_deref().map_or(StepChoice::All, StepChoice::parse)
    }
}

pub(super) async fn stages(State(live): State<Arc<Live>>, Query(asked): Query<Asked>) -> Response {
    answer(live, move |question| {
        let data = question.data;
        Catalogue::new(&data.store, &data.samples, &data.report, &asked.step())
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}

pub(super) async fn stage(State(live): State<Arc<Live>>, Query(asked): Query<Asked>) -> Response {
    answer(live, move |question| {
        let data = question.data;
        let Some(stage) = &asked.stage else {
            return Err(Refusal::Invalid("a stage is needed: ?stage=NAME".to_owned()));
        };
        OneStage::new(&data.store, &data.samples, &data.report, stage, &asked.step(), question.now)
            .map_err(|unknown| Refusal::NotFound(unknown.to_string()))
    })
    .await
}
