//! The direct protobuf writer says, byte for byte, what prost says of the same spans.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::TracesData;
use proptest::prelude::*;
use prost::Message;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::MAX_VALUE_DEPTH;
use stagetrace_wire::otlp::protobuf::{
    AttributeHead, KeyHead, Request, ResourceHead, SpanHead, SpanStart, write_request,
};
use stagetrace_wire::span::{
    Attributes, Event, Link, Resource, Scope, Span, SpanKind, Status, StatusCode, Value,
};

mod common;
#[path = "common/proto.rs"]
mod proto;

use proto::{of_proto, to_proto};

proptest! {
    #[test]
    fn any_spans_are_encoded_as_prost_does(spans in common::spans(common::any_double_but_nan)) {
        let written = write_request(&spans);
        prop_assert_eq!(&written, &to_proto(&spans).encode_to_vec());
        let read = ExportTraceServiceRequest::decode(&*written).unwrap();
        prop_assert_eq!(of_proto(TracesData { resource_spans: read.resource_spans }), spans);
    }

    #[test]
    fn a_request_that_is_cut_is_encoded_as_two_requests(
        names in prop::collection::vec("[a-z]{0,200}", 1..20),
        at in any::<prop::sample::Index>(),
    ) {
        let head = ResourceHead::new(&Resource::default(), &Scope::default());
        let requested = |names: &[String]| {
            let mut request = Request::new();
            for name in names {
                let title = SpanHead::new(name, SpanKind::Internal);
                request.span(&head, &start(&bare(7), &title)).finish(StatusCode::Unset, "");
            }
            request
        };
        let at = at.index(names.len() + 1);
        let mut first = requested(&names);
        if at % 2 == 0 {
            first.finish(&head);
        }
        let mut rest = first.split_off(at);
        for (mut cut, names) in [(first, &names[..at]), (rest.split_off(0), &names[at..])] {
            let mut whole = requested(names);
            prop_assert_eq!((cut.spans(), cut.span_bytes()), (names.len(), whole.span_bytes()));
            prop_assert_eq!(cut.finish(&head), whole.finish(&head));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_request_that_is_used_again_is_encoded_as_a_new_one(
        one in common::spans(common::finite_double),
        other in common::spans(common::finite_double),
    ) {
        let mut request = Request::new();
        for spans in [&one, &other] {
            if let [first, ..] = &spans[..] {
                let head = ResourceHead::new(&first.resource, &first.scope);
                for span in spans {
                    // Taken back, since it is not finished.
                    request.span(&head, &start(span, &SpanHead::new("lost", SpanKind::Internal))).attribute("k", &Value::I64(1));
                    let title = SpanHead::new(&span.name, span.kind);
                    request.span(&head, &start(span, &title)).finish(StatusCode::Unset, "");
                }
                let bare: Vec<Span> = spans.iter().map(|span| Span {
                    attributes: Attributes::new(),
                    dropped_attributes: 0,
                    events: Vec::new(),
                    dropped_events: 0,
                    links: Vec::new(),
                    dropped_links: 0,
                    status: Status::default(),
                    ..span.clone()
                }).collect();
                prop_assert_eq!((request.spans(), request.len(&head)), (bare.len(), request.finish(&head).len()));
                prop_assert_eq!(request.finish(&head), to_proto(&bare).encode_to_vec());
            }
            request.clear(usize::MAX);
            prop_assert!(request.is_empty());
        }
    }
}

fn start<'a>(span: &'a Span, title: &'a SpanHead) -> SpanStart<'a> {
    SpanStart {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_span_id: span.parent_span_id,
        trace_state: &span.trace_state,
        flags: span.flags,
        title: title.into(),
        start_unix_nano: span.start_unix_nano,
        end_unix_nano: span.end_unix_nano,
    }
}

fn bare(span_id: u64) -> Span {
    Span::new(TraceId::from_u128(7).unwrap(), SpanId::from_u64(span_id).unwrap())
}

fn attributes<const N: usize>(pairs: [(&str, Value); N]) -> Attributes {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[test]
fn lengths_around_every_boundary_are_encoded_as_prost_does() {
    for len in (0..300).chain(16_300..16_420).chain([2_097_100, 2_097_152, 2_100_000]) {
        let text = "x".repeat(len);
        let of = |text: &str| attributes([("key", text.into())]);
        let link = Link {
            trace_id: TraceId::from_u128(1).unwrap(),
            span_id: SpanId::from_u64(2).unwrap(),
            trace_state: String::new(),
            attributes: of(&text),
            dropped_attributes: 0,
            flags: 0,
        };
        let spans = [
            Span { name: text.clone(), ..bare(1) },
            Span { attributes: of(&text), ..bare(2) },
            Span {
                events: vec![Event { name: text.clone(), ..Event::default() }],
                links: vec![link],
                status: Status { code: StatusCode::Error, message: text },
                ..bare(3)
            },
        ];
        // Not `assert_eq`, which would print megabytes.
        assert!(write_request(&spans) == to_proto(&spans).encode_to_vec(), "texts of {len} bytes");
    }
}

#[test]
fn spans_of_two_processes_are_two_resource_spans() {
    let resource =
        Resource { attributes: attributes([("service.name", "a".into())]), ..Resource::default() };
    let here = Span { resource: resource.into(), ..bare(1) };
    let spans = [here.clone(), Span { name: "second".into(), ..here }, bare(3)];
    let written = write_request(&spans);
    assert_eq!(written, to_proto(&spans).encode_to_vec());
    assert_eq!(TracesData::decode(&*written).unwrap().resource_spans.len(), 2);
}

#[test]
fn what_is_encoded_beforehand_is_what_is_encoded_at_once() {
    let head = ResourceHead::new(&Resource::default(), &Scope::default());
    let (title, key) = (SpanHead::new("step", SpanKind::Client), KeyHead::new("n"));
    let function = AttributeHead::new("code.function.name", &Value::from("server::step"));
    let mut request = Request::new();
    let mut span = request.span(&head, &start(&bare(1), &title));
    span.attribute(&key, &Value::I64(-1)).encoded(&function);
    span.finish(StatusCode::Unset, "");
    let expected = Span {
        name: "step".into(),
        kind: SpanKind::Client,
        attributes: attributes([
            ("n", Value::I64(-1)),
            ("code.function.name", "server::step".into()),
        ]),
        ..bare(1)
    };
    assert_eq!(request.finish(&head), to_proto(&[expected]).encode_to_vec());
}

#[test]
fn what_is_nested_too_deeply_has_no_value_and_decodes() {
    let nested = |levels: usize| {
        (0..levels).fold(Value::I64(1), |value, _| Value::Map(attributes([("k", value)])))
    };
    let span = |value: Value| Span { attributes: attributes([("deep", value)]), ..bare(1) };
    let most = [span(nested(MAX_VALUE_DEPTH))];
    assert_eq!(write_request(&most), to_proto(&most).encode_to_vec());
    let cut =
        (0..MAX_VALUE_DEPTH).fold(Value::Empty, |value, _| Value::Map(attributes([("k", value)])));
    let written = write_request(&[span(nested(1_000))]);
    assert_eq!(written, to_proto(&[span(cut)]).encode_to_vec());
    assert!(TracesData::decode(&*written).is_ok());
}

#[test]
fn a_request_without_spans_has_no_bytes() {
    assert!(write_request(&[]).is_empty());
    let head = ResourceHead::new(&Resource::default(), &Scope::default());
    let mut request = Request::new();
    let _ = request.span(&head, &start(&bare(1), &SpanHead::new("lost", SpanKind::Internal)));
    assert_eq!((request.spans(), request.len(&head)), (0, 0));
    assert!(request.finish(&head).is_empty());
}
