//! The fast way reads what the tolerant reader reads, or nothing.

use std::sync::Arc;

use stagetrace_wire::otlp::json::{read_lines, write_lines};
use stagetrace_wire::span::{Event, Link, Resource, Scope, Span, Status, Value, flags};

use super::*;
use crate::store::{Caches, Store};

/// A span with all that one may have in the usual form.
fn full() -> Span {
    let mut span = Span::new(TraceId::from_u128(7).unwrap(), SpanId::from_u64(8).unwrap());
    let attributes = vec![
        ("text".to_owned(), Value::Str("a \"quoted\" line\n – 世界 \u{1}".to_owned())),
        ("int".to_owned(), Value::I64(i64::MIN)),
        ("double".to_owned(), Value::F64(0.1)),
        ("whole".to_owned(), Value::F64(-3.0)),
        ("bool".to_owned(), Value::Bool(true)),
        ("list".to_owned(), Value::Array(vec![1.into(), "two".into(), true.into()])),
    ];
    span.parent_span_id = SpanId::from_u64(9);
    span.trace_state = "a=b".to_owned();
    span.flags = flags::HAS_IS_REMOTE | flags::IS_REMOTE | 1;
    span.name = "näme".to_owned();
    span.kind = SpanKind::Producer;
    (span.start_unix_nano, span.end_unix_nano) = (1_784_000_000_123_456_789, u64::MAX);
    span.attributes = attributes.clone();
    (span.dropped_attributes, span.dropped_events, span.dropped_links) = (1, 2, 3);
    for at in 0..2 {
        span.events.push(Event {
            time_unix_nano: 5 + at,
            name: format!("event {at}"),
            attributes: attributes[..at as usize * 2].to_vec(),
            dropped_attributes: 4 + at as u32,
        });
        span.links.push(Link {
            trace_id: TraceId::from_u128(10 + u128::from(at)).unwrap(),
            span_id: SpanId::from_u64(11 + at).unwrap(),
            trace_state: "c=d".to_owned(),
            attributes: attributes[at as usize..].to_vec(),
            dropped_attributes: 6 + at as u32,
            flags: 0x103,
        });
    }
    span.status = Status { code: StatusCode::Error, message: "it \\ broke".to_owned() };
    span.resource = Arc::new(Resource {
        attributes: attributes[..2].to_vec(),
        dropped_attributes: 12,
        schema_url: "https://opentelemetry.io/schemas/1.44.0".to_owned(),
    });
    span.scope = Arc::new(Scope {
        name: "scope".to_owned(),
        version: "1".to_owned(),
        attributes: attributes[3..].to_vec(),
        dropped_attributes: 13,
        schema_url: "https://opentelemetry.io/schemas/1.43.0".to_owned(),
    });
    span
}

/// The spans of lines, each read in the fast way.
fn scanned(lines: &[u8]) -> Vec<Span> {
    let mut store = Store::default();
    let mut caches = Caches::default();
    let mut encoder = Encoder::new(store.shared_tables(), &mut caches);
    for line in str::from_utf8(lines).unwrap().lines() {
        let result = scan(line, &mut encoder, &mut Buffers::default());
        assert_eq!(result, Some(()), "is unusual: {line}");
    }
    let batch = encoder.take();
    store.take(batch);
    let traces = store.traces();
    traces.flat_map(|trace| store.spans_of(trace)).map(|span| store.span(span)).collect()
}

#[test]
fn all_that_a_span_may_have_is_read_in_the_fast_way_and_whole() {
    let mut bare = Span::new(TraceId::from_u128(1).unwrap(), SpanId::from_u64(2).unwrap());
    bare.end_unix_nano = 5;
    let spans = [full(), bare];
    assert_eq!(scanned(&write_lines(&spans)), spans);
}

#[test]
fn what_exporters_write_is_read_in_the_fast_way() {
    for run in ["agent", "live", "rotated", "traces_only"] {
        let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/xtuner");
        let lines = std::fs::read(format!("{cases}/{run}/traces.jsonl")).unwrap();
        let mut expected = read_lines(&lines, &ReadOptions::default()).spans;
        let mut found = scanned(&lines);
        for spans in [&mut expected, &mut found] {
            spans.sort_by_key(Span::identity);
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn a_full_line_that_is_changed_anywhere_is_read_as_the_contract_reads_it_or_not_at_all() {
    let line = write_lines(&[full()]);
    let (mut state, mut fast) = (1_u64, 0);
    for round in 0..20_000 {
        let mut text = line.trim_ascii_end().to_vec();
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let (at, byte) = ((state >> 33) as usize % text.len(), (state >> 20) as u8 % 128);
        match round % 4 {
            0 => text[at] = byte,
            1 => text.insert(at, byte),
            2 => drop(text.remove(at)),
            // A piece of it twice, so that members repeat.
            _ => {
                let from = (state >> 40) as usize % text.len();
                let piece = text[from..text.len().min(from + byte as usize)].to_vec();
                text.splice(at..at, piece);
            }
        }
        let Ok(text) = String::from_utf8(text) else { continue };
        if text.contains('\n') {
            continue;
        }
        let mut store = Store::default();
        let mut caches = Caches::default();
        let mut encoder = Encoder::new(store.shared_tables(), &mut caches);
        if scan(&text, &mut encoder, &mut Buffers::default()).is_none() {
            assert!(encoder.take().spans.is_empty());
            continue;
        }
        fast += 1;
        let batch = encoder.take();
        store.take(batch);
        let traces = store.traces();
        let spans = traces.flat_map(|trace| store.spans_of(trace)).map(|span| store.span(span));
        let contents = read_lines(text.as_bytes(), &ReadOptions::default());
        assert_eq!(contents.report.damaged_lines + contents.report.refused_spans, 0, "{text}");
        assert_eq!(spans.collect::<Vec<_>>(), contents.spans, "{text}");
    }
    assert!(fast > 2_000, "only {fast} were read in the fast way");
}
