//! Two runs are compared stage by stage, and what is not proven is not claimed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

mod support;

use support::{cases, line};

fn diff(a: &Path, b: &Path, arguments: &[&str]) -> String {
    let viewer = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
        .arg("diff")
        .args([a, b])
        .args(arguments)
        .output()
        .unwrap();
    assert!(viewer.status.success(), "{}", String::from_utf8_lossy(&viewer.stderr));
    String::from_utf8(viewer.stdout).unwrap()
}

fn json_of(a: &Path, b: &Path) -> Json {
    serde_json::from_str(&diff(a, b, &["--json"])).unwrap()
}

/// A run of requests with one span each: stage, and milliseconds of each.
fn run(stages: &[(&str, Vec<u64>)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut trace = 0;
    let mut lines = String::new();
    for (stage, durations) in stages {
        for ms in durations {
            trace += 1;
            lines += &line(trace, 1, 0, stage, [1, 1 + ms * 1_000_000]);
        }
    }
    fs::write(directory.path().join("traces.jsonl"), lines).unwrap();
    directory
}

fn verdicts(comparison: &Json) -> Vec<(String, String)> {
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    let stages = comparison["stages"].as_array().unwrap();
    stages.iter().map(|stage| (text(&stage["stage"]), text(&stage["verdict"]))).collect()
}

/// Milliseconds around a middle.
fn around(middle: u64, count: u64) -> Vec<u64> {
    (0..count).map(|at| middle + at * 8 % 21).collect()
}

#[test]
fn a_stage_is_slower_or_faster_only_where_that_is_proven() {
    let a = run(&[
        ("a slower", around(100, 50)),
        ("b faster", around(100, 50)),
        ("c same", around(100, 50)),
        ("d few", around(100, 7)),
        ("e gone", around(100, 50)),
        ("g trifle", vec![1_000_000; 500]),
        ("h spread", vec![10, 20, 400, 80, 1600, 320, 640, 90, 30, 200]),
    ]);
    let b = run(&[
        ("a slower", around(110, 40)),
        ("b faster", around(90, 60)),
        ("c same", around(100, 30)),
        ("d few", around(500, 50)),
        ("f new", around(100, 50)),
        ("g trifle", vec![1_000_001; 500]),
        ("h spread", vec![12, 31, 500, 75, 1500, 420, 640, 85, 40, 300]),
    ]);
    let expected = [
        ("a slower", "slower"),
        ("b faster", "faster"),
        ("c same", "same"),
        ("d few", "too_few"),
        ("e gone", "only_in_a"),
        ("f new", "only_in_b"),
        ("g trifle", "same"),
        ("h spread", "same"),
    ];
    let comparison = json_of(a.path(), b.path());
    let expected = expected.map(|(stage, verdict)| (stage.to_owned(), verdict.to_owned()));
    assert_eq!(verdicts(&comparison), expected);
    let text = diff(a.path(), b.path(), &[]);
    for words in ["a slower  ", "  slower  ", "+9.1 %", "only in A", "too few", "50 → 40"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_json_is_as_it_is_specified() {
    let a = run(&[("one", (1..=10).collect())]);
    let b = run(&[("one", (11..=20).collect())]);
    let side = |from: u64| {
        let ms = |at: u64| format!("{}", (from + at) * 1_000_000);
        json!({
            "span_count": 10, "mean_ns": format!("{}", from * 1_000_000 + 5_500_000),
            "p50_ns": ms(5), "p90_ns": ms(9), "p99_ns": ms(10), "max_ns": ms(10),
            "error_samples": 0
        })
    };
    let mut comparison = json_of(a.path(), b.path());
    let stage = &mut comparison["stages"][0];
    // scipy.stats.mannwhitneyu says the same.
    let p = stage["p_value"].take().as_f64().unwrap();
    assert!((p - 0.00018267179110955002).abs() < 1e-12, "{p}");
    let bounds: Vec<i64> = stage["interval_ns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bound| bound.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(bounds[0] + bounds[1], 20_000_000, "it lies around the difference");
    stage["interval_ns"].take();
    let run = |_| {
        json!({
            "run_ids": [], "services": [], "samples": 10, "statuses": {"completed": 10},
            "finished_spans": 10
        })
    };
    let expected = json!({
        "schema": 1, "confidence": 0.95, "a": run(0), "b": run(0),
        "stages": [{
            "stage": "one", "verdict": "slower", "a": side(0), "b": side(10),
            "difference_ns": "10000000", "interval_ns": null, "superiority": 1.0,
            "p_value": null, "errors": []
        }]
    });
    assert_eq!(comparison, expected);
}

#[test]
fn a_run_does_not_differ_from_itself_and_the_answer_is_always_the_same() {
    let run = cases("xtuner").join("live");
    let comparison = json_of(&run, &run);
    assert!(verdicts(&comparison).len() > 3);
    for (stage, verdict) in verdicts(&comparison) {
        assert!(matches!(&*verdict, "same" | "too_few"), "{stage}: {verdict}");
    }
    for stage in comparison["stages"].as_array().unwrap() {
        assert_eq!((&stage["a"], &stage["difference_ns"]), (&stage["b"], &json!("0")));
        for error in stage["errors"].as_array().unwrap() {
            assert_eq!(error["a"], error["b"]);
        }
    }
    let other = cases("xtuner").join("traces_only");
    assert_eq!(diff(&run, &other, &["--json"]), diff(&run, &other, &["--json"]));
}
