//! The writers allocate nothing once their output has grown.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::{KeyHead, LineWriter, ResourceHead, SpanHead, SpanStart, Title};
use stagetrace_wire::otlp::protobuf;
use stagetrace_wire::recording::value::ValueRef;
use stagetrace_wire::span::{Resource, Scope, SpanKind, StatusCode, Value};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

struct Heads {
    resource: ResourceHead,
    span: SpanHead,
    key: KeyHead,
    map: Value,
}

fn write_lines(heads: &Heads, out: &mut Vec<u8>) {
    for first in 0..10 {
        let mut line = LineWriter::begin(out, &heads.resource);
        for at in 1..=100 {
            write_span(heads, &mut line, first * 100 + at);
        }
        line.finish();
    }
}

fn write_span(heads: &Heads, line: &mut LineWriter<'_>, id: u64) {
    let (trace_id, span_id) = (TraceId::from_u128(7).unwrap(), SpanId::from_u64(id).unwrap());
    let mut span = line.span(&SpanStart {
        trace_id,
        span_id,
        parent_span_id: Some(span_id),
        trace_state: "a=1",
        flags: 0x103,
        title: if id & 1 == 0 {
            (&heads.span).into()
        } else {
            Title::Plain("ad hoc", SpanKind::Client)
        },
        start_unix_nano: id,
        end_unix_nano: id + 1,
    });
    span.attribute(&heads.key, ValueRef::I64(-5))
        .attribute("escaped", ValueRef::Str("line\nfeed \u{2028}"))
        .attribute("bytes", ValueRef::Bytes(&[1, 2, 3, 4]))
        .attribute("double", ValueRef::F64(1.0 / id as f64))
        .attribute("nan", ValueRef::F64(f64::NAN))
        .attribute("map", &heads.map);
    let mut events = span.events(1);
    events.event("token", id).attribute(&heads.key, ValueRef::Bool(true)).dropped_attributes(2);
    let mut links = events.links(3);
    links.link(trace_id, span_id, "", 1).attribute(&heads.key, ValueRef::Bool(false));
    links.finish(4, StatusCode::Error, "why");
}

#[test]
fn a_thousand_spans_are_written_without_an_allocation() {
    let heads = Heads {
        resource: ResourceHead::new(&Resource::default(), &Scope::default()),
        span: SpanHead::new("denoise_step", SpanKind::Internal),
        key: KeyHead::new("diffusion.step"),
        map: Value::Map(vec![("k".to_owned(), Value::Array(vec![Value::Empty, 0.1.into()]))]),
    };
    let mut out = Vec::new();
    let before_growth = ALLOCATIONS.get();
    write_lines(&heads, &mut out);
    assert!(ALLOCATIONS.get() > before_growth, "the count counts");

    let grown = (out.len(), out.capacity());
    out.clear();
    let before = ALLOCATIONS.get();
    write_lines(&heads, &mut out);
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!((out.len(), out.capacity()), grown);
}

struct ProtobufHeads {
    resource: protobuf::ResourceHead,
    span: protobuf::SpanHead,
    key: protobuf::KeyHead,
    function: protobuf::AttributeHead,
    map: Value,
}

/// Gives the bytes of a request of 1000 spans.
fn write_request(heads: &ProtobufHeads, request: &mut protobuf::Request) -> usize {
    for id in 1..=1000 {
        let (trace_id, span_id) = (TraceId::from_u128(7).unwrap(), SpanId::from_u64(id).unwrap());
        let start = protobuf::SpanStart {
            trace_id,
            span_id,
            parent_span_id: Some(span_id),
            trace_state: "a=1",
            flags: 0x103,
            title: match id & 1 {
                0 => (&heads.span).into(),
                _ => protobuf::Title::Plain("ad hoc", SpanKind::Client),
            },
            start_unix_nano: id,
            end_unix_nano: id + 1,
        };
        let mut span = request.span(&heads.resource, &start);
        span.attribute(&heads.key, ValueRef::I64(-5))
            .attribute("bytes", ValueRef::Bytes(&[1, 2, 3, 4]))
            .attribute("double", ValueRef::F64(1.0 / id as f64))
            .attribute("map", &heads.map)
            .encoded(&heads.function);
        let mut events = span.events(1);
        events.event("token", id).attribute(&heads.key, ValueRef::Bool(true)).dropped_attributes(2);
        let mut links = events.links(3);
        links.link(trace_id, span_id, "", 1).attribute("long", ValueRef::Str(&LONG[..id as usize]));
        links.finish(4, StatusCode::Error, "why");
    }
    request.finish(&heads.resource).len()
}

static LONG: &str = match str::from_utf8(&[b'x'; 1000]) {
    Ok(text) => text,
    Err(_) => unreachable!(),
};

#[test]
fn a_request_of_a_thousand_spans_is_written_without_an_allocation() {
    let heads = ProtobufHeads {
        resource: protobuf::ResourceHead::new(&Resource::default(), &Scope::default()),
        span: protobuf::SpanHead::new("denoise_step", SpanKind::Internal),
        key: protobuf::KeyHead::new("diffusion.step"),
        function: protobuf::AttributeHead::new("code.function.name", ValueRef::Str("a::b")),
        map: Value::Map(vec![("k".to_owned(), Value::Array(vec![Value::Empty, 0.1.into()]))]),
    };
    let mut request = protobuf::Request::new();
    let before_growth = ALLOCATIONS.get();
    let len = write_request(&heads, &mut request);
    assert!(ALLOCATIONS.get() > before_growth, "the count counts");

    request.clear(usize::MAX);
    let before = ALLOCATIONS.get();
    assert_eq!(write_request(&heads, &mut request), len);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
