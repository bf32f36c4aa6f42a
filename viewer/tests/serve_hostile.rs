//! Answers about what no script or browser can take as it is: numbers that it would round, and more stages
//! and errors than it can draw.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use support::{append, serve::Viewer};

mod support;

/// A span of its own sample, with these attributes in OTLP/JSON.
fn sample(trace: u32, name: &str, attributes: &[(&str, Json)], error: Option<&str>) -> String {
    let attributes: Vec<_> =
        attributes.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let status = error.map_or(json!({}), |message| json!({ "code": 2, "message": message }));
    let span = json!({
        "traceId": format!("{trace:032x}"), "spanId": "0000000000000001", "name": name,
        "startTimeUnixNano": "1000", "endTimeUnixNano": (2000 + trace).to_string(),
        "attributes": attributes, "status": status,
    });
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] }).to_string() + "\n"
}

/// Every whole number of an answer that a script would round.
fn rounded(answer: &Json) -> Vec<String> {
    match answer {
        Json::Array(all) => all.iter().flat_map(rounded).collect(),
        Json::Object(all) => all.values().flat_map(rounded).collect(),
        Json::Number(number) if !number.is_f64() => {
            let is_exact = number.as_i64().is_some_and(|value| value.unsigned_abs() < 1 << 53);
            if is_exact { Vec::new() } else { vec![number.to_string()] }
        }
        _ => Vec::new(),
    }
}

#[test]
fn ids_that_a_script_would_round_are_texts_by_which_they_are_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let ids = [(1 << 53) + 1, i64::MAX, i64::MIN, (1 << 53) - 1, 7];
    for (trace, id) in (1..).zip(ids) {
        let int = |value: i64| json!({ "intValue": value.to_string() });
        let attributes = [
            ("xtuner.rollout_id", int(id)),
            ("xtuner.group_id", int(id)),
            ("xtuner.producer_future_step", int(id)),
            ("xtuner.session_id", int(id)),
        ];
        append(&dir.path().join("traces.jsonl"), sample(trace, "run", &attributes, None));
    }
    let viewer = Viewer::start(&["--now", "9000", dir.path().to_str().unwrap()]);
    let rows = viewer.ask("/api/samples?sort=start");
    for (trace, id) in (1..).zip(ids) {
        let row = rows["rows"].as_array().unwrap().iter();
        let row = row.clone().find(|row| row["trace_id"] == format!("{trace:032x}")).unwrap();
        let expected = if id.unsigned_abs() < 1 << 53 { json!(id) } else { json!(id.to_string()) };
        for field in ["id", "group_id", "step", "session"] {
            assert_eq!(row[field], expected, "{field}");
        }
        for path in [
            "/api/state".to_owned(),
            "/api/steps".to_owned(),
            format!("/api/sample?trace={trace:032x}&sample={id}"),
            format!("/api/group?group={id}&step={id}"),
            format!("/api/step?step={id}"),
            format!("/api/overview?step={id}"),
            format!("/api/compare?a=step:{id}&b=all"),
        ] {
            assert_eq!(rounded(&viewer.ask(&path)), [] as [String; 0], "{path}");
        }
    }
}

#[test]
fn a_page_lists_some_of_thousands_of_stages_names_and_errors_and_says_how_many_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    let text = |value: &str| json!({ "stringValue": value });
    for at in 0..3000 {
        let (stage, name) = (text(&format!("stage {at}")), format!("name {at}"));
        let error = if at < 5 { "the same".to_owned() } else { format!("error {at}") };
        lines.push_str(&sample(2 * at + 1, "x", &[("xtuner.stage", stage)], Some(&error)));
        let all = [("xtuner.stage", text("all"))];
        write!(lines, "{}", sample(2 * at + 2, &name, &all, Some(&error))).unwrap();
    }
    append(&dir.path().join("traces.jsonl"), lines);
    let viewer = Viewer::start(&["--now", "9000", dir.path().to_str().unwrap()]);
    let overview = viewer.ask("/api/overview");
    assert_eq!(overview["ended_stages"], 3001);
    let stages = overview["summary"]["stages"].as_array().unwrap();
    assert!((50..=80).contains(&stages.len()), "{}", stages.len());
    assert_eq!(stages[0]["stage"], "all", "most time was spent in it");
    let errors: Vec<_> =
        stages.iter().flat_map(|stage| stage["errors"].as_array().unwrap()).collect();
    assert_eq!(errors.len(), 30);
    assert!(errors.iter().any(|error| error["samples"] == 5), "the most frequent one is there");
    assert_eq!(stages[0]["error_samples"], 3000, "all are counted");
    let one = viewer.ask("/api/stage?stage=all");
    assert_eq!(one["row"]["errors"].as_array().unwrap().len(), 100);
    assert_eq!(one["row"]["raw_spans"].as_object().unwrap().len(), 100);
    assert_eq!(one["row"]["span_count"], 3000);
}
