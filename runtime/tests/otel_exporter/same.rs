//! An exporter gets the same spans as the file.

use crate::everything::{everything, plain};
use crate::support::{LONG, config, flush, scenarios, sink, written};
use opentelemetry::trace::{self, Status};
use opentelemetry::{Array, KeyValue};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};
use stagetrace::{Outcome, SpanLimits, init_with, otel, span};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{self as wire, SpanKind, StatusCode, Value, flags};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

scenarios! {
    fn an_exporter_gets_the_same_spans_as_the_file() {
        let spans = same_spans(|limits| {
            limits.attributes = 14;
            limits.events = 4;
            limits.links = 3;
            limits.attributes_per_event = 3;
        });
        the_case_is_rich_enough(&spans);
        let alone = spans.values().find(|span| span.name == "alone").unwrap();
        assert_eq!(alone.attribute("text"), Some(&"inline é".into()));
    }

    fn what_is_cut_is_cut_whatever_its_batch_begins_with() {
        let exporter = InMemorySpanExporter::default();
        let config = config().span_limits(|limits| limits.attribute_length = Some(3));
        let _trace = init_with(config, [otel::exporter("memory", exporter.clone())]).unwrap();
        // The first span has more than its record.
        span!("cancelled").end(Outcome::Cancelled);
        plain("a long text", None);
        flush(LONG).unwrap();
        let spans = exporter.get_finished_spans().unwrap();
        let spans: Vec<_> = spans.iter().map(to_wire).collect();
        assert_eq!(spans[0].status.code, StatusCode::Error);
        assert_eq!(spans[1].attribute("text"), Some(&"a l".into()));
    }

    fn what_is_cut_in_the_file_is_cut_for_an_exporter() {
        let spans = same_spans(|limits| {
            limits.attributes = 1;
            limits.attribute_length = Some(3);
        });
        let consume = spans.values().find(|span| span.name == "consume").unwrap();
        assert_eq!(consume.attributes, [("code.function.name".to_owned(), "ote".into())]);
        let alone = spans.values().find(|span| span.name == "alone").unwrap();
        assert_eq!((alone.attributes.len(), alone.dropped_attributes), (1, 2));
    }
}

/// Records everything with these limits. Gives the spans, which are the same in the file and for an exporter.
fn same_spans(limit: impl FnOnce(&mut SpanLimits)) -> BTreeMap<u64, wire::Span> {
    let exporter = InMemorySpanExporter::default();
    let config = config().span_limits(limit);
    let trace = init_with(config, [otel::exporter("memory", exporter.clone())]).unwrap();
    everything();
    flush(LONG).unwrap();

    let in_file = written(&trace).into_iter();
    let in_file: BTreeMap<_, _> = in_file.map(|span| (span.span_id.to_u64(), span)).collect();
    let exported = exporter.get_finished_spans().unwrap();
    assert_eq!(exported.len(), in_file.len());
    assert_eq!(sink("memory").exported, exported.len() as u64);
    for span in &exported {
        let id = u64::from_be_bytes(span.span_context.span_id().to_bytes());
        assert_eq!(to_wire(span), comparable(in_file[&id].clone()));
    }
    in_file
}

fn the_case_is_rich_enough(spans: &BTreeMap<u64, wire::Span>) {
    let named = |name: &str| spans.values().find(|span| span.name == name).expect(name);
    let values = named("values");
    assert_eq!(values.attribute("text"), Some(&"replaced".into()));
    assert_eq!(values.attribute("infinite"), Some(&Value::F64(f64::INFINITY)));
    assert_eq!(values.attribute("bytes"), Some(&Value::Bytes(vec![0, 0xFF, 0x10])));
    assert_eq!(values.links.len(), 2);
    let crowded = named("crowded");
    let dropped = (crowded.dropped_attributes, crowded.dropped_events, crowded.dropped_links);
    assert_eq!(dropped, (7, 16, 17));
    assert_eq!(named("generate").flags & flags::IS_REMOTE, flags::IS_REMOTE);
    assert_eq!(named("generate").trace_state, "vendor=a");
    assert!(named("generate").attribute("stagetrace.stage.forward.duration").is_some());
    assert_eq!(named("panics").attribute("error.type"), Some(&"panic".into()));
    let failed = spans.values().filter(|span| span.name == "forward");
    let failed: Vec<_> = failed.filter(|span| span.status.code == StatusCode::Error).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed[0].status.message.contains("invalid digit"), "{:?}", failed[0].status);
    assert_eq!(failed[0].events[0].attributes.len(), 3);
    let kinds: Vec<_> = spans.values().map(|span| span.kind).collect();
    for kind in 1..=5 {
        assert!(kinds.contains(&SpanKind::from_number(kind)), "{kinds:?}");
    }
}

