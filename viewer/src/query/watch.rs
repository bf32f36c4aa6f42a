//! What happens to samples while one looks.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde_json::Value as Json;

use super::json::recorded;
use super::rows::{StuckSpan, Summary};
use crate::rules::{Sample, Samples, Status};
use crate::store::{Ident, Store, TraceNumber};

/// Knows how samples stood, and tells what has changed.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    known: HashMap<(TraceNumber, Option<Ident>), Status>,
    /// Trace and span of what is stuck.
    stuck: HashSet<(String, String)>,
    /// When how many samples ended, and spans, the oldest first.
    ended: VecDeque<(u64, usize, u64)>,
    finished_spans: u64,
    has_looked: bool,
}

/// What happened since the last look.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) happenings: Vec<Happening>,
    /// Samples that ended within [`Watch::WINDOW_NS`], and spans.
    pub(crate) recently_ended: usize,
    pub(crate) recent_spans: u64,
}

/// What happened to a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Happening {
    /// `stuck`, or the status that it has now.
    pub(crate) what: String,
    pub(crate) rollout_id: Json,
    pub(crate) group_id: Json,
    pub(crate) step: Json,
    pub(crate) trace_id: String,
    /// Nanoseconds of the sample, or since when it is stuck.
    pub(crate) lasted_ns: Option<u64>,
    /// The stage in which it is stuck, was lost, or failed.
    pub(crate) stage: Option<String>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

impl Watch {
    /// Nanoseconds over which is counted what happened recently: a minute.
    pub(crate) const WINDOW_NS: u64 = 60_000_000_000;

    /// Looks at all samples. How they stand at the first look is no news, but for those that are stuck.
    pub(crate) fn look(
        &mut self,
        store: &Store,
        samples: &Samples,
        summary: &Summary,
        now: u64,
    ) -> News {
        let mut happenings = Vec::new();
        for sample in samples.iter(store) {
            let id = sample.rollout.or(sample.request.map(Ident::Text));
            let before = self.known.insert((sample.trace, id), sample.status);
            if !sample.is_open && self.has_looked && before != Some(sample.status) {
                happenings.push(ended(store, &sample));
            }
        }
        let count = happenings.len();
        self.tell_stuck(&summary.stuck, &mut happenings);
        let spans = summary.finished_spans.saturating_sub(self.finished_spans);
        if self.has_looked && (count > 0 || spans > 0) {
            self.ended.push_back((now, count, spans));
        }
        self.finished_spans = summary.finished_spans;
        self.has_looked = true;
        let is_recent = |at: u64| now.saturating_sub(at) <= Self::WINDOW_NS;
        while self.ended.front().is_some_and(|(at, ..)| !is_recent(*at)) {
            self.ended.pop_front();
        }
        News {
            happenings,
            recently_ended: self.ended.iter().map(|(_, samples, _)| samples).sum(),
            recent_spans: self.ended.iter().map(|(.., spans)| spans).sum(),
        }
    }

    fn tell_stuck(&mut self, stuck: &[StuckSpan], happenings: &mut Vec<Happening>) {
        let key = |span: &StuckSpan| (span.trace_id.clone(), span.span_id.clone());
        for span in stuck.iter().filter(|span| !self.stuck.contains(&key(span))) {
            happenings.push(Happening {
                what: "stuck".to_owned(),
                rollout_id: span.rollout_id.clone(),
                group_id: span.group_id.clone(),
                step: span.step.clone(),
                trace_id: span.trace_id.clone(),
                lasted_ns: span.age_ns.parse().ok(),
                stage: Some(span.stage.clone()),
                error: None,
            });
        }
        self.stuck = stuck.iter().map(key).collect();
    }
}

fn ended(store: &Store, sample: &Sample) -> Happening {
    let failure = sample.error.and_then(|error| store.failure(error));
    let parts = failure.map(|failure| [failure.kind, failure.message]).into_iter().flatten();
    let error: Vec<String> = parts.flatten().map(|name| store.text(name)).collect();
    let failed_in = sample.error.map(|error| store.stage(error));
    let lost_in = sample.current.map(|current| current.stage);
    Happening {
        what: sample.status.text(store),
        rollout_id: recorded(store, sample.rollout.or(sample.request.map(Ident::Text))),
        group_id: recorded(store, sample.group),
        step: recorded(store, sample.step),
        trace_id: store.trace_id(sample.trace).to_string(),
        lasted_ns: sample.duration,
        stage: failed_in.or(lost_in).map(|stage| store.text(stage)),
        error: (!error.is_empty()).then(|| error.join(": ")),
    }
}
