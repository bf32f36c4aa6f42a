//! Every OTLP file of the cases reads to what is expected of it.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value as Json, json};
use stagetrace_wire::otlp::json::{
    Contents, Damage, LineReader, ReadOptions, SpanRefusal, read, read_document, read_lines,
};
use stagetrace_wire::otlp::protobuf::read_request;

#[path = "common/cases.rs"]
mod cases;

use cases::{assert_same_spans, bytes, expectation, folder, span_ids};

#[test]
fn every_file_of_the_index_reads_as_expected() {
    let mut read_files = BTreeSet::from(["index.json".to_owned()]);
    for (expected_name, files) in expectation("index.json").as_object().unwrap() {
        let files: Vec<&str> =
            files.as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
        let files: Vec<&str> = files.into_iter().filter(|file| is_otlp_json(file)).collect();
        if files.is_empty() {
            continue;
        }
        let expected = expectation(expected_name);
        for file in &files {
            check(expected_name, file, &expected);
        }
        read_files.insert(expected_name.clone());
        read_files.extend(files.into_iter().map(str::to_owned));
    }
    let present: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| is_otlp_json(file))
        .collect();
    assert_eq!(read_files, present, "files read and files present");
    assert!(present.len() >= 28, "only {} files", present.len());
}

#[test]
fn every_protobuf_of_the_index_reads_as_expected() {
    let mut read_files = 0;
    for (expected_name, files) in expectation("index.json").as_object().unwrap() {
        let files = files.as_array().unwrap().iter().map(|file| file.as_str().unwrap());
        for file in files.filter(|file| file.ends_with(".pb")) {
            let contents = read_request(&bytes(file)).unwrap();
            match expectation(expected_name)["spans"].as_u64() {
                Some(number) => assert_eq!(contents.spans.len() as u64, number),
                None => {
                    assert_same_spans(file, &contents.spans, &expectation(expected_name)["spans"])
                }
            }
            assert_undamaged(&contents);
            read_files += 1;
        }
    }
    let present = fs::read_dir(folder()).unwrap();
    let present = present.filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "pb")
    });
    assert_eq!((read_files, present.count()), (5, 5), "files read and files present");
}

/// Jaeger's JSON has another reader, and what is finite is there in protobuf only.
fn is_otlp_json(file: &str) -> bool {
    [".json", ".jsonl", ".rest"].iter().any(|end| file.ends_with(end))
        && !["jaeger", "finite"].iter().any(|part| file.contains(part))
}

fn check(expected_name: &str, file: &str, expected: &Json) {
    let contents = read(&bytes(file), &ReadOptions::default());
    match expected_name {
        "lines.torn.expected.json" => check_torn(expected),
        "lines.no_final_newline.expected.json" => check_without_final_newline(file, expected),
        "lines.damaged.expected.json" => check_damaged(&contents, expected),
        "lines.invalid_ids.expected.json" => check_invalid_ids(&contents, expected),
        "lines.retried_batch.expected.json" => check_retried(&contents, expected),
        "empty.expected.json" => {
            assert_eq!(expected["spans"], contents.spans.len());
            assert_undamaged(&contents);
            assert!(read_document(&bytes(file), &ReadOptions::default()).is_ok());
        }
        _ => {
            assert_same_spans(file, &contents.spans, &expected["spans"]);
            assert_undamaged(&contents);
            assert_eq!(contents.report.base64_ids > 0, file.contains("base64"), "{file}");
        }
    }
}

fn assert_undamaged(contents: &Contents) {
    let report = &contents.report;
    assert_eq!(report.damaged, []);
    assert_eq!(report.refused, []);
    assert_eq!((report.refused_links, report.incomplete_line, contents.duplicates), (0, None, 0));
    assert_eq!(report.spans, contents.spans.len() as u64);
}

fn check_torn(expected: &Json) {
    let (torn, rest) = (bytes("lines.torn.jsonl"), bytes("lines.torn.rest"));

    let at_once = read_lines(&torn, &ReadOptions::default());
    assert_eq!(span_ids(&at_once.spans), expected["span_ids"]);
    assert_eq!(at_once.report.incomplete_line, Some(4));
    assert_eq!(at_once.report.damaged, []);

    let mut tail = LineReader::new(ReadOptions::default());
    let mut spans = Vec::new();
    tail.feed(&torn, &mut spans);
    assert_eq!(span_ids(&spans), expected["span_ids"]);
    assert_eq!(expected["pending_bytes"], tail.pending_bytes());
    tail.feed(&rest, &mut spans);
    assert_eq!(tail.pending_bytes(), 0);
    let whole = expectation("lines.expected.json");
    assert_same_spans("lines.torn", &spans, &whole["spans"]);
    assert_eq!(tail.finish(&mut spans).incomplete_line, None);
    assert_eq!(spans.len(), 24);
}

