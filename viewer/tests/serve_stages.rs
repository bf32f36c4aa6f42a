//! The page of stages, by real requests: those that could be there beside those that are, and one of them.

use std::fs::{self, File};

use serde_json::{Value as Json, json};
use stagetrace_wire::recording::layout::slot;

#[path = "../../wire/tests/handmade/mod.rs"]
mod handmade;
mod support;

use handmade::{EPOCH, Handmade, Record, STEM, site};
use support::serve::Viewer;
use support::{append, cases, line};

fn live() -> (Viewer, Json) {
    let folder = cases("xtuner/live");
    let expected = fs::read_to_string(folder.join("expected.json")).expect("the case is there");
    let expected: Json = serde_json::from_str(&expected).expect("it is JSON");
    let now = expected["now_unix_nano"].as_str().expect("it says when it is asked");
    (Viewer::start(&["--now", now, folder.to_str().expect("it is UTF-8")]), expected)
}

#[test]
fn the_stages_have_the_numbers_of_the_summary() {
    let (viewer, expected) = live();
    for (step, expected) in [("all", &expected["all"]), ("21", &expected["by_step"]["21"])] {
        let answer = viewer.ask(&format!("/api/stages?step={step}"));
        let stages = answer["stages"].as_array().expect("a list");
        let expected = expected["stages"].as_array().expect("a list");
        assert_eq!(stages.len(), expected.len());
        for (entry, expected) in stages.iter().zip(expected) {
            assert_eq!(entry["row"]["p50_ns"], expected["p50_ns"], "step {step}");
            let bars = entry["spread"]["bars"].as_array().expect("a list");
            let spans: u64 = bars.iter().filter_map(Json::as_u64).sum();
            assert_eq!(Some(spans), expected["span_count"].as_u64(), "each span is in one bar");
        }
    }
}

#[test]
fn a_declared_stage_that_was_never_executed_stands_beside_those_that_were() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let declared = |name: &str, level: u8, within: &str| {
        format!(
            r#"{{"stage":{{"set":"DiffStage","name":"{name}","level":{level},"within":{within}}}}}"#
        )
    };
    let entries = [
        declared("forward", 1, "null"),
        declared("denoise", 3, "\"forward\""),
        site(1, "forward", &[]),
        site(2, "other", &[]),
    ];
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let root = Record { flags: slot::ROOT, root: 1, ..Record::open(1) };
    let misplaced = Record { parent: 1, site: 2, flags: slot::MISPLACED, ..Record::ended(2) };
    let made = Handmade::new(3).table(1, &entries).chunk(2, &[root.words(), misplaced.words()]);
    let path = directory.path().join(format!("{STEM}.recording"));
    fs::write(&path, made.bytes()).expect("it is written");
    let lock = File::open(&path).expect("it is there");
    lock.lock().expect("nobody has it");
    let viewer = Viewer::start(&[directory.path().to_str().expect("it is UTF-8")]);
    let answer = viewer.ask("/api/stages");
    assert_eq!((&answer["is_declared"], &answer["count"]), (&json!(true), &json!(3)));
    let [forward, denoise, other] = &answer["stages"].as_array().expect("a list")[..] else {
        panic!("{answer}")
    };
    assert_eq!(
        (&forward["stage"], &forward["level"], &forward["open"]),
        (&json!("forward"), &json!(1), &json!(1))
    );
    assert_eq!((&denoise["stage"], &denoise["within"]), (&json!("denoise"), &json!("forward")));
    assert_eq!(
        (&denoise["row"], &denoise["open"]),
        (&Json::Null, &json!(0)),
        "it was never executed"
    );
    assert_eq!((&other["is_declared"], &other["misplaced"]), (&json!(false), &json!(1)));
    assert_eq!(other["process_names"], json!(["server"]));
    let one = viewer.ask("/api/stage?stage=denoise");
    assert_eq!((&one["row"], &one["slowest"]), (&Json::Null, &json!([])));
    let one = viewer.ask("/api/stage?stage=forward");
    assert_eq!(one["open"][0]["span_id"], "0000000000000001");
}

#[test]
fn one_stage_tells_its_slowest_spans_and_each_step() {
    let (viewer, expected) = live();
    let one = viewer.ask("/api/stage?stage=judger.run");
    let row = &expected["all"]["stages"].as_array().expect("a list");
    let row = row.iter().find(|row| row["stage"] == "judger.run").expect("it is there");
    assert_eq!(one["row"]["p99_ns"], row["p99_ns"]);
    assert_eq!(one["slowest"][0]["duration_ns"], row["max_ns"]);
    let steps = one["steps"].as_array().expect("a list");
    let names: Vec<&Json> = steps.iter().map(|step| &step["name"]).collect();
    assert_eq!(names, [&json!(21), &json!(22)]);
    let spans: u64 = steps.iter().filter_map(|step| step["spans"].as_u64()).sum();
    assert_eq!(Some(spans), row["span_count"].as_u64());
    let by_process = one["processes"].as_array().expect("a list");
    let spans: u64 = by_process.iter().filter_map(|process| process["spans"].as_u64()).sum();
    assert_eq!(Some(spans), row["span_count"].as_u64());
}

#[test]
fn percentiles_of_a_part_are_by_nearest_rank() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    for span in 1..=100_u64 {
        append(&path, line(span.into(), span, 0, "step", [EPOCH, EPOCH + span * 10]));
    }
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let one = viewer.ask("/api/stage?stage=step");
    let part = &one["processes"][0];
    assert_eq!(
        (&part["p50_ns"], &part["p99_ns"], &part["max_ns"]),
        (&json!("500"), &json!("990"), &json!("1000"))
    );
    assert_eq!(one["slowest"].as_array().map(Vec::len), Some(25));
}

#[test]
fn a_stage_that_is_not_there_is_refused_by_name() {
    let (viewer, _) = live();
    viewer.ask("/api/state");
    let answer = viewer.get("/api/stage?stage=nowhere");
    assert!(
        answer.starts_with("HTTP/1.1 404") && answer.contains("there is no stage nowhere"),
        "{answer}"
    );
    assert!(viewer.get("/api/stage").starts_with("HTTP/1.1 400"));
    assert!(viewer.get("/api/stages?step=99").starts_with("HTTP/1.1 404"));
}
