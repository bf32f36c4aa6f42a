//! Batches that served a trace: spans of other traces that link to it, and its share of each.

use serde::Serialize;
use stagetrace_wire::id::TraceId;
use stagetrace_wire::span::{Link, Value};

use crate::query::json::number;
use crate::store::{Store, TraceNumber};

/// Most batches that are told.
const MOST: usize = 1000;

/// A span of another trace that links to this one.
#[derive(Debug, Serialize)]
pub(super) struct Batch {
    trace_id: String,
    span_id: String,
    /// The spans of this trace that it links to.
    to: Vec<String>,
    name: String,
    stage: String,
    start_unix_nano: String,
    duration_ns: String,
    is_open: bool,
    /// Traces that it links to.
    members: usize,
    /// The part of it that is this trace's, from 0 to 1.
    share: f64,
    /// Nanoseconds that are this trace's.
    share_ns: String,
}

/// The batches in order of their begin.
pub(super) fn batches(store: &Store, trace: TraceNumber, now: u64) -> Vec<Batch> {
    let id = store.trace_id(trace);
    let mut spans = store.linked_to(id);
    spans.sort_by_key(|span| store.record(*span).start);
    let all = spans.into_iter().take(MOST).filter_map(|number_of_span| {
        let record = store.record(number_of_span);
        let links = store.glance(number_of_span, &[]).links;
        let share = share(&links, id)?;
        let end = if record.is_open() { now } else { record.end };
        let duration = end.saturating_sub(record.start);
        let here = links.iter().filter(|link| link.trace_id == id);
        Some(Batch {
            trace_id: store.trace_id(TraceNumber(record.trace)).to_string(),
            span_id: record.id.to_string(),
            to: here.map(|link| link.span_id.to_string()).collect(),
            name: store.text(record.name),
            stage: store.text(record.stage),
            start_unix_nano: number(record.start),
            duration_ns: number(duration),
            is_open: record.is_open(),
            members: members(&links).len(),
            share,
            share_ns: number((duration as f64 * share) as u64),
        })
    });
    all.collect()
}

/// The part of a batch that is one trace's: its weight (`stagetrace.batch.share` of its links, else 1) of those
/// of all. `None` if it does not link there.
fn share(links: &[Link], trace: TraceId) -> Option<f64> {
    let weight = |id: TraceId| {
        let of_trace = links.iter().filter(|link| link.trace_id == id);
        let told = of_trace.filter_map(|link| {
            match stagetrace_wire::span::find(&link.attributes, "stagetrace.batch.share")? {
                Value::F64(share) => Some(*share),
                Value::I64(share) => Some(*share as f64),
                _ => None,
            }
        });
        let told: Vec<f64> = told.filter(|share| share.is_finite() && *share >= 0.0).collect();
        if told.is_empty() { 1.0 } else { told.iter().sum() }
    };
    let members = members(links);
    members.contains(&trace).then(|| {
        let all: f64 = members.iter().map(|member| weight(*member)).sum();
        if all > 0.0 { weight(trace) / all } else { 0.0 }
    })
}

fn members(links: &[Link]) -> Vec<TraceId> {
    let mut members: Vec<TraceId> = links.iter().map(|link| link.trace_id).collect();
    members.sort_unstable();
    members.dedup();
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use stagetrace_wire::id::SpanId;

    fn link(trace: u128, share: Option<f64>) -> Link {
        let attributes =
            share.map(|share| ("stagetrace.batch.share".to_owned(), Value::F64(share)));
        Link {
            trace_id: TraceId::from_u128(trace).unwrap(),
            span_id: SpanId::from_u64(1).unwrap(),
            trace_state: String::new(),
            attributes: attributes.into_iter().collect(),
            dropped_attributes: 0,
            flags: 0,
        }
    }

    #[test]
    fn shares_of_a_batch_are_one_together() {
        let id = |trace| TraceId::from_u128(trace).unwrap();
        let plain = [link(1, None), link(2, None), link(2, None), link(3, None), link(4, None)];
        assert_eq!(share(&plain, id(2)), Some(0.25));
        assert_eq!(share(&plain, id(9)), None);
        let weighted = [link(1, Some(20.0)), link(2, Some(60.0)), link(3, Some(f64::NAN))];
        assert_eq!(share(&weighted, id(2)), Some(60.0 / 81.0));
        assert_eq!(share(&[link(1, Some(0.0))], id(1)), Some(0.0));
    }
}
