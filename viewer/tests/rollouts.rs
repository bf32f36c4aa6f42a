//! Every rollout run of the cases is reported as it should be, from the command line and sample by
//! sample.

use std::fs;
use std::process::Command;

use serde_json::Value as Json;
use stagetrace_viewer::Sample;

mod support;

use support::{View, cases, ident};

const RUNS: [&str; 5] = ["traces_only", "live", "agent", "rotated", "jaeger"];
/// Times of live files are doubles of seconds.
const TOLERANCE_NS: i128 = 1000;

#[test]
fn the_command_line_sums_up_every_run_as_expected() {
    for run in RUNS {
        let expected = expected(run);
        let steps = expected["by_step"].as_object().unwrap();
        for step in ["all"].into_iter().chain(steps.keys().map(String::as_str)) {
            let summary = summary(run, &expected, &["--step", step]);
            let block = if step == "all" { &expected["all"] } else { &expected["by_step"][step] };
            for (field, value) in block.as_object().unwrap() {
                assert_close(&summary[field], value, &format!("{run}, step {step}: {field}"));
            }
            assert_eq!(summary["schema"], 1);
            for field in ["run_ids", "services", "latest_step", "damaged_lines", "live_source"] {
                assert_eq!(summary[field], expected[field], "{run}: {field}");
            }
            assert_eq!(summary["available_steps"], expected["steps"], "{run}");
        }
        let latest = summary(run, &expected, &["--step", "latest"]);
        assert_eq!(latest["step"], expected["latest_step"]);
    }
}

#[test]
fn every_sample_stands_as_expected() {
    for run in RUNS {
        let expected = expected(run);
        let view = View::of(&[cases("xtuner").join(run)]);
        let now = number(&expected["now_unix_nano"]) as u64;
        let all = expected["per_sample"].as_array().unwrap();
        assert_eq!(view.samples.iter(&view.store).count(), all.len(), "samples of {run}");
        for expected in all {
            let is_it = |sample: &Sample| {
                view.store.trace_id(sample.trace).to_string() == expected["trace_id"]
                    && ident(&view.store, sample.rollout) == expected["rollout_id"]
            };
            let sample = view.samples.iter(&view.store).find(is_it).expect("the sample is there");
            check_sample(&view, &sample, expected, now, run);
        }
    }
}

#[test]
fn every_group_has_the_members_expected() {
    for run in RUNS {
        let expected = expected(run);
        let view = View::of(&[cases("xtuner").join(run)]);
        for group in expected["groups"].as_array().unwrap() {
            let is_member = |sample: &Sample| {
                ident(&view.store, sample.group) == group["group_id"]
                    && ident(&view.store, sample.step) == group["step"]
            };
            let members: Vec<_> = view.samples.iter(&view.store).filter(is_member).collect();
            let rollouts = members.iter().map(|sample| number(&ident(&view.store, sample.rollout)));
            let mut rollouts: Vec<_> = rollouts.collect();
            rollouts.sort();
            let wanted = group["rollout_ids"].as_array().unwrap();
            assert_eq!(rollouts, wanted.iter().map(number).collect::<Vec<_>>(), "{run}");
            for (status, count) in group["statuses"].as_object().unwrap() {
                let is_so = |sample: &&Sample| sample.status.text(&view.store) == *status;
                assert_eq!(members.iter().filter(is_so).count() as i128, number(count), "{run}");
            }
        }
    }
}

#[test]
fn samples_that_hang_are_stuck_and_a_slow_one_is_not() {
    let expected = expected("live");
    let summary = summary("live", &expected, &[]);
    let stuck = summary["stuck"].as_array().unwrap();
    assert_eq!(stuck.len(), 25, "all that are open hang");
    let worst = number(&stuck[0]["age_ns"]) as f64 / number(&stuck[0]["threshold_ns"]) as f64;
    assert!(worst > 10.0, "the worst comes first: {worst}");
    let patient = ["--stuck-floor", "100000"];
    assert_eq!(self::summary("live", &expected, &patient)["stuck"], Json::Array(vec![]));
}

#[test]
fn a_step_that_is_not_there_is_refused_with_those_that_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
        .args(["summary", "--step", "9"])
        .arg(cases("xtuner/traces_only"))
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert_eq!(error, "stagetrace-viewer: no sample is of step 9; there are 2, from 7 to 8\n");
}

#[test]
fn a_summary_for_people_names_what_is_stuck_and_what_failed() {
    let run = cases("xtuner/live");
    let now = number(&expected("live")["now_unix_nano"]).to_string();
    let output = viewer(&["summary", "--now", &now, run.to_str().unwrap()]);
    for line in [
        "200 samples in 50 groups, 2 steps: aborted 9, completed 139, expired 5, failed 14, filtered 7, init 1, running 25",
        "692 finished spans",
        "reward: mean 0.646 of 151, 100 passed",
        "note: 2 spans are open though their sample has ended",
        "note: 1 lines could not be read",
    ] {
        assert!(output.lines().any(|found| found == line), "{line}\n{output}");
    }
    let stuck = output.split("\nstuck\n").nth(1).unwrap();
    let first: Vec<&str> = stuck.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(first[0], "judger.run");
    assert!(stuck.contains("… and 5 more"));
    assert!(!output.contains('\u{1b}') && output.contains("503 Service Unavailable"));
}

