//! The page of processes, by real requests: who lives, who died, how busy they were, and what ran where.

use std::fs::{self, File};

use serde_json::{Value as Json, json};
use stagetrace_wire::recording::layout::slot;

#[path = "../../wire/tests/handmade/mod.rs"]
mod handmade;
mod support;

use handmade::{EPOCH, Handmade, Record, STEM, site};
use support::serve::Viewer;
use support::{append, cases};

const LIVE_NOW: &str = "1784173500000000001";

fn live() -> Viewer {
    let folder = cases("xtuner/live");
    Viewer::start(&["--now", LIVE_NOW, folder.to_str().expect("it is UTF-8")])
}

/// A line with one span of a process.
fn line(process: &str, span: u64, times: [u64; 2], attributes: &str) -> String {
    let text = |key: &str, value: &str| {
        format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
    };
    let resource =
        [text("service.name", "rollout"), text("service.instance.id", process)].join(",");
    let [start, end] = times;
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{resource}]}},"scopeSpans":[{{"scope":{{}},"spans":[{{"traceId":"{span:032x}","spanId":"{span:016x}","name":"generate","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":[{attributes}]}}]}}]}}]}}"#
    ) + "\n"
}

fn number(value: &Json) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn every_span_is_counted_in_one_process() {
    let viewer = live();
    let answer = viewer.ask("/api/processes");
    let state = viewer.ask("/api/state");
    let processes = answer["processes"].as_array().expect("a list");
    assert_eq!(answer["count"], 5);
    let sum = |key: &str| processes.iter().map(|one| one[key].as_u64().unwrap_or(0)).sum::<u64>();
    assert_eq!(Some(sum("spans")), state["spans"].as_u64());
    assert_eq!(Some(sum("samples")), state["samples"].as_u64());
    // Names tell processes of one service apart.
    let mut names: Vec<&str> = processes.iter().filter_map(|one| one["name"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5, "{names:?}");
    let open = processes.iter().find(|one| one["open"] != 0).expect("one has open spans");
    assert_eq!(open["id"], "not named", "a live file does not say whose its spans are");
    assert_eq!(open["oldest_open"]["stage"], "single_turn_agent_loop.run");
}

#[test]
fn a_process_that_lives_is_told_from_one_that_died_and_from_one_that_closed() {
    let recording = |state: u64| {
        let open = Record { flags: slot::ROOT, root: 1, ..Record::open(1) };
        let mut made =
            Handmade::new(3).table(1, &[&site(1, "generate", &[])]).chunk(2, &[open.words()]);
        made.identity(&format!(
            r#"{{"process_id":"4711-5be07c1d","stem":"{STEM}","resource":{{"service.name":"server","process.pid":4711,"stagetrace.process.id":"4711-5be07c1d"}}}}"#
        ));
        made.word(stagetrace_wire::recording::layout::header::STATE, state)
    };
    use stagetrace_wire::recording::layout::header::{CLOSED, RUNNING};
    for (state, is_locked, alive, dead) in [
        (RUNNING, true, json!(true), json!(false)),
        (RUNNING, false, json!(false), json!(true)),
        (CLOSED, false, json!(false), json!(false)),
    ] {
        let directory = tempfile::tempdir().expect("a directory is made");
        let path = directory.path().join(format!("{STEM}.recording"));
        fs::write(&path, recording(state).bytes()).expect("it is written");
        let lock = File::open(&path).expect("it is there");
        if is_locked {
            lock.lock().expect("nobody has it");
        }
        let now = (EPOCH + 1010).to_string();
        let viewer = Viewer::start(&["--now", &now, directory.path().to_str().expect("UTF-8")]);
        let answer = viewer.ask("/api/processes");
        let [process] = &answer["processes"].as_array().expect("a list")[..] else {
            panic!("{answer}")
        };
        assert_eq!((&process["is_alive"], &process["is_dead"]), (&alive, &dead), "{process}");
        assert_eq!((&process["service"], &process["pid"]), (&json!("server"), &json!(4711)));
        if is_locked {
            assert_eq!(process["open"], 1);
            assert_eq!(process["oldest_open"]["age_ns"], "1000");
        }
        if dead == json!(true) {
            assert_eq!((&process["open"], &process["lost"]), (&json!(0), &json!(1)));
        }
    }
}

#[test]
fn a_process_that_is_busy_half_of_the_time_says_so_bucket_by_bucket() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    const SECOND: u64 = 1_000_000_000;
    let at = |seconds: u64| EPOCH + seconds * SECOND;
    append(&path, line("one", 1, [at(0), at(60)], ""));
    append(&path, line("two", 2, [at(0), at(120)], ""));
    append(&path, line("two", 3, [at(0), at(120)], ""));
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let answer = viewer.ask("/api/processes");
    assert_eq!(number(&answer["begin_unix_nano"]), at(0));
    assert_eq!(number(&answer["end_unix_nano"]), at(120));
    let of = |id: &str| {
        let processes = answer["processes"].as_array().expect("a list");
        processes.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{answer}"))
    };
    let numbers = |list: &Json| -> Vec<f64> {
        list.as_array().expect("a list").iter().filter_map(Json::as_f64).collect()
    };
    let (one, two) = (of("one"), of("two"));
    let busy = numbers(&one["busy"]);
    assert_eq!(busy.len(), 120);
    assert!(busy[..59].iter().all(|share| *share == 100.0), "{busy:?}");
    assert!(busy[61..].iter().all(|share| *share == 0.0), "{busy:?}");
    assert!((one["busy_share"].as_f64().expect("a number") - 0.5).abs() < 0.001, "{one}");
    assert!(numbers(&two["at_once"])[..119].iter().all(|count| *count == 2.0), "{two}");
    assert_eq!(answer["stages"][0]["stage"], "generate");
    assert_eq!(numbers(&answer["stages"][0]["at_once"])[30], 3.0);

    // A window, and a single process.
    let (from, until) = (at(60), at(120));
    let asked = format!("/api/processes?from={from}&until={until}&process=one");
    let answer = viewer.ask(&asked);
    assert_eq!(answer["stages"], json!([]), "it did nothing in that time");
}

