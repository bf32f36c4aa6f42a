//! A span that is copied from its template is, byte for byte, the one that is written field by field, in either encoding.

use proptest::prelude::*;
use stagetrace_wire::otlp::{Execution, json, protobuf};
use stagetrace_wire::span::{Span, Status};

mod common;

/// Times with as many digits as they have now, with others, and none; and flags alike.
fn execution(span: &Span) -> impl Strategy<Value = Execution> + use<> {
    let time = prop_oneof![
        4 => 1_000_000_000_000_000_000..10_000_000_000_000_000_000_u64,
        1 => any::<u64>(),
        1 => Just(0)
    ];
    let flags = prop_oneof![4 => 0x100..0x400_u32, 1 => any::<u32>(), 1 => Just(0)];
    let (trace_id, span_id) = (span.trace_id, span.span_id);
    let parent_span_id = span.parent_span_id.unwrap_or(span_id);
    (time.clone(), time, flags).prop_map(move |(start_unix_nano, end_unix_nano, flags)| Execution {
        trace_id,
        span_id,
        parent_span_id,
        flags,
        start_unix_nano,
        end_unix_nano,
    })
}

/// A span with nothing that a template lacks, and how many of its attributes are in the template.
fn plain(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = (Vec<Span>, usize)> {
    let with_execution = |spans: Vec<Span>| {
        let executions: Vec<_> = spans.iter().map(execution).collect();
        (Just(spans), executions)
    };
    let spans = common::spans(double).prop_flat_map(with_execution);
    let plain = spans.prop_map(|(spans, executions)| {
        let plain = |(span, it): (Span, Execution)| Span {
            parent_span_id: Some(it.parent_span_id),
            trace_state: String::new(),
            flags: it.flags,
            start_unix_nano: it.start_unix_nano,
            end_unix_nano: it.end_unix_nano,
            dropped_attributes: 0,
            events: Vec::new(),
            dropped_events: 0,
            links: Vec::new(),
            dropped_links: 0,
            status: Status::default(),
            ..span
        };
        spans.into_iter().zip(executions).map(plain).collect()
    });
    (plain, 0_usize..3)
}

fn execution_of(span: &Span) -> Execution {
    Execution {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_span_id: span.parent_span_id.unwrap(),
        flags: span.flags,
        start_unix_nano: span.start_unix_nano,
        end_unix_nano: span.end_unix_nano,
    }
}

/// How many attributes differ, the last ones being those of the template.
fn differing(span: &Span, always: usize) -> usize {
    span.attributes.len().saturating_sub(always)
}

proptest! {
    #[test]
    fn in_protobuf((spans, always) in plain(common::any_double_but_nan)) {
        let mut request = protobuf::Request::new();
        let Some(first) = spans.first() else { return Ok(()) };
        let head = protobuf::ResourceHead::new(&first.resource, &first.scope);
        for span in &spans {
            let (more, always) = span.attributes.split_at(differing(span, always));
            let always = always.iter().map(|(key, value)| protobuf::AttributeHead::new(&**key, value));
            let title = protobuf::SpanHead::new(&span.name, span.kind);
            let template = protobuf::SpanTemplate::new(title, always.collect());
            if more.is_empty() {
                request.push(&head, &template, execution_of(span));
            } else {
                request.push_with(&head, &template, execution_of(span), |to| {
                    for (key, value) in more {
                        to.attribute(&**key, value);
                    }
                });
            }
        }
        prop_assert_eq!(request.spans(), spans.len());
        prop_assert_eq!(request.finish(&head), protobuf::write_request(&spans));
    }

    #[test]
    fn in_json((spans, always) in plain(common::finite_double)) {
        let mut out = Vec::new();
        let Some(first) = spans.first() else { return Ok(()) };
        let head = json::ResourceHead::new(&first.resource, &first.scope);
        let mut line = json::LineWriter::begin(&mut out, &head);
        for span in &spans {
            let (more, always) = span.attributes.split_at(differing(span, always));
            let always = always.iter().map(|(key, value)| json::AttributeHead::new(&**key, value));
            let title = json::SpanHead::new(&span.name, span.kind);
            let template = json::SpanTemplate::new(title, always.collect());
            line.push_with(&template, execution_of(span), |to| {
                for (key, value) in more {
                    to.attribute(&**key, value);
                }
            });
        }
        prop_assert_eq!(line.spans(), spans.len());
        line.finish();
        let expected = String::from_utf8(json::write_lines(&spans)).unwrap();
        prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
