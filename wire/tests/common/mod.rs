//! Arbitrary spans.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{
    Attributes, Event, Link, Resource, Scope, Span, SpanKind, Status, StatusCode, Value,
};

/// Spans of one resource and scope, each with an identity of its own. No NaN, which is unequal to
/// itself.
pub(crate) fn spans(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Vec<Span>> {
    (resource(double), scope(double), vec(span(double), 0..4)).prop_map(
        |(resource, scope, mut spans)| {
            let (resource, scope) = (Arc::new(resource), Arc::new(scope));
            for (at, span) in (1..).zip(&mut spans) {
                span.span_id = SpanId::from_u64(at).unwrap();
                span.resource = resource.clone();
                span.scope = scope.clone();
            }
            spans
        },
    )
}

pub(crate) fn any_double_but_nan() -> BoxedStrategy<f64> {
    use proptest::num::f64;
    (f64::ANY | f64::INFINITE).prop_filter("NaN", |value| !value.is_nan()).boxed()
}

#[allow(dead_code)] // Not every test wants them.
pub(crate) fn finite_double() -> BoxedStrategy<f64> {
    use proptest::num::f64;
    (f64::POSITIVE | f64::NEGATIVE | f64::NORMAL | f64::SUBNORMAL | f64::ZERO).boxed()
}

fn span(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Span> {
    let identity = (trace_id(), proptest::option::of(span_id()), ".{0,8}", any::<u32>());
    let facts = (".{0,12}", 0i64..6, any::<u64>(), any::<u64>(), attributes(double));
    let more = (vec(event(double), 0..3), vec(link(double), 0..3), dropped(), status());
    (identity, facts, more).prop_map(|(identity, facts, more)| {
        let (trace_id, parent_span_id, trace_state, flags) = identity;
        let (name, kind, start_unix_nano, end_unix_nano, attributes) = facts;
        let (events, links, dropped, status) = more;
        Span {
            parent_span_id,
            trace_state,
            flags,
            name,
            kind: SpanKind::from_number(kind),
            start_unix_nano,
            end_unix_nano,
            attributes,
            dropped_attributes: dropped[0],
            events,
            dropped_events: dropped[1],
            links,
            dropped_links: dropped[2],
            status,
            ..Span::new(trace_id, SpanId::from_u64(1).unwrap())
        }
    })
}

fn event(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Event> {
    (any::<u64>(), ".{0,8}", attributes(double), any::<u32>()).prop_map(
        |(time_unix_nano, name, attributes, dropped_attributes)| Event {
            time_unix_nano,
            name,
            attributes,
            dropped_attributes,
        },
    )
}

fn link(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Link> {
    (trace_id(), span_id(), ".{0,8}", attributes(double), any::<u32>(), any::<u32>()).prop_map(
        |(trace_id, span_id, trace_state, attributes, dropped_attributes, flags)| Link {
            trace_id,
            span_id,
            trace_state,
            attributes,
            dropped_attributes,
            flags,
        },
    )
}

fn resource(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Resource> {
    (attributes(double), any::<u32>(), ".{0,8}").prop_map(
        |(attributes, dropped_attributes, schema_url)| Resource {
            attributes,
            dropped_attributes,
            schema_url,
        },
    )
}

fn scope(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Scope> {
    (".{0,8}", ".{0,4}", attributes(double), any::<u32>(), ".{0,8}").prop_map(
        |(name, version, attributes, dropped_attributes, schema_url)| Scope {
            name,
            version,
            attributes,
            dropped_attributes,
            schema_url,
        },
    )
}

fn status() -> impl Strategy<Value = Status> {
    (0i64..3, ".{0,8}")
        .prop_map(|(code, message)| Status { code: StatusCode::from_number(code), message })
}

fn attributes(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Attributes> {
    vec((".{0,6}", value(double)), 0..4)
}

fn value(double: fn() -> BoxedStrategy<f64>) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::Str),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::I64),
        double().prop_map(Value::F64),
        vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
        Just(Value::Empty),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((".{0,4}", inner), 0..4).prop_map(Value::Map),
        ]
    })
}

fn trace_id() -> impl Strategy<Value = TraceId> {
    (1u128..).prop_map(|number| TraceId::from_u128(number).unwrap())
}

fn span_id() -> impl Strategy<Value = SpanId> {
    (1u64..).prop_map(|number| SpanId::from_u64(number).unwrap())
}

fn dropped() -> impl Strategy<Value = [u32; 3]> {
    any::<[u32; 3]>()
}
