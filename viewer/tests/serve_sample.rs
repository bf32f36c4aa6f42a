//! The page of one sample, by real requests: what is drawn, and what is told of each span.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

mod support;

use support::serve::Viewer;
use support::{append, cases};

/// What a test writes and shows.
struct Run {
    directory: tempfile::TempDir,
}

/// A span as OTLP/JSON; more fields are added by index.
fn span(trace: u128, id: u64, parent: u64, name: &str, [start, end]: [u64; 2]) -> Json {
    let mut span = json!({
        "traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}"), "name": name,
        "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string(),
    });
    if parent > 0 {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    span
}

fn attribute(key: &str, value: Json) -> Json {
    json!({ "key": key, "value": value })
}

fn text(key: &str, value: &str) -> Json {
    attribute(key, json!({ "stringValue": value }))
}

impl Run {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory is made") }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("traces.jsonl")
    }

    /// Writes spans of a process.
    fn write(&self, service: &str, spans: &[Json]) {
        let resource = json!({ "attributes": [text("service.name", service)] });
        let scopes = json!([{ "scope": { "name": "test" }, "spans": spans }]);
        let line = json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": scopes }] });
        append(&self.file(), format!("{line}\n"));
    }

    fn viewer(&self, now: u64) -> Viewer {
        let path = self.file();
        let path = path.to_str().expect("it is UTF-8");
        let viewer = Viewer::start(&["--now", &now.to_string(), path]);
        viewer.ask("/api/state");
        viewer
    }
}

/// A value of a column.
fn at(column: &Json, place: usize) -> i64 {
    let value = column.get(place).unwrap_or(column);
    value.as_i64().expect("columns hold numbers")
}

/// What is drawn as an indented tree: name, begin from the base, length, marks.
fn drawn(answer: &Json) -> String {
    const MARKS: [&str; 11] = [
        "open",
        "lost",
        "never-came",
        "failed",
        "guessed",
        "parent-missing",
        "waits",
        "gpu",
        "links-away",
        "no-begin",
        "backward",
    ];
    let spans = &answer["spans"];
    let (mut starts, mut depths) = (Vec::new(), Vec::new());
    let mut text = String::new();
    for place in 0..spans["count"].as_u64().expect("a count") as usize {
        let up = at(&spans["up"], place) as usize;
        let (above, depth) = match up {
            0 => (0, 0),
            up => (starts[place - up], depths[place - up] + 1),
        };
        starts.push(at(&spans["start"], place) + above);
        depths.push(depth);
        let name = answer["texts"][at(&spans["name"], place) as usize].as_str().expect("a name");
        let marks = at(&spans["marks"], place);
        let marks: String = (0..MARKS.len())
            .filter(|bit| marks >> bit & 1 == 1)
            .map(|bit| format!(" {}", MARKS[bit]))
            .collect();
        let length = at(&spans["duration"], place);
        writeln!(text, "{:2$}{name} {}+{length}{marks}", "", starts[place], 2 * depth)
            .expect("texts can be written to");
    }
    text
}

fn trace(number: u128) -> String {
    format!("{number:032x}")
}

fn case(name: &str) -> (Viewer, Json) {
    let folder = cases(&format!("xtuner/{name}"));
    let expected = fs::read_to_string(folder.join("expected.json")).expect("the case is there");
    let expected: Json = serde_json::from_str(&expected).expect("it is JSON");
    let now = expected["now_unix_nano"].to_string().replace('"', "");
    let viewer = Viewer::start(&["--now", &now, folder.to_str().expect("it is UTF-8")]);
    viewer.ask("/api/state");
    (viewer, expected)
}

#[test]
fn a_stuck_sample_shows_the_span_that_it_is_in_and_what_its_stage_usually_takes() {
    let (viewer, _) = case("live");
    let overview = viewer.ask("/api/overview");
    let stuck = &overview["summary"]["stuck"][0];
    let (trace, sample) = (stuck["trace_id"].as_str().expect("a trace"), &stuck["rollout_id"]);
    let answer = viewer.ask(&format!("/api/sample?trace={trace}&sample={sample}"));
    assert_eq!(answer["row"]["id"], *sample);
    assert_eq!(answer["row"]["stage_age_ns"], stuck["age_ns"]);
    let current = answer["current"].as_u64().expect("it is in a span") as usize;
    let ids = answer["spans"]["ids"].as_str().expect("ids");
    assert_eq!(&ids[16 * current..16 * current + 16], stuck["span_id"]);
    let stage = at(&answer["spans"]["stage"], current);
    let stages = answer["stages"].as_array().expect("stages");
    let stage = stages.iter().find(|one| one["stage"] == stage).expect("the stage is there");
    assert_eq!(stage["threshold_ns"], stuck["threshold_ns"]);
    let all = overview["summary"]["stages"].as_array().expect("stages");
    let row = all.iter().find(|row| row["stage"] == stuck["stage"]).expect("the stage is there");
    for (own, of_all) in
        [("p50_ns", "p50_ns"), ("p90_ns", "p90_ns"), ("p99_ns", "p99_ns"), ("count", "span_count")]
    {
        assert_eq!(stage["usual"][own], row[of_all], "{own}");
    }
}