/// A span of the file without what no exporter is given with each span, and with its bytes as
/// exporters get them.
fn comparable(mut span: wire::Span) -> wire::Span {
    span.resource = Arc::default();
    for link in &mut span.links {
        // Exporters cannot be told that it is not known.
        link.flags |= flags::HAS_IS_REMOTE;
    }
    for (_, value) in &mut span.attributes {
        if let Value::Bytes(bytes) = value {
            assert_eq!(*bytes, [0, 0xFF, 0x10]);
            *value = "AP8Q".into();
        }
    }
    span
}

fn to_wire(span: &SpanData) -> wire::Span {
    let context = &span.span_context;
    assert!(!context.is_remote());
    let scope = &span.instrumentation_scope;
    let remote = if span.parent_span_is_remote { flags::IS_REMOTE } else { 0 };
    wire::Span {
        parent_span_id: SpanId::from_u64(id(span.parent_span_id)),
        trace_state: context.trace_state().header(),
        flags: u32::from(context.trace_flags().to_u8()) | flags::HAS_IS_REMOTE | remote,
        name: span.name.to_string(),
        kind: match span.span_kind {
            trace::SpanKind::Internal => SpanKind::Internal,
            trace::SpanKind::Server => SpanKind::Server,
            trace::SpanKind::Client => SpanKind::Client,
            trace::SpanKind::Producer => SpanKind::Producer,
            trace::SpanKind::Consumer => SpanKind::Consumer,
        },
        start_unix_nano: nanos(span.start_time),
        end_unix_nano: nanos(span.end_time),
        attributes: attributes(&span.attributes),
        dropped_attributes: span.dropped_attributes_count,
        events: span.events.iter().map(event_to_wire).collect(),
        dropped_events: span.events.dropped_count,
        links: span.links.iter().map(link_to_wire).collect(),
        dropped_links: span.links.dropped_count,
        status: match &span.status {
            Status::Unset => wire::Status::default(),
            Status::Ok => wire::Status { code: StatusCode::Ok, message: String::new() },
            Status::Error { description } => {
                wire::Status { code: StatusCode::Error, message: description.to_string() }
            }
        },
        scope: Arc::new(wire::Scope {
            name: scope.name().to_owned(),
            version: scope.version().unwrap_or_default().to_owned(),
            ..wire::Scope::default()
        }),
        ..wire::Span::new(trace_id(context.trace_id()), own_id(context.span_id()))
    }
}

fn event_to_wire(event: &trace::Event) -> wire::Event {
    wire::Event {
        time_unix_nano: nanos(event.timestamp),
        name: event.name.to_string(),
        attributes: attributes(&event.attributes),
        dropped_attributes: event.dropped_attributes_count,
    }
}

fn link_to_wire(link: &trace::Link) -> wire::Link {
    let context = &link.span_context;
    let remote = if context.is_remote() { flags::IS_REMOTE } else { 0 };
    wire::Link {
        trace_id: trace_id(context.trace_id()),
        span_id: own_id(context.span_id()),
        trace_state: context.trace_state().header(),
        attributes: attributes(&link.attributes),
        dropped_attributes: link.dropped_attributes_count,
        flags: u32::from(context.trace_flags().to_u8()) | flags::HAS_IS_REMOTE | remote,
    }
}

fn attributes(attributes: &[KeyValue]) -> wire::Attributes {
    let pair = |attribute: &KeyValue| (attribute.key.to_string(), value(&attribute.value));
    attributes.iter().map(pair).collect()
}

fn value(value: &opentelemetry::Value) -> Value {
    use opentelemetry::Value as Otel;
    match value {
        Otel::Bool(value) => Value::Bool(*value),
        Otel::I64(value) => Value::I64(*value),
        Otel::F64(value) => Value::F64(*value),
        Otel::String(text) => text.as_str().into(),
        Otel::Array(array) => Value::Array(match array {
            Array::Bool(values) => values.iter().copied().map(Value::Bool).collect(),
            Array::I64(values) => values.iter().copied().map(Value::I64).collect(),
            Array::F64(values) => values.iter().copied().map(Value::F64).collect(),
            Array::String(texts) => texts.iter().map(|text| text.as_str().into()).collect(),
            other => panic!("a new kind of array: {other:?}"),
        }),
        other => panic!("a new kind of value: {other:?}"),
    }
}

fn nanos(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

fn id(id: trace::SpanId) -> u64 {
    u64::from_be_bytes(id.to_bytes())
}

fn own_id(span_id: trace::SpanId) -> SpanId {
    SpanId::from_u64(id(span_id)).expect("a span has an id")
}

fn trace_id(id: trace::TraceId) -> TraceId {
    TraceId::from_u128(u128::from_be_bytes(id.to_bytes())).expect("a span has a trace")
}