#[test]
fn nonsense_is_refused_and_a_process_that_is_not_there_has_no_lanes() {
    let viewer = live();
    viewer.ask("/api/state");
    for path in [
        "/api/processes?from=5&until=5",
        "/api/lanes?from=9&until=1",
        "/api/lanes?by=moon",
        "/api/processes?from=-1",
    ] {
        assert!(viewer.get(path).starts_with("HTTP/1.1 400"), "{path}: {}", viewer.get(path));
    }
    assert!(viewer.get("/api/lanes?process=nobody").starts_with("HTTP/1.1 404"));
    // Windows that no clock has ever shown.
    for path in [
        "/api/lanes?from=0&until=18446744073709551615&width=999999999",
        "/api/lanes?from=18446744073709551614",
    ] {
        let answer = viewer.get(path);
        assert!(
            ["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 400"]
                .iter()
                .any(|head| answer.starts_with(head)),
            "{path}: {answer}"
        );
    }
    assert_eq!(viewer.ask("/api/processes?from=0&until=18446744073709551615")["count"], 5);
}

#[test]
fn workers_have_lanes_of_their_own_in_the_order_of_their_numbers() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    for rank in [10_u64, 2, 1] {
        let attribute = format!(r#"{{"key":"worker_rank","value":{{"intValue":"{rank}"}}}}"#);
        append(&path, line("one", rank, [EPOCH + 100, EPOCH + 200 + rank], &attribute));
    }
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let lanes = viewer.ask("/api/lanes");
    let names: Vec<&str> = lanes["lanes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|lane| lane["name"].as_str())
        .collect();
    assert_eq!(names, ["worker 1 · rollout", "worker 2 · rollout", "worker 10 · rollout"]);
    let first = &lanes["lanes"][0]["boxes"][0];
    assert_eq!((&first["at"], &first["ns"]), (&json!(0.0), &json!(101.0)));
    assert_eq!(first["span"], "0000000000000001");
    let whole = viewer.ask("/api/lanes?by=process");
    assert_eq!(whole["lanes"].as_array().map(Vec::len), Some(1));
    assert_eq!(whole["lanes"][0]["rows"], 3, "they ran at the same time");
    let stages = viewer.ask("/api/lanes?by=stage");
    assert_eq!(stages["lanes"][0]["name"], "generate");
}

#[test]
fn what_a_gpu_measured_has_a_lane_beside_its_host() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    let key = |key: &str, value: &str| {
        format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
    };
    let attributes =
        [key("gpu.clock.source", "bracketed"), key("gpu.adapter", "NVIDIA H200")].join(",");
    append(&path, line("one", 7, [EPOCH, EPOCH + 100], &attributes));
    let child = line("one", 8, [EPOCH + 10, EPOCH + 90], "")
        .replace(&format!("{:032x}", 8), &format!("{:032x}", 7));
    append(
        &path,
        child.replace(
            r#""name":"generate""#,
            r#""parentSpanId":"0000000000000007","name":"denoise""#,
        ),
    );
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let lanes = viewer.ask("/api/lanes");
    let lanes = lanes["lanes"].as_array().expect("a list");
    assert_eq!(lanes.len(), 2);
    assert_eq!(lanes[1]["name"], "GPU NVIDIA H200 · rollout");
    assert_eq!(lanes[1]["boxes"][0]["name"], "denoise");
}

#[test]
fn what_is_too_dense_to_be_seen_is_merged_and_still_adds_up() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("traces.jsonl");
    let mut lines = String::new();
    // One after the other without a gap, far below a dot each.
    for span in 0..20_000_u64 {
        lines += &line("one", span + 1, [EPOCH + span * 1000, EPOCH + span * 1000 + 1000], "");
    }
    append(&path, lines);
    let viewer = Viewer::start(&[path.to_str().expect("it is UTF-8")]);
    let answer = viewer.ask("/api/lanes?width=400");
    let [lane] = &answer["lanes"].as_array().expect("a list")[..] else { panic!("{answer}") };
    assert_eq!(lane["spans"], 20_000);
    assert_eq!(lane["boxes"], json!([]));
    // All dots are alike: begin, length, stage, and one at work at a time in hundredths.
    assert_eq!(lane["columns"], json!([[0, 400, 0, 100]]), "{}", lane["columns"]);
    let near =
        viewer.ask(&format!("/api/lanes?width=400&from={}&until={}", EPOCH + 500, EPOCH + 9_500));
    assert_eq!(
        near["lanes"][0]["boxes"].as_array().map(Vec::len),
        Some(10),
        "near by they are seen"
    );
}
