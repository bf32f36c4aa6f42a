//! Every file of the cases is accepted or refused as is expected of it.

#[path = "../../wire/tests/common/cases.rs"]
mod cases;
mod support;

use cases::{assert_same_spans, bytes, expectation, span_ids};
use serde_json::{Value as Json, json};
use stagetrace_collector::Protocol::{Grpc, HttpJson, HttpProtobuf};
use stagetrace_collector::{Collector, Spans};
use stagetrace_wire::span::deduplicate;
use support::{Answer, send};

#[tokio::test]
async fn every_file_of_the_index_is_accepted_or_refused_as_expected() {
    let collector = Collector::start().await.unwrap();
    let index = expectation("index.json");
    let mut delivered = 0;
    for (expected_name, files) in index.as_object().unwrap() {
        let files = files.as_array().unwrap().iter().map(|file| file.as_str().unwrap());
        // Jaeger's JSON is no OTLP; the rest of a torn file is none by itself.
        for file in files.filter(|file| !file.contains("jaeger") && !file.ends_with(".rest")) {
            let answers = deliver(&collector, file).await;
            check(expected_name, file, &answers, &collector.clear());
            delivered += 1;
        }
    }
    assert_eq!(delivered, 24);
}

/// Sends a file as its sender would: a document in one request, lines one by one.
async fn deliver(collector: &Collector, file: &str) -> Vec<Answer> {
    let content = bytes(file);
    if file.ends_with(".pb") {
        let over_grpc = send(collector, Grpc, "", &content).await.unwrap();
        assert_eq!(over_grpc.header("grpc-status"), Some("0"), "{file}");
        let over_grpc = collector.clear();
        let over_http = send(collector, HttpProtobuf, "", &content).await.unwrap();
        let same = format!("{over_grpc:?}") == format!("{:?}", collector.spans());
        assert!(same, "{file} over gRPC and HTTP, NaN included");
        return vec![over_http];
    }
    let requests: Vec<&[u8]> = match file {
        _ if file.ends_with(".jsonl") => content.split(|&byte| byte == b'\n').collect(),
        _ => vec![&content],
    };
    let (protocol, compression) =
        if file.ends_with(".gz") { (HttpProtobuf, "gzip") } else { (HttpJson, "") };
    let mut answers = Vec::new();
    for request in requests {
        answers.push(send(collector, protocol, compression, request).await.unwrap());
    }
    answers
}

fn check(expected_name: &str, file: &str, answers: &[Answer], spans: &Spans) {
    let expected = expectation(expected_name);
    let refused: Vec<usize> =
        (1..).zip(answers).filter(|it| it.1.status != 200).map(|it| it.0).collect();
    match expected_name {
        "lines.torn.expected.json" => {
            assert_eq!(span_ids(spans), expected["span_ids"]);
            assert_eq!(refused, [4], "{file}");
        }
        "lines.damaged.expected.json" => {
            let names: Json = spans.iter().map(|span| &*span.name).collect();
            assert_eq!(names, expected["names"]);
            assert_eq!(json!(refused), expected["damaged_lines"]);
            for line in refused {
                let answer = &answers[line - 1];
                assert_eq!(
                    (answer.status, answer.header("content-type")),
                    (400, Some("application/json"))
                );
                let status: Json = serde_json::from_slice(&answer.body).unwrap();
                assert_eq!(status["code"], 3, "{status}");
                assert!(!status["message"].as_str().unwrap().is_empty());
            }
        }
        "lines.invalid_ids.expected.json" => {
            assert_eq!(span_ids(spans), expected["accepted_span_ids"]);
            assert!(refused.is_empty());
            let partial: Json = serde_json::from_slice(&answers[0].body).unwrap();
            let partial = &partial["partialSuccess"];
            assert_eq!(partial["rejectedSpans"], expected["rejected"].to_string());
            assert_eq!(partial["errorMessage"], "`traceId` is no id: all zero");
        }
        "lines.retried_batch.expected.json" => {
            assert_eq!(expected["records"], spans.len());
            let mut unique = Vec::from(spans.clone());
            assert_eq!(expected["duplicates"], deduplicate(&mut unique));
            assert_eq!(expected["unique_spans"], unique.len());
        }
        "lines.no_final_newline.expected.json" => {
            let whole = expectation(expected["at_end_of_file"]["same_as"].as_str().unwrap());
            assert_same_spans(file, spans, &whole["spans"]);
        }
        "empty.expected.json" => {
            assert_eq!(expected["spans"], spans.len());
            assert!(refused.is_empty());
        }
        _ => {
            assert_same_spans(file, spans, &expected["spans"]);
            for answer in answers {
                let empty: &[u8] = if file.contains(".pb") { b"" } else { b"{}" };
                assert_eq!((answer.status, &*answer.body), (200, empty), "{file}");
            }
        }
    }
}
