//! Files of any collector, and Jaeger's answers: what the store gives back is what the contract's reader
//! reads of them, whichever of the two ways a line was read.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use stagetrace_wire::otlp::json::{ReadOptions, read};
use stagetrace_wire::span::{Span, Value};

mod support;

use support::{View, cases};

fn otlp_files() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/cases/otlp");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_data = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_json = name.ends_with(".json") || name.ends_with(".jsonl");
        is_json && !name.contains("expected") && name != "index.json"
    };
    let mut files: Vec<_> = entries.filter(is_data).collect();
    files.sort();
    assert!(files.len() >= 16, "only {} files", files.len());
    files
}

/// As text, since a NaN equals nothing, sorted.
fn texts(spans: impl IntoIterator<Item = Span>) -> Vec<String> {
    let mut texts: Vec<_> = spans.into_iter().map(|span| format!("{span:?}")).collect();
    texts.sort();
    texts
}

#[test]
fn every_otlp_file_gives_the_spans_that_the_contract_reads_of_it() {
    for file in otlp_files() {
        let contents = read(&fs::read(&file).unwrap(), &ReadOptions::default());
        let view = View::of(&[&file]);
        assert_eq!(view.spans(), texts(contents.spans), "{}", file.display());
        let report = &view.report().files[0];
        assert_eq!(report.damaged_lines, contents.report.damaged_lines, "{}", file.display());
        assert_eq!(report.refused_spans, contents.report.refused_spans, "{}", file.display());
        assert_eq!(report.torn_line, contents.report.incomplete_line, "{}", file.display());
        let damaged: Vec<u64> =
            contents.report.damaged.iter().map(|damaged| damaged.line).collect();
        let found: Vec<u64> = report.damaged.iter().map(|(line, _)| *line).collect();
        assert_eq!(found, damaged, "{}", file.display());
        assert_eq!(view.store.stats().duplicates, contents.duplicates, "{}", file.display());
    }
}

#[test]
fn every_rollout_file_gives_the_spans_that_the_contract_reads_of_it() {
    for run in ["traces_only", "agent", "live"] {
        let file = cases("xtuner").join(run).join("traces.jsonl");
        let contents = read(&fs::read(&file).unwrap(), &ReadOptions::default());
        assert_eq!(View::of(&[&file]).spans(), texts(contents.spans), "{}", file.display());
    }
}

#[test]
fn an_answer_of_jaeger_gives_the_spans_that_it_was_made_of() {
    let expected = json_of("all_values.jaeger.expected.json");
    let view = View::of(&[cases("otlp/all_values.jaeger.json")]);
    let store = &view.store;
    assert_eq!(store.stats().traces as u64, expected["traces"].as_u64().unwrap());
    let spans = store.traces().flat_map(|trace| store.spans_of(trace));
    let spans: BTreeMap<String, Json> = spans
        .map(|number| store.span(number))
        .map(|span| (span.span_id.to_string(), shown(&span)))
        .collect();
    let all = expected["spans"].as_array().unwrap();
    assert_eq!(spans.len(), all.len());
    for expected in all {
        let found = &spans[expected["span_id"].as_str().unwrap()];
        for (field, value) in expected.as_object().unwrap() {
            if field == "scalar_attributes" {
                check_attributes(&found[field], value);
            } else {
                assert_eq!(&found[field], value, "`{field}` of {}", expected["name"]);
            }
        }
    }
}

#[test]
fn a_short_trace_id_of_jaeger_is_padded() {
    let expected = json_of("jaeger_short_trace_id.expected.json");
    let view = View::of(&[cases("otlp/jaeger_short_trace_id.json")]);
    let sample = view.one();
    assert_eq!(view.store.trace_id(sample.trace).to_string(), expected["trace_id"]);
    assert_eq!(view.store.len_of(sample.trace) as u64, expected["spans"].as_u64().unwrap());
    assert_eq!(sample.status.text(&view.store), "completed");
}

#[test]
fn other_answers_of_jaeger_hold_no_spans_and_no_damage() {
    for file in ["jaeger_not_found.json", "jaeger_services.json"] {
        let view = View::of(&[cases("otlp").join(file)]);
        assert_eq!(view.store.stats().spans, 0, "{file}");
    }
}

fn json_of(file: &str) -> Json {
    serde_json::from_slice(&fs::read(cases("otlp").join(file)).unwrap()).unwrap()
}

fn shown(span: &Span) -> Json {
    let events = span.events.iter().map(|event| {
        json!({
            "name": event.name,
            "time_unix_us": (event.time_unix_nano / 1000).to_string(),
            "attributes": event.attributes.len(),
        })
    });
    let links = span.links.iter().map(|link| [link.trace_id.to_string(), link.span_id.to_string()]);
    json!({
        "trace_id": span.trace_id.to_string(),
        "span_id": span.span_id.to_string(),
        "parent_span_id": span.parent_span_id.map(|id| id.to_string()),
        "name": span.name,
        "kind": span.kind.name(),
        "service": span.resource.service_name(),
        "start_unix_us": (span.start_unix_nano / 1000).to_string(),
        "duration_us": (span.duration_nano().unwrap() / 1000).to_string(),
        "status": {"code": span.status.code.name(), "message": span.status.message},
        "trace_state": span.trace_state,
        "scope_name": span.scope.name,
        "links": links.collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
        "scalar_attributes": span.attributes.iter().filter_map(scalar).collect::<Vec<_>>(),
    })
}

fn scalar((key, value): &(String, Value)) -> Option<Json> {
    let value = match value {
        Value::Str(text) => json!({"string": text}),
        Value::Bool(value) => json!({"bool": value}),
        Value::I64(value) => json!({"int": value.to_string()}),
        Value::F64(value) => json!({"bits": format!("{:016x}", value.to_bits())}),
        Value::Bytes(bytes) => {
            use base64::Engine as _;
            json!({"bytes": base64::engine::general_purpose::STANDARD.encode(bytes)})
        }
        _ => return None,
    };
    Some(json!([key, value]))
}

/// Those that Jaeger prints as text, such as arrays, may be there as well.
fn check_attributes(found: &Json, expected: &Json) {
    let found: BTreeMap<&str, &Json> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair[0].as_str().unwrap(), &pair[1]))
        .collect();
    for pair in expected.as_array().unwrap() {
        let (key, value) = (pair[0].as_str().unwrap(), &pair[1]);
        let mut value = value.clone();
        if let Some(members) = value.as_object_mut() {
            members.remove("double");
        }
        assert_eq!(*found[key], value, "{key}");
    }
}
