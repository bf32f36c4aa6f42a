//! One span with all it owns.

use serde::Serialize;
use serde_json::value::RawValue;
use stagetrace_wire::id::SpanId;
use stagetrace_wire::otlp::json::write_lines;
use stagetrace_wire::span::{Attributes, Span, Value};

use super::json::number;
use crate::store::{Standing, Store, TraceNumber};

/// Longest text that is answered whole if it is not asked for: bytes.
const LONGEST: usize = 16 << 10;

/// A span with all it owns.
#[derive(Debug, Serialize)]
pub(crate) struct SpanDetails {
    trace_id: String,
    span_id: String,
    stage: String,
    /// What is known of it: `announced`, `recorded`, `written`, `over`, `recorded_end` or `written_end`.
    standing: &'static str,
    is_lost: bool,
    /// Texts that were cut, since they are longer than what is answered.
    cut: usize,
    /// For each of its links whether the other span is known.
    known_links: Vec<bool>,
    /// Nanoseconds in which none of its ended children ran; `null` while it is open.
    self_ns: Option<String>,
    /// OTLP/JSON, as a collector would write it.
    otlp: Box<RawValue>,
}

impl SpanDetails {
    /// The span; `None` if it is not there. Long texts are cut unless the `whole` is asked for.
    pub(crate) fn new(
        store: &Store,
        samples: &crate::rules::Samples,
        trace: TraceNumber,
        span: SpanId,
        whole: bool,
    ) -> Option<Self> {
        let id = store.trace_id(trace);
        let found = store.find_span(id, span)?;
        let record = store.record(found);
        let mut span = store.span(found);
        let cut = if whole { 0 } else { cut(&mut span) };
        let known = |link: &stagetrace_wire::span::Link| {
            store.find_span(link.trace_id, link.span_id).is_some()
        };
        let known_links = span.links.iter().map(known).collect();
        let mut line = write_lines(&[span]);
        line.truncate(line.trim_ascii_end().len());
        let otlp = String::from_utf8(line).ok().and_then(|line| RawValue::from_string(line).ok());
        Some(Self {
            trace_id: id.to_string(),
            span_id: record.id.to_string(),
            stage: store.text(record.stage),
            standing: standing(record.standing),
            is_lost: record.is_lost,
            cut,
            known_links,
            self_ns: record.is_finished().then(|| number(samples.self_ns(found))),
            otlp: otlp.unwrap_or_else(|| RawValue::NULL.to_owned()),
        })
    }
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Announced => "announced",
        Standing::Recorded => "recorded",
        Standing::Written => "written",
        Standing::Over => "over",
        Standing::RecordedEnd => "recorded_end",
        Standing::WrittenEnd => "written_end",
    }
}

/// Cuts long texts, and says how many there were.
fn cut(span: &mut Span) -> usize {
    let events = span.events.iter_mut().map(|event| &mut event.attributes);
    let links = span.links.iter_mut().map(|link| &mut link.attributes);
    let all = std::iter::once(&mut span.attributes).chain(events).chain(links);
    let cut_all = |attributes: &mut Attributes| -> usize {
        attributes.iter_mut().map(|(_, value)| cut_value(value)).sum()
    };
    all.map(cut_all).sum()
}

fn cut_value(value: &mut Value) -> usize {
    match value {
        Value::Str(text) if text.len() > LONGEST => {
            let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
            1
        }
        Value::Bytes(bytes) if bytes.len() > LONGEST => {
            bytes.truncate(LONGEST);
            1
        }
        Value::Array(values) => values.iter_mut().map(cut_value).sum(),
        Value::Map(members) => members.iter_mut().map(|(_, value)| cut_value(value)).sum(),
        _ => 0,
    }
}
