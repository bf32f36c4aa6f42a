//! The protobuf reader takes what prost takes, and nothing makes it panic.

use std::fs;

use opentelemetry_proto::tonic::trace::v1::TracesData;
use proptest::prelude::*;
use prost::Message;
use stagetrace_wire::id::{IdError, SpanId, TraceId};
use stagetrace_wire::otlp::json::SpanRefusal;
use stagetrace_wire::otlp::protobuf::{MAX_DEPTH, Malformed, read_request, write_request};
use stagetrace_wire::span::Span;

mod common;

/// A field with a length.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        field.push(len as u8 | 0x80);
        len >>= 7;
    }
    field.push(len as u8);
    field.extend_from_slice(content);
    field
}

/// A request of one span, of these fields.
fn request(span: &[u8]) -> Vec<u8> {
    message(1, &message(2, &message(2, span)))
}

fn ids() -> Vec<u8> {
    [message(1, &[7; 16]), message(2, &[8; 8])].concat()
}

proptest! {
    #[test]
    fn what_is_written_is_read_alike(spans in common::spans(common::any_double_but_nan)) {
        let contents = read_request(&write_request(&spans)).unwrap();
        prop_assert_eq!(contents.report.spans, spans.len() as u64);
        prop_assert_eq!(contents.spans, spans);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = read_request(&bytes);
    }

    #[test]
    fn a_changed_request_is_taken_if_prost_takes_it_and_is_written_alike(
        file in prop::sample::select(case_files()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut bytes = file;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let (ours, theirs) = (read_request(&bytes), TracesData::decode(&*bytes));
        // Not the other way round: prost knows fields that say nothing of spans, such as those of
        // entities, and is particular about them.
        prop_assert!(ours.is_ok() || theirs.is_err(), "{:?} and {:?}", ours, theirs);
        if let Ok(contents) = ours {
            let written = write_request(&contents.spans);
            let again = read_request(&written).unwrap();
            prop_assert_eq!(write_request(&again.spans), written);
        }
    }
}

fn case_files() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/otlp/");
    let names = ["all_values.pb", "all_values.unknown_fields.pb", "js_sdk.pb"];
    names.iter().map(|name| fs::read(format!("{folder}{name}")).unwrap()).collect()
}

#[test]
fn a_request_cut_anywhere_is_whole_or_refused() {
    for bytes in case_files() {
        read_request(&bytes).unwrap();
        for len in 0..bytes.len() {
            let (ours, theirs) = (read_request(&bytes[..len]), TracesData::decode(&bytes[..len]));
            assert!(ours.is_err() || theirs.is_ok(), "{len} bytes");
        }
    }
}

#[test]
fn a_span_without_valid_ids_is_left_out_and_its_neighbours_are_kept() {
    let spans = [
        (message(2, &[8; 8]), SpanRefusal::MissingId { field: "traceId" }),
        (message(1, &[7; 16]), SpanRefusal::MissingId { field: "spanId" }),
        (
            [message(1, &[7; 3]), message(2, &[8; 8])].concat(),
            SpanRefusal::IdLength { field: "traceId", expected: 16, found: 3 },
        ),
        (
            [message(1, &[7; 16]), message(2, &[0; 8])].concat(),
            SpanRefusal::MalformedId { field: "spanId", error: IdError::Zero },
        ),
        (
            [ids(), message(4, &[9; 7])].concat(),
            SpanRefusal::IdLength { field: "parentSpanId", expected: 8, found: 7 },
        ),
    ];
    let good = ids();
    let all = spans.iter().map(|(span, _)| span).chain([&good]);
    let all: Vec<u8> = all.flat_map(|span| message(2, span)).collect();
    let contents = read_request(&message(1, &message(2, &all))).unwrap();

    let expected =
        Span::new(TraceId::from_bytes([7; 16]).unwrap(), SpanId::from_bytes([8; 8]).unwrap());
    assert_eq!(contents.spans, [expected]);
    assert_eq!((contents.report.spans, contents.report.refused_spans), (1, 5));
    let refusals: Vec<_> = contents.report.refused.iter().map(|it| it.refusal).collect();
    assert_eq!(refusals, spans.map(|(_, refusal)| refusal));
    assert_eq!(refusals[2].to_string(), "`traceId` has 3 bytes instead of 16");
}

#[test]
fn a_zero_parent_is_none_and_a_link_to_nowhere_is_left_out() {
    let span = [ids(), message(4, &[0; 8]), message(13, b"")].concat();
    let contents = read_request(&request(&span)).unwrap();
    assert_eq!(contents.spans[0].parent_span_id, None);
    assert_eq!((contents.spans[0].links.len(), contents.report.refused_links), (0, 1));
}

#[test]
fn a_resource_may_stand_behind_its_spans() {
    let name = [message(1, b"service.name"), message(2, &message(1, b"late"))].concat();
    let scopes = message(2, &message(2, &ids()));
    let resource = message(1, &message(1, &name));
    let contents = read_request(&message(1, &[scopes, resource].concat())).unwrap();
    assert_eq!(contents.spans[0].resource.service_name(), Some("late"));
}

#[test]
fn what_is_no_protobuf_is_refused_by_name() {
    let cases: [(&[u8], Malformed); 9] = [
        (b"\x0a", Malformed::Truncated),
        (b"\x0a\x05ab", Malformed::Truncated),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", Malformed::Truncated),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", Malformed::Number),
        (b"\x02\x00", Malformed::Tag { tag: 2 }),
        (b"\x0f", Malformed::Tag { tag: 15 }),
        (b"\x0c", Malformed::Tag { tag: 12 }),
        (b"\x08\x01", Malformed::Type { number: 1 }),
        // A group that another one ends.
        (b"\x53\x5c", Malformed::Tag { tag: 0x5c }),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read_request(bytes).unwrap_err(), expected, "{bytes:?}");
        assert!(TracesData::decode(bytes).is_err(), "{bytes:?}");
    }
    let name = request(&[ids(), message(5, b"\xff")].concat());
    assert_eq!(read_request(&name).unwrap_err(), Malformed::Utf8 { number: 5 });
}

#[test]
fn unknown_groups_are_skipped() {
    // Field 10, a group with a number, a text and a group in it.
    let group = b"\x53\x08\x01\x12\x02hi\x5b\x5c\x54";
    let contents = read_request(&[&group[..], &request(&ids())].concat()).unwrap();
    assert_eq!(contents.spans.len(), 1);
}

#[test]
fn values_are_read_as_deep_as_other_readers_of_protobuf_do() {
    let nested = |levels: usize| {
        let value = (0..levels).fold(Vec::new(), |inner, _| message(5, &message(1, &inner)));
        let attribute = [message(1, b"deep"), message(2, &value)].concat();
        request(&[ids(), message(9, &attribute)].concat())
    };
    let is_ok = |levels| read_request(&nested(levels)).is_ok();
    for levels in [1, 40, 47, 48, 60] {
        assert_eq!(is_ok(levels), TracesData::decode(&*nested(levels)).is_ok(), "{levels} levels");
    }
    assert!(is_ok(40) && !is_ok(60));
    assert_eq!(read_request(&nested(1_000)).unwrap_err(), Malformed::Depth);
    let groups = [0x53].repeat(MAX_DEPTH as usize + 1);
    assert_eq!(read_request(&groups).unwrap_err(), Malformed::Depth);
}
