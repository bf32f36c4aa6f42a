//! What we write: the frozen form, and what readers make of it.

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::{
    LineWriter, MAX_VALUE_DEPTH, ReadOptions, ResourceHead, SpanHead, SpanStart, read_document,
    read_lines, write_lines, write_spans,
};
use stagetrace_wire::span::{
    Attributes, Event, Link, Resource, Scope, Span, SpanKind, Status, StatusCode, Value,
};

mod common;
#[path = "common/proto.rs"]
mod proto;

use proto::{of_proto, to_proto};

/// A change on purpose is written to the file with `STAGETRACE_OVERWRITE_GOLDEN=1`, and then read
/// in the diff.
#[test]
fn the_written_form_is_frozen() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/spans.jsonl");
    let written = String::from_utf8(write_lines(&golden_spans())).unwrap();
    if std::env::var_os("STAGETRACE_OVERWRITE_GOLDEN").is_some() {
        fs::write(path, &written).unwrap();
    }
    assert_eq!(written, fs::read_to_string(path).unwrap());
}

#[test]
fn the_golden_file_still_reads() {
    let golden = include_bytes!("golden/spans.jsonl");
    let contents = read_lines(golden, &ReadOptions::default());
    assert_eq!(contents.spans, golden_spans());
    assert_eq!((contents.report.lines, contents.report.damaged_lines), (2, 0));
}

/// One span with everything, one with nothing, and one of another resource.
fn golden_spans() -> Vec<Span> {
    let resource = Arc::new(Resource {
        attributes: attributes([("service.name", "router".into()), ("os.ports", ints([1, 2]))]),
        dropped_attributes: 1,
        schema_url: "https://opentelemetry.io/schemas/1.42.0".into(),
    });
    let scope = Arc::new(Scope {
        name: "stagetrace".into(),
        version: "0.1.0".into(),
        attributes: attributes([("scope.attr", true.into())]),
        dropped_attributes: 2,
        schema_url: "https://example.com/scope".into(),
    });
    let full = Span {
        parent_span_id: SpanId::from_u64(0x4164_d839_9f76_7c45),
        trace_state: "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".into(),
        flags: 0x303,
        name: "gpu_forward".into(),
        kind: SpanKind::Server,
        start_unix_nano: 1_784_000_000_123_456_789,
        end_unix_nano: 1_784_000_000_133_456_789,
        attributes: every_value(),
        dropped_attributes: 3,
        events: vec![
            Event {
                time_unix_nano: 1_784_000_000_123_456_790,
                name: "exception".into(),
                attributes: attributes([("exception.message", "größer als 2³¹".into())]),
                dropped_attributes: 4,
            },
            Event::default(),
        ],
        dropped_events: 5,
        links: vec![
            Link {
                trace_id: TraceId::from_u128(7).unwrap(),
                span_id: SpanId::from_u64(8).unwrap(),
                trace_state: "a=1".into(),
                attributes: attributes([("why", "retry".into())]),
                dropped_attributes: 6,
                flags: 0x301,
            },
            Link {
                trace_id: TraceId::from_u128(9).unwrap(),
                span_id: SpanId::from_u64(10).unwrap(),
                trace_state: String::new(),
                attributes: Attributes::new(),
                dropped_attributes: 0,
                flags: 0,
            },
        ],
        dropped_links: 7,
        status: Status { code: StatusCode::Error, message: "out of \"memory\"".into() },
        resource: resource.clone(),
        scope: scope.clone(),
        ..bare(0x5bc8_fbbc_bde5_c099)
    };
    let empty = Span { resource, scope, ..bare(2) };
    let elsewhere = Span { name: "encode".into(), ..bare(3) };
    vec![full, empty, elsewhere]
}

fn every_value() -> Attributes {
    attributes([
        ("text", "tab\tnewline\n\u{1b}[31mred\u{2028}</script>\u{9b}".into()),
        ("flag", false.into()),
        ("least", i64::MIN.into()),
        ("tenth", 0.1.into()),
        ("zero", (-0.0).into()),
        ("tiny", 5e-324.into()),
        ("huge", f64::MAX.into()),
        ("infinite", f64::NEG_INFINITY.into()),
        ("bytes", Value::Bytes(vec![0, 254, 255])),
        ("ints", ints([1, -2])),
        ("none", Value::Array(Vec::new())),
        ("map", Value::Map(attributes([("k", Value::Empty), ("клюв", ints([3]))]))),
        ("", Value::Empty),
    ])
}

