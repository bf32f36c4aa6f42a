//! The comparison runs, and its result can be read by others. Nothing here looks at times: tests run beside others.

use serde_json::Value;
use std::process::{Command, Output};

fn benches(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_benches")).args(arguments).output().expect("it can be started")
}

/// One row for each peer that the case is about.
fn rows(case: &str) -> Vec<Value> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [json, svg] = ["result.json", "result.svg"].map(|name| directory.path().join(name));
    let [json_path, svg_path] = [&json, &svg].map(|path| path.to_str().expect("a plain path"));
    let options = ["rivals", "--quick", "--case", case, "--json", json_path, "--svg", svg_path];
    let output = benches(&options);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = std::fs::read_to_string(json).expect("it was written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert!(result["f_ns"].as_f64().is_some_and(|f| f > 0.0), "{text}");
    let picture = std::fs::read_to_string(svg).expect("it was written");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    result["rows"].as_array().expect("rows").clone()
}

#[test]
fn every_peer_exports_all_of_a_loop_and_is_said_to_have_cost_something() {
    let rows = rows("span/100");
    let peers: Vec<&str> = rows.iter().filter_map(|row| row["peer"].as_str()).collect();
    let expected = [
        "stagetrace",
        "fastrace",
        "opentelemetry",
        "tracing-opentelemetry",
        "tracing-opentelemetry, lean",
    ];
    assert_eq!(peers, expected);
    for row in rows {
        assert_eq!(row["exported"], 1.0, "{row}");
        for figure in ["hot_ns", "hot_min_ns", "hot_f", "total_cpu_ns", "allocs", "allocs_total"] {
            assert!(row[figure].as_f64().is_some_and(|figure| figure >= 0.0), "{figure}: {row}");
        }
    }
}

#[test]
fn requests_that_cross_a_channel_arrive_with_all_twelve_spans() {
    for row in rows("channel/12") {
        let exported = if row["peer"] == "no tracing" { Value::Null } else { 1.0.into() };
        assert_eq!(row["exported"], exported, "{row}");
    }
}

#[test]
fn what_is_not_recorded_is_not_exported() {
    // The child process itself fails if a span arrives.
    let rows = rows("not-sampled/100");
    assert!(rows.iter().all(|row| row["exported"].is_null() && row["hot_ns"].is_f64()), "{rows:?}");
}

#[test]
fn a_case_that_there_is_not_is_refused() {
    let output = benches(&["rivals", "--case", "nothing"]);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("no case \"nothing\"; there are span/10, span/100,"), "{errors}");
}