#[test]
fn a_trace_is_printed_as_a_tree() {
    let run = cases("xtuner/live");
    let now = number(&expected("live")["now_unix_nano"]).to_string();
    let trace = "ca41f1d4e605c310d43c7f096273031b";
    let tree = viewer(&["tree", trace, "--now", &now, run.to_str().unwrap()]);
    let shown: Vec<String> = tree.lines().map(|line| line.trim_end().to_owned()).collect();
    assert_eq!(shown[0], "failed  rollout 64  group 16  step 21");
    assert!(
        shown[1].starts_with("single_turn_agent_loop.run  300 s  error: Rollout request timed")
    );
    assert!(shown[2].starts_with("  rollout.controller.generate  300 s  error: Rollout request"));
    assert!(tree.contains("rollout.worker.generate  open for 869 s"), "{tree}");
}

fn check_sample(view: &View, sample: &Sample, expected: &Json, now: u64, run: &str) {
    let store = &view.store;
    let what = |field: &str| format!("{field} of rollout {} in {run}", expected["rollout_id"]);
    let optional = |value: Option<Json>| value.unwrap_or(Json::Null);
    let age = |since: u64| Json::from((now - since).to_string());
    let span = |span| store.span(span);
    let current = sample.current.map(|current| {
        serde_json::json!({
            "stage": store.text(current.stage),
            "span_id": span(current.span).span_id.to_string(),
            "since_unix_nano": current.since.to_string(),
            "age_ns": age(current.since),
        })
    });
    let error = sample.error.map(|error| {
        let failure = store.failure(error).unwrap();
        serde_json::json!({
            "stage": store.text(store.stage(error)),
            "span_id": span(error).span_id.to_string(),
            "type": view.text(failure.kind),
            "message": view.text(failure.message),
        })
    });
    let found = [
        ("group_id", ident(store, sample.group)),
        ("step", ident(store, sample.step)),
        ("task", view.text(sample.task).into()),
        ("finished_spans", sample.finished_spans.into()),
        ("status", sample.status.text(store).into()),
        ("open", sample.is_open.into()),
        ("duration_ns", optional(sample.duration.map(|ns| ns.to_string().into()))),
        ("reward_score", optional(sample.reward().map(Json::from))),
        ("reward_pass", optional(sample.passed().map(Json::from))),
        ("finish_reason", view.text(sample.finish_reason()).into()),
        ("completion_tokens", optional(sample.completion_tokens().map(Json::from))),
    ];
    for (field, found) in found {
        assert_close(&found, &expected[field], &what(field));
    }
    if expected.get("age_ns").is_some() {
        assert_close(&optional(sample.start.map(age)), &expected["age_ns"], &what("age_ns"));
    }
    for (field, found) in [("current", current), ("error", error)] {
        match (found, expected.get(field).filter(|value| !value.is_null())) {
            (None, None) => {}
            (Some(Json::Object(found)), Some(expected)) => {
                for (key, value) in found {
                    assert_close(&value, &expected[&key], &what(&format!("{field}.{key}")));
                }
            }
            (found, expected) => panic!("{}: {found:?} for {expected:?}", what(field)),
        }
    }
    let left: Vec<String> =
        sample.left_open.iter().map(|left| span(*left).span_id.to_string()).collect();
    let none = Vec::new();
    let wanted = expected.get("left_open").and_then(Json::as_array).unwrap_or(&none);
    assert_eq!(left, wanted.iter().map(|left| left["span_id"].clone()).collect::<Vec<_>>());
    let spans = store.spans_of(sample.trace).map(span);
    let mut events: Vec<String> =
        spans.flat_map(|span| span.events).map(|event| event.name).collect();
    events.sort();
    let wanted = expected["events"].as_array().unwrap().iter();
    let mut wanted: Vec<_> = wanted.map(|event| event.as_str().unwrap().to_owned()).collect();
    wanted.sort();
    assert_eq!(events, wanted, "{}", what("events"));
}

fn expected(run: &str) -> Json {
    let text = fs::read(cases("xtuner").join(run).join("expected.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn summary(run: &str, expected: &Json, arguments: &[&str]) -> Json {
    let now = number(&expected["now_unix_nano"]).to_string();
    let path = cases("xtuner").join(run);
    let mut all = vec!["summary", "--json", "--now", &now, path.to_str().unwrap()];
    all.extend(arguments);
    serde_json::from_str(&viewer(&all)).unwrap()
}

fn viewer(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A number, or a text that is one.
fn number(value: &Json) -> i128 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse().unwrap_or_else(|_| panic!("{value} is no number"))
}

/// Equal, but for the tolerance of times and the way in which a double is written.
fn assert_close(found: &Json, expected: &Json, what: &str) {
    match (found, expected) {
        (Json::Object(one), Json::Object(other)) => {
            let keys: Vec<_> = one.keys().collect();
            assert_eq!(keys, other.keys().collect::<Vec<_>>(), "fields of {what}");
            other.iter().for_each(|(key, value)| {
                assert_close(&one[key], value, &format!("{what}.{key}"));
            });
        }
        (Json::Array(one), Json::Array(other)) => {
            assert_eq!(one.len(), other.len(), "length of {what}");
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                assert_close(one, other, &format!("{what}[{at}]"));
            }
        }
        (Json::Number(one), Json::Number(other)) => {
            assert_eq!(one.as_f64(), other.as_f64(), "{what}");
        }
        (Json::String(one), Json::String(other)) => {
            match (one.parse::<i128>(), other.parse::<i128>()) {
                (Ok(one), Ok(other)) => {
                    assert!((one - other).abs() <= TOLERANCE_NS, "{what}: {one} for {other}");
                }
                _ => assert_eq!(one, other, "{what}"),
            }
        }
        (one, other) => assert_eq!(one, other, "{what}"),
    }
}