#[test]
fn open_spans_of_a_live_file_stand_below_the_parents_that_their_paths_name() {
    let (viewer, _) = case("agent");
    let open = viewer.ask("/api/overview")["summary"]["open_samples"].clone();
    let mut guessed = 0;
    for sample in open.as_array().expect("samples are open") {
        let trace = sample["trace_id"].as_str().expect("a trace");
        let text = drawn(&viewer.ask(&format!("/api/sample?trace={trace}")));
        let path = sample["current"]["path"].as_array().expect("a path");
        let name = path.last().and_then(Json::as_str).expect("a name");
        let indent = 2 * (path.len() - 1);
        let is_there = |line: &str| {
            line.trim_start().starts_with(&format!("{name} "))
                && line.len() - line.trim_start().len() == indent
                && line.contains(" open")
        };
        assert!(text.lines().any(is_there), "{path:?} in\n{text}");
        guessed += text.matches("guessed").count();
    }
    assert!(guessed > 0, "no parent had to be found");
}

#[test]
fn hostile_traces_are_drawn_in_order() {
    let run = Run::new();
    let ten_years = 10 * 365 * 86_400 * 1_000_000_000;
    let begin = 1_000_000_000_000_000_000;
    let name = "</script><img src=x onerror=alert(1)>\u{202e}\u{0}";
    run.write(
        "one",
        &[
            span(1, 1, 0, name, [begin, begin + ten_years]),
            span(1, 2, 1, "later", [begin + 20, begin + 30]),
            span(1, 3, 1, "earlier", [begin + 10, begin + 40]),
            span(1, 4, 3, "backward", [begin + 30, begin + 20]),
            span(1, 5, 6, "cycle", [begin + 50, begin + 60]),
            span(1, 6, 5, "cycle", [begin + 51, begin + 60]),
            span(1, 7, 7, "self", [begin + 52, begin + 60]),
            span(1, 8, 99, "orphan", [begin + 53, begin + 60]),
            span(1, 9, 1, "no begin", [0, begin + 60]),
            span(1, 10, 1, "open", [begin + 70, 0]),
        ],
    );
    let viewer = run.viewer(begin + 100);
    let answer = viewer.ask(&format!("/api/sample?trace={}", trace(1)));
    let expected = format!(
        "{name} 0+{ten_years}
  no begin 0+60 no-begin
  earlier 10+30
    backward 30+0 backward
  later 20+10
  open 70+0 open
cycle 51+9 parent-missing
  cycle 50+10
self 52+8 parent-missing
orphan 53+7 parent-missing
"
    );
    let mut lines: Vec<_> = drawn(&answer).lines().map(str::to_owned).collect();
    let mut expected: Vec<_> = expected.lines().map(str::to_owned).collect();
    // Which span of a cycle is its top depends on where they are met first.
    lines.retain(|line| !line.contains("cycle"));
    expected.retain(|line| !line.contains("cycle"));
    assert_eq!(lines, expected);
    assert_eq!(answer["base_unix_nano"], begin.to_string());
    let pieces = answer["critical"]["lengths"].as_array().expect("a path");
    let sum: u64 = pieces.iter().filter_map(Json::as_u64).sum();
    assert_eq!(sum, ten_years, "the path is as long as the root");
}

