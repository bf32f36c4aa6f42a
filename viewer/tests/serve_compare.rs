//! The page that compares, by real requests: two runs, steps or services side by side.

use std::fs;

use serde_json::{Value as Json, json};

mod support;

use support::cases;
use support::serve::Viewer;

/// Requests of a service in a run and step, each with one span of so many milliseconds.
fn lines(run: &str, service: &str, step: u64, durations: &[u64]) -> String {
    let text = |key: &str, value: &str| {
        format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
    };
    let resource = [text("service.name", service), text("run.id", run)].join(",");
    let spans = durations.iter().enumerate().map(|(at, ms)| {
        let trace = format!("{:016x}{:016x}", fnv(&format!("{run} {service} {step}")), at + 1);
        let id = format!(r#"{{"key":"xtuner.rollout_id","value":{{"intValue":"{at}"}}}}"#);
        let step = format!(r#"{{"key":"xtuner.producer_future_step","value":{{"intValue":"{step}"}}}}"#);
        let (start, end) = (1_000_000, 1_000_000 + ms * 1_000_000);
        format!(
            r#"{{"traceId":"{trace}","spanId":"0000000000000001","name":"generate","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":[{id},{step}]}}"#
        )
    });
    let spans = spans.collect::<Vec<_>>().join(",");
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{resource}]}},"scopeSpans":[{{"scope":{{}},"spans":[{spans}]}}]}}]}}"#
    ) + "\n"
}

fn fnv(text: &str) -> u64 {
    text.bytes().fold(14_695_981_039_346_656_037, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    })
}

/// Milliseconds around a middle.
fn around(middle: u64, count: u64) -> Vec<u64> {
    (0..count).map(|at| middle + at * 8 % 21).collect()
}

fn serve(text: &str) -> (tempfile::TempDir, Viewer) {
    let directory = tempfile::tempdir().expect("a directory is made");
    fs::write(directory.path().join("traces.jsonl"), text).expect("it is written");
    let viewer = Viewer::start(&[directory.path().to_str().expect("it is UTF-8")]);
    (directory, viewer)
}

/// Verdict and number of spans of the only stage.
fn outcome(answer: &Json) -> (String, u64, u64) {
    let [stage] = &answer["comparison"]["stages"].as_array().expect("a list")[..] else {
        panic!("{answer}")
    };
    let count = |side: &str| stage[side]["span_count"].as_u64().expect("a number");
    (stage["verdict"].as_str().expect("a word").to_owned(), count("a"), count("b"))
}

#[test]
fn runs_steps_and_services_are_told_apart_and_the_last_two_runs_stand_there_first() {
    let text = [
        lines("run-1", "router", 1, &around(100, 50)),
        lines("run-1", "router", 2, &around(200, 40)),
        lines("run-2", "judge", 1, &around(400, 30)),
    ]
    .concat();
    let (_directory, viewer) = serve(&text);
    let first = viewer.ask("/api/compare");
    assert_eq!((&first["a"], &first["b"]), (&json!("run:run-1"), &json!("run:run-2")));
    assert_eq!(outcome(&first), ("slower".to_owned(), 90, 30));
    assert_eq!(first["comparison"]["a"]["run_ids"], json!(["run-1"]));
    assert_eq!(first["comparison"]["b"]["services"], json!(["judge"]));
    let choices =
        json!({ "runs": ["run-1", "run-2"], "steps": ["1", "2"], "services": ["judge", "router"] });
    assert_eq!(first["choices"], choices);

    let steps = viewer.ask("/api/compare?a=step:2&b=step:1");
    assert_eq!((outcome(&steps).1, outcome(&steps).2), (40, 80));
    let swapped = viewer.ask("/api/compare?a=service:judge&b=service:router");
    assert_eq!(outcome(&swapped), ("faster".to_owned(), 30, 90));
    let same = viewer.ask("/api/compare?a=all&b=all");
    assert_eq!(outcome(&same), ("same".to_owned(), 120, 120));
    assert_eq!(same["comparison"]["stages"][0]["difference_ns"], "0");
}

#[test]
fn both_distributions_hold_every_span_once() {
    let text =
        [lines("r", "s", 1, &around(100, 50)), lines("r", "s", 2, &around(900, 70))].concat();
    let (_directory, viewer) = serve(&text);
    let answer = viewer.ask("/api/compare");
    assert_eq!(
        (&answer["a"], &answer["b"]),
        (&json!("step:1"), &json!("step:2")),
        "there is one run"
    );
    let [pair] = &answer["spreads"].as_array().expect("a list")[..] else { panic!("{answer}") };
    let spans = |side: usize| -> u64 {
        pair[side]["bars"].as_array().expect("a list").iter().filter_map(Json::as_u64).sum()
    };
    assert_eq!((spans(0), spans(1)), (50, 70));
}

#[test]
fn a_sample_that_is_still_open_counts_to_the_run_of_its_ended_spans() {
    let folder = cases("xtuner/live");
    let viewer =
        Viewer::start(&["--now", "1784173500000000001", folder.to_str().expect("it is UTF-8")]);
    let answer = viewer.ask("/api/compare?a=run:20260716-113000-815-0f1e2d3c&b=all");
    let running = |side: &str| answer["comparison"][side]["statuses"]["running"].as_u64();
    assert_eq!(running("b"), Some(25));
    assert!(running("a").is_some_and(|count| count > 0), "{}", answer["comparison"]["a"]);
}

#[test]
fn what_chooses_nothing_is_refused_and_one_of_everything_is_no_comparison() {
    let (_directory, viewer) = serve(&lines("r", "s", 1, &around(100, 10)));
    let alone = viewer.ask("/api/compare");
    assert_eq!((&alone["a"], &alone["comparison"]), (&Json::Null, &Json::Null));
    for (query, status, words) in [
        ("a=moon:1&b=all", "400", "chooses nothing: write all, run:ID"),
        ("a=step:9&b=all", "404", "no sample is of step:9"),
        ("a=all&b=run:nowhere", "404", "no sample is of run:nowhere"),
        ("a=service:&b=all", "404", "no sample is of service:"),
    ] {
        let answer = viewer.get(&format!("/api/compare?{query}"));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(words),
            "{query}: {answer}"
        );
    }
}
