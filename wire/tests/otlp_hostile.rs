//! Input that nobody should send: nothing of it crashes the reader, and its neighbours are read.

use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;
use stagetrace_wire::otlp::json::{
    Contents, Damage, LineReader, ReadOptions, Report, SpanRefusal, read, read_document, read_lines,
};
use stagetrace_wire::span::Span;

const GOOD: &str = concat!(
    r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","#,
    r#""spanId":"00000000000000a1","name":"good"}]}]}]}"#
);

/// A line whose span has these members in place of its name.
fn line_with(members: &str) -> String {
    GOOD.replace(r#""name":"good""#, members)
}

fn lines(text: &str) -> Contents {
    read_lines(text.as_bytes(), &ReadOptions::default())
}

fn refusals(report: &Report) -> Vec<SpanRefusal> {
    report.refused.iter().map(|refused| refused.refusal).collect()
}

#[test]
fn nesting_without_end_is_a_damaged_line() {
    let arrays = |levels| {
        let (open, close) = (r#"{"arrayValue":{"values":["#, "]}}");
        let value = format!("{}{}", open.repeat(levels), close.repeat(levels));
        line_with(&format!(r#""attributes":[{{"key":"deep","value":{value}}}]"#))
    };
    let contents = lines(&format!("{}\n{}\n{GOOD}\n", arrays(10), arrays(100_000)));
    assert_eq!(contents.report.spans, 2);
    assert!(matches!(contents.report.damaged[..], [ref line] if line.line == 2));
}

#[test]
fn nesting_without_end_in_an_unknown_field_does_no_harm() {
    let bomb = format!(r#"{}{}"#, "[".repeat(100_000), "]".repeat(100_000));
    let contents = lines(&format!("{{\"unknown\":{bomb}}}\n{GOOD}"));
    assert_eq!((contents.spans.len(), contents.report.incomplete_line), (1, None));
    let unfinished = lines(&"[{\"a\":".repeat(100_000));
    assert_eq!(unfinished.report.incomplete_line, Some(1));
}

#[test]
fn a_line_that_is_too_long_is_skipped_without_being_held() {
    let options = ReadOptions { max_bytes: 1000, ..ReadOptions::default() };
    let mut reader = LineReader::new(options);
    let mut spans = Vec::new();
    for _ in 0..100 {
        reader.feed(&[b'x'; 100], &mut spans);
    }
    assert_eq!(reader.pending_bytes(), 10_000);
    reader.feed(format!("x\n{GOOD}\n{}\n{GOOD}", "y".repeat(1001)).as_bytes(), &mut spans);
    let report = reader.finish(&mut spans);
    assert_eq!((spans.len(), report.damaged_lines), (2, 2));
    for (damaged, line) in report.damaged.iter().zip([1, 3]) {
        assert_eq!((damaged.line, &damaged.damage), (line, &Damage::TooLong { limit: 1000 }));
    }
    let long = read_document(&[b' '; 1001], &options);
    assert!(long.is_ok_and(|contents| contents.spans.is_empty()));
    let padded = format!("{{{}}}", " ".repeat(1000));
    let error = read_document(padded.as_bytes(), &options).unwrap_err();
    assert_eq!(error.damage, Damage::TooLong { limit: 1000 });
}

#[test]
fn a_value_of_another_type_costs_its_span_only() {
    let bad = [
        (r#""name":5"#, "name"),
        (r#""kind":{}"#, "kind"),
        (r#""startTimeUnixNano":-1"#, "startTimeUnixNano"),
        (r#""endTimeUnixNano":"18446744073709551616""#, "endTimeUnixNano"),
        (r#""flags":4294967296"#, "flags"),
        (r#""droppedLinksCount":1.5"#, "droppedLinksCount"),
        (r#""attributes":"none""#, "attributes"),
        (r#""attributes":[[]]"#, "attributes"),
        (r#""attributes":[{"key":"a","value":{"intValue":"x"}}]"#, "intValue"),
        (r#""attributes":[{"key":"a","value":{"boolValue":0}}]"#, "boolValue"),
        (r#""attributes":[{"key":"a","value":{"bytesValue":"?"}}]"#, "bytesValue"),
        (r#""attributes":[{"key":"a","value":{"kvlistValue":[]}}]"#, "kvlistValue"),
        (r#""events":[{"timeUnixNano":[]}]"#, "timeUnixNano"),
        (r#""events":{}"#, "events"),
        (r#""status":"ok""#, "status"),
        (r#""traceState":["a"]"#, "traceState"),
        (r#""parentSpanId":7"#, "parentSpanId"),
    ];
    for (members, field) in bad {
        let bad = line_with(members);
        let neighbour = GOOD.split_once("spans\":[").unwrap().1.replace("a1", "a2");
        let neighbours = format!("{},{neighbour}", bad.strip_suffix("]}]}]}").unwrap());
        for (text, spans) in [(&bad, 0), (&neighbours, 1)] {
            let contents = lines(text);
            assert_eq!(contents.spans.len(), spans, "{text}");
            assert_eq!(refusals(&contents.report), [SpanRefusal::Type { field }], "{text}");
        }
    }
}

#[test]
fn a_value_of_another_type_above_the_spans_costs_the_line() {
    let bad = [
        (r#"{"resourceSpans":{}}"#, "resourceSpans"),
        (r#"{"resourceSpans":[1]}"#, "resourceSpans"),
        (r#"{"resourceSpans":[{"resource":[]}]}"#, "resource"),
        (r#"{"resourceSpans":[{"schemaUrl":1}]}"#, "schemaUrl"),
        (r#"{"resourceSpans":[{"scopeSpans":[{"scope":{"name":[]}}]}]}"#, "name"),
        (r#"{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}"#, "spans"),
    ];
    for (text, field) in bad {
        let contents = lines(&format!("{text}\n{GOOD}"));
        assert_eq!(contents.spans.len(), 1, "{text}");
        let damage = &contents.report.damaged[0].damage;
        assert_eq!(*damage, Damage::Type { field }, "{text}");
    }
}

#[test]
fn what_many_senders_write_is_read() {
    let span = |members: &str| lines(&line_with(members)).spans.remove(0);
    assert_eq!(span(r#""startTimeUnixNano":1.5e3"#).start_unix_nano, 1500);
    assert_eq!(span(r#""endTimeUnixNano":"1e3""#).end_unix_nano, 1000);
    assert_eq!(span(r#""parentSpanId":"0000000000000000""#).parent_span_id, None);
    assert_eq!(span(r#""kind":"server","name":null"#).kind.name(), "server");
    assert_eq!(span(r#""kind":"SPAN_KIND_FUTURE""#).kind.name(), "unspecified");
    assert_eq!(span(r#""kind":99,"status":{"code":"2"}"#).status.code.name(), "error");
    let double = |text: &str| {
        let members = format!(r#""attributes":[{{"key":"d","value":{{"doubleValue":{text}}}}}]"#);
        span(&members).attribute("d").unwrap().as_f64()
    };
    assert_eq!(double(r#""+Inf""#), Some(f64::INFINITY));
    assert_eq!(double(r#""-Infinity""#), Some(f64::NEG_INFINITY));
    assert_eq!(double(r#""1.5""#), Some(1.5));
    assert_eq!(double("3"), Some(3.0));
    let bytes = |text: &str| {
        let members = format!(r#""attributes":[{{"key":"b","value":{{"bytesValue":"{text}"}}}}]"#);
        span(&members).attributes.remove(0).1
    };
    assert_eq!(bytes("-_8="), bytes("+/8"));
}

#[test]
fn a_link_to_nowhere_is_left_out_and_counted() {
    let link = r#"{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00000000000000a2"}"#;
    let members = format!(r#""links":[{{}},{link},{{"traceId":"0","spanId":"00000000000000a2"}}]"#);
    let contents = lines(&line_with(&members));
    assert_eq!(contents.spans[0].links.len(), 1);
    assert_eq!((contents.report.refused_links, contents.report.refused_spans), (2, 0));
}

#[test]
fn complaints_are_bounded_but_counted() {
    let contents = lines(&"damage\n".repeat(1000));
    assert_eq!(contents.report.damaged_lines, 1000);
    assert_eq!(contents.report.damaged.len(), Report::KEPT);
    let refused = lines(&format!("{}\n", line_with(r#""name":1"#)).repeat(1000));
    assert_eq!(refused.report.refused_spans, 1000);
    assert_eq!(refused.report.refused.len(), Report::KEPT);
}

/// A change to a file.
#[derive(Clone, Debug)]
enum Edit {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
}

const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b"null",
    b"\\u0000",
    b"\xff",
    b"\n",
    b"-1e999",
    b"\xef\xbb\xbf",
];

fn edit() -> impl Strategy<Value = Edit> {
    let token = prop::sample::select(TOKENS);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (any::<Index>(), token).prop_map(|(at, token)| Edit::Insert(at, token.to_vec())),
        (any::<Index>(), 1usize..40).prop_map(|(at, len)| Edit::Delete(at, len)),
        (any::<Index>(), 1usize..400).prop_map(|(at, len)| Edit::Repeat(at, len)),
        any::<Index>().prop_map(Edit::Cut),
    ]
}

fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
    let place = |at: &Index| at.index(bytes.len().max(1)).min(bytes.len());
    match edit {
        Edit::Replace(at, byte) => {
            let at = place(at);
            bytes.splice(at..(at + 1).min(bytes.len()), [*byte]);
        }
        Edit::Insert(at, token) => {
            let at = place(at);
            bytes.splice(at..at, token.iter().copied());
        }
        Edit::Delete(at, len) => {
            let at = place(at);
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Edit::Repeat(at, len) => {
            let at = place(at);
            let part = bytes[at..(at + len).min(bytes.len())].to_vec();
            bytes.splice(at..at, part);
        }
        Edit::Cut(at) => {
            let at = place(at);
            bytes.truncate(at);
        }
    }
}

fn case_files() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/otlp");
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names.iter().map(|name| fs::read(name).unwrap()).collect()
}

/// Reads `bytes` in pieces of these sizes, over and over.
fn tail(bytes: &[u8], sizes: &[usize], options: ReadOptions) -> (Vec<Span>, Report) {
    let mut reader = LineReader::new(options);
    let (mut spans, mut rest) = (Vec::new(), bytes);
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        reader.feed(piece, &mut spans);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let report = reader.finish(&mut spans);
    (spans, report)
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = read(&bytes, &ReadOptions::default());
        let _ = read_document(&bytes, &ReadOptions::default());
    }

    #[test]
    fn changed_files_never_panic_and_read_the_same_in_pieces(
        file in prop::sample::select(case_files()),
        edits in prop::collection::vec(edit(), 1..6),
        sizes in prop::collection::vec(1usize..3000, 1..8),
        max_bytes in prop_oneof![Just(64 << 20), 100usize..4000],
    ) {
        let mut bytes = file;
        for edit in &edits {
            apply(edit, &mut bytes);
        }
        let options = ReadOptions { strict: false, max_bytes };
        let _ = read(&bytes, &options);
        let (spans, report) = tail(&bytes, &[usize::MAX], options);
        let in_pieces = tail(&bytes, &sizes, options);
        prop_assert_eq!(&report, &in_pieces.1);
        prop_assert_eq!(format!("{spans:?}"), format!("{:?}", in_pieces.0), "spans, NaN included");
    }
}