fn attributes<const N: usize>(pairs: [(&str, Value); N]) -> Attributes {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn ints<const N: usize>(values: [i64; N]) -> Value {
    Value::Array(values.into_iter().map(Value::I64).collect())
}

fn bare(span_id: u64) -> Span {
    let trace_id = TraceId::from_u128(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c).unwrap();
    Span::new(trace_id, SpanId::from_u64(span_id).unwrap())
}

#[test]
fn nan_is_written_as_text_and_read_back() {
    let span = Span { attributes: attributes([("nan", f64::NAN.into())]), ..bare(1) };
    let written = write_lines(&[span]);
    let text = String::from_utf8(written.clone()).unwrap();
    assert!(text.contains(r#"{"key":"nan","value":{"doubleValue":"NaN"}}"#), "{text}");
    let spans = read_lines(&written, &ReadOptions::default()).spans;
    assert!(spans[0].attribute("nan").unwrap().as_f64().unwrap().is_nan());
}

#[test]
fn values_nested_too_deeply_end_in_an_empty_one() {
    let nested = |levels| (0..levels).fold(Value::I64(1), |value, _| Value::Array(vec![value]));
    let written = |levels| {
        let span = Span { attributes: attributes([("deep", nested(levels))]), ..bare(1) };
        read_lines(&write_lines(&[span]), &ReadOptions::default()).spans.remove(0)
    };
    assert_eq!(written(MAX_VALUE_DEPTH).attributes[0].1, nested(MAX_VALUE_DEPTH));
    let cut = written(MAX_VALUE_DEPTH + 1).attributes.remove(0).1;
    let mut innermost = &cut;
    while let [inner] = innermost.as_array().unwrap_or_default() {
        innermost = inner;
    }
    assert_eq!(*innermost, Value::Empty);
}

#[test]
fn the_deepest_value_that_we_write_is_read() {
    let nested = (0..MAX_VALUE_DEPTH)
        .fold(Value::I64(1), |value, _| Value::Map(vec![("k".to_owned(), value)]));
    let event = Event { attributes: attributes([("deep", nested)]), ..Event::default() };
    let span = Span { events: vec![event], ..bare(1) };
    assert_eq!(
        read_lines(&write_lines(std::slice::from_ref(&span)), &ReadOptions::default()).spans,
        [span]
    );
}

#[test]
fn a_line_without_spans_or_without_finish_is_not_written() {
    let resource = ResourceHead::new(&Resource::default(), &Scope::default());
    let mut out = b"before\n".to_vec();
    LineWriter::begin(&mut out, &resource).finish();
    let mut line = LineWriter::begin(&mut out, &resource);
    line.span(&start(&SpanHead::new("kept", SpanKind::Internal))).finish(StatusCode::Ok, "");
    assert_eq!(line.spans(), 1);
    drop(line);
    assert_eq!(out, b"before\n");
}

#[test]
fn an_unfinished_span_is_taken_back() {
    let resource = ResourceHead::new(&Resource::default(), &Scope::default());
    let head = SpanHead::new("step", SpanKind::Internal);
    let write = |unfinished: bool| {
        let mut out = Vec::new();
        let mut line = LineWriter::begin(&mut out, &resource);
        line.span(&start(&head)).finish(StatusCode::Unset, "");
        if unfinished {
            let mut events = line.span(&start(&head)).events(0);
            events.event("lost", 1).attribute("k", &Value::I64(1));
        }
        let promised = line.len();
        line.finish();
        assert_eq!(out.len(), promised);
        out
    };
    assert_eq!(write(true), write(false));
}

fn start(head: &SpanHead) -> SpanStart<'_> {
    SpanStart {
        trace_id: TraceId::from_u128(1).unwrap(),
        span_id: SpanId::from_u64(2).unwrap(),
        parent_span_id: None,
        trace_state: "",
        flags: 3,
        title: head.into(),
        start_unix_nano: 1,
        end_unix_nano: 2,
    }
}

proptest! {
    #[test]
    fn our_reader_reads_what_we_write(spans in common::spans(common::any_double_but_nan)) {
        let written = write_lines(&spans);
        prop_assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), spans.len().min(1));
        let strict = ReadOptions { strict: true, ..ReadOptions::default() };
        let contents = read_lines(&written, &strict);
        prop_assert_eq!(&contents.spans, &spans);
        prop_assert_eq!(contents.report.refused_links, 0);
        if let [first, ..] = &spans[..] {
            prop_assert_eq!(&write_spans(&first.resource, &first.scope, &spans), &written);
            prop_assert_eq!(read_document(&written, &ReadOptions::default()).unwrap().spans, spans);
        }
    }

    #[test]
    fn the_opentelemetry_crate_reads_what_we_write(spans in common::spans(common::finite_double)) {
        let written = write_lines(&spans);
        let read = match written.is_empty() {
            true => opentelemetry_proto::tonic::trace::v1::TracesData::default(),
            false => serde_json::from_slice(&written).unwrap(),
        };
        prop_assert_eq!(&read, &to_proto(&spans));
        prop_assert_eq!(of_proto(read), spans);
    }
}
