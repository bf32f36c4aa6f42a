//! What is constant of a stage's series.

use super::seconds;
use crate::collect::{ERROR_TYPE, OUTCOME, SpanView};
use crate::request::Outcome;
use crate::stage::Site;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Histogram;

/// The key under which a stage's name stands.
pub(super) const STAGE: &str = "stagetrace.stage";

/// Kinds of failures told apart per site; further ones are [`OTHER`]. A program has few, by type.
const KINDS: usize = 32;
const OTHER: &str = "_OTHER";

/// The attributes of one site's executions, by how they ended.
#[derive(Debug)]
pub(super) struct StageSeries {
    succeeded: [KeyValue; 1],
    /// Those that ended otherwise, as far as they were seen.
    others: Vec<Ending>,
}

/// A way for an execution to end, and its attributes.
#[derive(Debug)]
struct Ending {
    outcome: Outcome,
    error_type: Option<Box<str>>,
    attributes: Vec<KeyValue>,
}

impl StageSeries {
    pub(super) fn new(site: &Site) -> StageSeries {
        let succeeded = [KeyValue::new(STAGE, site.stage().name())];
        StageSeries { succeeded, others: Vec::new() }
    }

    /// The attributes of a plain success.
    #[inline]
    pub(super) fn succeeded(&self) -> &[KeyValue] {
        &self.succeeded
    }

    /// Records an execution, however it ended.
    pub(super) fn record(&mut self, duration: &Histogram<f64>, span: &SpanView<'_>) {
        let seconds = seconds(span.begin, span.end);
        let Some(outcome) = span.outcome() else {
            return duration.record(seconds, &self.succeeded);
        };
        let mut error_type = span.error_type();
        let mut at = self.find(outcome, error_type);
        if at.is_none() && self.others.len() >= KINDS {
            error_type = error_type.map(|_| OTHER);
            at = self.find(outcome, error_type);
        }
        let at = at.unwrap_or_else(|| self.add(outcome, error_type));
        duration.record(seconds, &self.others[at].attributes);
    }

    fn find(&self, outcome: Outcome, error_type: Option<&str>) -> Option<usize> {
        self.others.iter().position(|ending| {
            ending.outcome == outcome && ending.error_type.as_deref() == error_type
        })
    }

    #[cold]
    fn add(&mut self, outcome: Outcome, error_type: Option<&str>) -> usize {
        let mut attributes = self.succeeded.to_vec();
        attributes.extend(of_outcome(Some(outcome), error_type));
        self.others.push(Ending { outcome, error_type: error_type.map(Box::from), attributes });
        self.others.len() - 1
    }
}

/// What says how a span ended.
pub(super) fn of_outcome(
    outcome: Option<Outcome>,
    error_type: Option<&str>,
) -> impl Iterator<Item = KeyValue> {
    let outcome = outcome.map(|outcome| KeyValue::new(OUTCOME, outcome.as_str()));
    let error_type = error_type.map(|kind| KeyValue::new(ERROR_TYPE, kind.to_owned()));
    outcome.into_iter().chain(error_type)
}