fn check_without_final_newline(file: &str, expected: &Json) {
    let mut tail = LineReader::new(ReadOptions::default());
    let mut spans = Vec::new();
    tail.feed(&bytes(file), &mut spans);
    assert_eq!(expected["while_tailing"]["spans"], spans.len());
    assert_eq!(expected["while_tailing"]["pending_bytes"], tail.pending_bytes());
    let report = tail.finish(&mut spans);
    assert_eq!(report.incomplete_line, None);
    let whole = expectation(expected["at_end_of_file"]["same_as"].as_str().unwrap());
    assert_same_spans(file, &spans, &whole["spans"]);
}

fn check_damaged(contents: &Contents, expected: &Json) {
    let names: Vec<&str> = contents.spans.iter().map(|span| &*span.name).collect();
    assert_eq!(json!(names), expected["names"]);
    let lines: Vec<u64> = contents.report.damaged.iter().map(|damaged| damaged.line).collect();
    assert_eq!(json!(lines), expected["damaged_lines"]);
    assert_eq!(contents.report.damaged_lines, lines.len() as u64);
    let kinds: Vec<&str> =
        contents.report.damaged.iter().map(|damaged| kind(&damaged.damage)).collect();
    assert_eq!(kinds, ["no object", "json", "no object", "no object", "type", "utf-8", "json"]);
    assert_eq!(
        contents.report.damaged[4].to_string(),
        "line 7: `resourceSpans` has a value of another type"
    );
}

fn kind(damage: &Damage) -> &'static str {
    match damage {
        Damage::TooLong { .. } => "too long",
        Damage::Utf8 { .. } => "utf-8",
        Damage::NotAnObject => "no object",
        Damage::Json { .. } => "json",
        Damage::Type { .. } => "type",
    }
}

fn check_invalid_ids(contents: &Contents, expected: &Json) {
    assert_eq!(span_ids(&contents.spans), expected["accepted_span_ids"]);
    assert_eq!(expected["rejected"], contents.report.refused_spans);
    assert_eq!(contents.report.damaged, []);
    let reasons: Vec<String> = contents.report.refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "line 1: `traceId` is no id: all zero",
            "line 1: `spanId` is no id: all zero",
            "line 1: `traceId` is no id: expected 32 hex digits, found 3 bytes",
            "line 1: `spanId` is no id: no hex digit at byte 0",
            "line 1: `traceId` is missing",
        ]
    );
}

fn check_retried(contents: &Contents, expected: &Json) {
    assert_eq!(expected["records"], contents.report.spans);
    assert_eq!(expected["unique_spans"], contents.spans.len());
    assert_eq!(expected["duplicates"], contents.duplicates);
}

#[test]
fn strict_reading_refuses_base64_ids_by_name() {
    let options = ReadOptions { strict: true, ..ReadOptions::default() };
    let contents = read(&bytes("all_values.base64_ids.json"), &options);
    assert!(contents.spans.is_empty());
    assert_eq!(contents.report.refused_spans, 7);
    for refused in &contents.report.refused {
        assert!(matches!(refused.refusal, SpanRefusal::Base64Id { .. }), "{refused}");
    }
    let text = contents.report.refused[3].to_string();
    assert_eq!(text, "line 1: `traceId` is base64, but ids in OTLP/JSON are hex");
}

#[test]
fn a_document_and_lines_are_told_apart() {
    let options = ReadOptions::default();
    let pretty = bytes("all_values.pretty.json");
    assert_eq!(read_document(&pretty, &options).unwrap().spans.len(), 7);
    assert!(read_lines(&pretty, &options).spans.is_empty());
    let error = read_document(&bytes("lines.jsonl"), &options).unwrap_err();
    assert_eq!((error.line, kind(&error.damage)), (2, "json"));
    assert_eq!(read(&bytes("lines.jsonl"), &options).spans.len(), 24);
}

#[test]
fn tailing_byte_by_byte_gives_the_same_spans() {
    let file = bytes("lines.damaged.jsonl");
    let mut tail = LineReader::new(ReadOptions::default());
    let mut spans = Vec::new();
    for byte in file.chunks(1) {
        tail.feed(byte, &mut spans);
    }
    let report = tail.finish(&mut spans);
    let at_once = read_lines(&file, &ReadOptions::default());
    assert_eq!(spans, at_once.spans);
    assert_eq!(report, at_once.report);
}