#[test]
fn of_a_trace_with_several_samples_the_one_that_is_asked_for_is_told() {
    let run = Run::new();
    let of = |rollout: &str, id, parent, times| {
        let mut span = span(1, id, parent, "run", times);
        span["attributes"] = json!([text("rollout.id", rollout)]);
        span
    };
    run.write(
        "one",
        &[span(1, 1, 0, "step", [10, 90]), of("a b", 2, 1, [20, 50]), of("<b>", 3, 1, [30, 80])],
    );
    let viewer = run.viewer(100);
    let path = |sample: &str| format!("/api/sample?trace={}&sample={sample}", trace(1));
    let answer = viewer.ask(&path("%3Cb%3E"));
    assert_eq!(answer["row"]["id"], "<b>");
    assert_eq!(answer["row"]["duration_ns"], "50");
    let samples = answer["samples"].as_array().expect("samples");
    assert_eq!(samples.len(), 2);
    let own = answer["sample"].as_i64().expect("a place");
    let places: Vec<_> = (0..3).map(|place| at(&answer["spans"]["sample"], place)).collect();
    assert_eq!((places[0], places[2]), (-1, own));
    assert_ne!(places[1], own);
    assert_eq!(viewer.ask(&path("a+b"))["row"]["id"], "a b");
    let unknown = viewer.get(&path("c"));
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
    assert!(unknown.contains(r#"has no sample \"c\"; it has a b, <b>"#), "{unknown}");
}

#[test]
fn attempts_at_the_same_sample_are_told_in_order() {
    let run = Run::new();
    let attempt = |trace, number: u64, start| {
        let mut span = span(trace, 1, 0, "run", [start, start + 5]);
        let attempt = attribute("rollout.attempt", json!({ "intValue": number.to_string() }));
        span["attributes"] = json!([text("rollout.id", "r7"), attempt]);
        span
    };
    run.write("one", &[attempt(3, 2, 50), attempt(2, 1, 10), span(4, 1, 0, "other", [1, 2])]);
    let viewer = run.viewer(100);
    let answer = viewer.ask(&format!("/api/sample?trace={}", trace(3)));
    let attempts = answer["attempts"].as_array().expect("attempts");
    let traces: Vec<_> = attempts.iter().map(|row| row["trace_id"].clone()).collect();
    assert_eq!(traces, [trace(2), trace(3)]);
    let alone = viewer.ask(&format!("/api/sample?trace={}", trace(4)));
    assert_eq!(alone["attempts"], json!([]));
}

#[test]
fn what_is_not_there_is_refused_with_words() {
    let (viewer, _) = case("live");
    let refusals = [
        (format!("/api/sample?trace={}", trace(1)), "404", "no span of trace 0000"),
        ("/api/sample?trace=xyz".to_owned(), "400", "is no trace id: 32 hexadecimal digits"),
        ("/api/sample".to_owned(), "400", "is no trace id"),
        (format!("/api/sample?trace={}", trace(0)), "400", "not all 0"),
        (format!("/api/sample?trace={}", "f".repeat(9_000)), "400", "is no trace id"),
        (format!("/api/span?trace={}&span=1", trace(1)), "400", "is no span id"),
        (format!("/api/span?trace={}&span={:016x}", trace(1), 5), "404", "no span of trace"),
    ];
    for (path, status, words) in refusals {
        let answer = viewer.get(&path);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        assert!(answer.contains(words), "{path}: {answer}");
    }
    let known = viewer.ask("/api/overview")["slowest"][0]["trace_id"].clone();
    let known = known.as_str().expect("a trace");
    let answer = viewer.get(&format!("/api/span?trace={known}&span=0123456789abcdef"));
    assert!(answer.contains("has no span 0123456789abcdef"), "{answer}");
}

#[test]
fn clocks_that_differ_between_processes_are_marked_and_times_stay() {
    const MS: u64 = 1_000_000;
    let run = Run::new();
    run.write(
        "client",
        &[span(1, 1, 0, "call", [100 * MS, 200 * MS]), span(1, 2, 1, "own", [90 * MS, 210 * MS])],
    );
    run.write("server", &[span(1, 3, 1, "serve", [93 * MS, 205 * MS])]);
    let viewer = run.viewer(300 * MS);
    let answer = viewer.ask(&format!("/api/sample?trace={}", trace(1)));
    let expected = "call 10000000+100000000\n  own 0+120000000\n  serve 3000000+112000000\n";
    assert_eq!(drawn(&answer), expected);
    assert_eq!(answer["skews"], json!([[2, 7 * MS, 5 * MS]]));
    assert_eq!(answer["processes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_batch_that_serves_several_traces_is_told_with_the_share_of_this_one() {
    let run = Run::new();
    let link = |trace: u128, share: Option<i64>| {
        let share = share.map(|share| {
            attribute("stagetrace.batch.share", json!({ "intValue": share.to_string() }))
        });
        json!({ "traceId": self::trace(trace), "spanId": format!("{:016x}", 1),
            "attributes": share.into_iter().collect::<Vec<_>>() })
    };
    let mut even = span(9, 1, 0, "forward", [20, 60]);
    even["links"] = json!([link(1, None), link(2, None), link(3, None), link(4, None)]);
    let mut weighted = span(9, 2, 0, "decode", [60, 100]);
    weighted["links"] = json!([link(1, Some(3)), link(2, Some(1))]);
    run.write("one", &[span(1, 1, 0, "a", [10, 90]), span(2, 1, 0, "b", [10, 90])]);
    run.write("two", &[weighted.clone(), even]);
    // What a sender repeats is one batch.
    run.write("two", &[weighted]);
    let viewer = run.viewer(200);
    let of =
        |number| viewer.ask(&format!("/api/sample?trace={}", trace(number)))["batches"].clone();
    let shares = |batches: &Json| -> Vec<(String, f64, String)> {
        let batches = batches.as_array().expect("batches").iter();
        let one = |batch: &Json| {
            let text = |key: &str| batch[key].as_str().expect("a text").to_owned();
            (text("name"), batch["share"].as_f64().expect("a share"), text("share_ns"))
        };
        batches.map(one).collect()
    };
    let row = |name: &str, share, ns: &str| (name.to_owned(), share, ns.to_owned());
    assert_eq!(shares(&of(1)), [row("forward", 0.25, "10"), row("decode", 0.75, "30")]);
    assert_eq!(shares(&of(2)), [row("forward", 0.25, "10"), row("decode", 0.25, "10")]);
    let batch = viewer.ask(&format!("/api/sample?trace={}", trace(9)));
    assert_eq!(batch["batches"], json!([]));
    assert_eq!(drawn(&batch), "forward 0+40 links-away\ndecode 40+40 links-away\n");
}

#[test]
fn threads_and_gpus_have_lanes_of_their_own_and_parallel_spans_rows() {
    let run = Run::new();
    let with = |mut span: Json, attributes: &[(&str, &str)]| {
        span["attributes"] = attributes.iter().map(|(key, value)| text(key, value)).collect();
        span
    };
    run.write(
        "server",
        &[
            with(span(1, 1, 0, "serve", [0, 100].map(|at| at + 1_000)), &[("thread.name", "main")]),
            span(1, 2, 1, "encode", [1_010, 1_050]),
            span(1, 3, 1, "beside", [1_020, 1_060]),
            with(
                span(1, 4, 1, "forward", [1_060, 1_090]),
                &[("thread.name", "gpu"), ("gpu.timestamps", "ok"), ("gpu.adapter", "H200")],
            ),
            span(1, 5, 4, "pass", [1_061, 1_070]),
            span(1, 6, 4, "pass", [1_071, 1_080]),
        ],
    );
    let viewer = run.viewer(2_000);
    let answer = viewer.ask(&format!("/api/sample?trace={}", trace(1)));
    let lanes = answer["lanes"].as_array().expect("lanes");
    let named = |lane: &Json| (lane["name"].clone(), lane["is_gpu"] == true, lane["rows"].clone());
    let lanes: Vec<_> = lanes.iter().map(named).collect();
    let lane = |name: &str, is_gpu, rows: u64| (json!(name), is_gpu, json!(rows));
    assert_eq!(lanes, [lane("main", false, 3), lane("gpu", false, 1), lane("H200", true, 1)]);
    let places = |column: &str| -> Vec<i64> {
        (0..6).map(|place| at(&answer["spans"][column], place)).collect()
    };
    assert_eq!(places("lane"), [0, 0, 0, 1, 2, 2]);
    assert_eq!(places("row"), [0, 1, 2, 0, 0, 0]);
}

#[test]
fn waiting_work_and_the_latencies_that_servers_tell_are_taken_apart() {
    let run = Run::new();
    let double = |key: &str, value: f64| attribute(key, json!({ "doubleValue": value }));
    let mut root = span(1, 1, 0, "llm_request", [1_000, 2_000]);
    root["attributes"] = json!([
        double("gen_ai.latency.time_in_queue", 2e-7),
        double("gen_ai.latency.time_to_first_token", 5e-7),
        double("gen_ai.latency.e2e", 1e-6),
    ]);
    run.write(
        "server",
        &[
            root,
            span(1, 2, 1, "queue_wait", [1_000, 1_200]),
            span(1, 3, 1, "forward", [1_250, 1_900]),
            span(1, 4, 3, "gpu_queue", [1_250, 1_300]),
        ],
    );
    let viewer = run.viewer(3_000);
    let answer = viewer.ask(&format!("/api/sample?trace={}", trace(1)));
    let waits = json!({ "waiting_ns": "250", "between_ns": "150", "working_ns": "600" });
    assert_eq!(answer["waits"], waits);
    let latencies = answer["latencies"].as_array().expect("latencies");
    let parts: Vec<_> =
        latencies.iter().map(|one| (one["part"].clone(), one["ns"].clone())).collect();
    let expected = [("queue", "200"), ("time_to_first_token", "500"), ("total", "1000")];
    assert_eq!(parts, expected.map(|(part, ns)| (json!(part), json!(ns))));
    // In the queue, between, in the GPU's queue, in the pass, after it.
    let critical = json!({ "from": 0, "steps": [1, -1, 3, -1, -2],
        "lengths": [200, 50, 50, 600, 100] });
    assert_eq!(answer["critical"], critical);
}

#[test]
fn a_span_is_told_as_it_was_written_and_long_texts_when_they_are_asked_for() {
    let run = Run::new();
    let long = "ä".repeat(40_000);
    let mut one = span(1, 1, 0, "one", [10, 90]);
    one["kind"] = json!(2);
    one["status"] = json!({ "code": 2, "message": "it \"broke\"" });
    one["attributes"] = json!([text("long", &long), text("<b>", "\u{7}")]);
    one["events"] =
        json!([{ "timeUnixNano": "20", "name": "event", "attributes": [text("k", "v")] }]);
    one["links"] = json!([{ "traceId": trace(1), "spanId": format!("{:016x}", 2) },
        { "traceId": trace(5), "spanId": format!("{:016x}", 2) }]);
    run.write("server", &[one.clone(), span(1, 2, 1, "two", [20, 50])]);
    let viewer = run.viewer(100);
    let path = format!("/api/span?trace={}&span={:016x}", trace(1), 1);
    let answer = viewer.ask(&path);
    assert_eq!((&answer["cut"], &answer["self_ns"]), (&json!(1), &json!("50")));
    assert_eq!(answer["known_links"], json!([true, false]));
    let whole = viewer.ask(&format!("{path}&whole=true"));
    assert_eq!(whole["cut"], 0);
    let written =
        |answer: &Json| answer["otlp"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
    assert_eq!(written(&whole), one);
    let mut cut = one;
    cut["attributes"][0] = text("long", &long[..16 << 10]);
    assert_eq!(written(&answer), cut);
}

#[test]
fn an_answer_that_is_known_is_not_told_again_until_the_trace_changes() {
    let run = Run::new();
    run.write("server", &[span(1, 1, 0, "one", [10, 0])]);
    let viewer = run.viewer(100);
    let path = format!("/api/sample?trace={}", trace(1));
    let answer = viewer.ask(&path);
    let stamp = answer["stamp"].as_str().expect("a stamp");
    let known = format!("{path}&known={stamp}");
    assert_eq!(viewer.ask(&known), json!({ "stamp": stamp, "now_unix_nano": "100" }));
    run.write("server", &[span(1, 1, 0, "one", [10, 60])]);
    let version = viewer.ask("/api/state")["version"].as_u64();
    let begun = std::time::Instant::now();
    while viewer.ask(&known)["spans"].is_null() {
        assert!(begun.elapsed().as_secs() < 20, "version {version:?} stays");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(drawn(&viewer.ask(&known)), "one 0+50\n");
}

#[test]
fn details_that_made_room_are_read_again_when_their_span_is_looked_at() {
    let run = Run::new();
    let spans = |from: u128| -> Vec<Json> {
        let one = |at: u128| {
            let mut span = span(at, 1, 0, "one", [10, 60]);
            span["attributes"] = json!([text("text", &format!("{at} ").repeat(150))]);
            span
        };
        (from..from + 500).map(one).collect()
    };
    (0..40).for_each(|at| run.write("server", &spans(1 + 500 * at)));
    let path = run.file();
    let path = path.to_str().expect("it is UTF-8");
    let viewer = Viewer::start(&["--memory-limit", "8", path]);
    viewer.ask("/api/state");
    run.write("server", &spans(100_000));
    for number in [1, 900, 5_000, 20_000] {
        let answer = viewer.ask(&format!("/api/span?trace={}&span={:016x}", trace(number), 1));
        let attributes = &answer["otlp"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let value = attributes["attributes"][0]["value"]["stringValue"].as_str();
        assert_eq!(value, Some(&*format!("{number} ").repeat(150)), "trace {number}");
    }
}
