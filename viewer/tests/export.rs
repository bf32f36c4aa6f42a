//! What is exported for other tools holds what was read, and nests where it is drawn.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use prost::Message as _;
use serde_json::Value as Json;
use stagetrace_viewer::{ExportFormat, ExportOptions, Samples, Sources, Status, StepChoice, Store};
use tempfile::TempDir;

mod support;

use support::{View, cases, line};

const RUNS: [&str; 5] = ["traces_only", "live", "agent", "rotated", "jaeger"];

fn viewer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer")).args(arguments).output().unwrap()
}

fn export(arguments: &[&str], path: &Path) -> Vec<u8> {
    let mut all = vec!["export"];
    all.extend(arguments);
    all.push(path.to_str().unwrap());
    let output = viewer(&all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A file of lines in a directory of its own.
fn file(lines: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("traces.jsonl"), lines).unwrap();
    directory
}

/// One line of a process, with spans as JSON.
fn process(resource: &str, spans: &[&str]) -> String {
    let spans = spans.join(",");
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{resource}]}},"scopeSpans":[{{"scope":{{}},"spans":[{spans}]}}]}}]}}"#
    ) + "\n"
}

fn text(key: &str, value: &str) -> String {
    format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
}

fn number(key: &str, value: i64) -> String {
    format!(r#"{{"key":"{key}","value":{{"intValue":"{value}"}}}}"#)
}

/// A span of trace 1, from and to in nanoseconds.
fn span(id: u64, parent: u64, name: &str, times: [u64; 2], rest: &str) -> String {
    let [start, end] = times;
    let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
    format!(
        r#"{{"traceId":"{:032x}","spanId":"{id:016x}","parentSpanId":"{parent}","name":"{name}","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}"{rest}}}"#,
        1
    )
}

fn with(attributes: &[String]) -> String {
    format!(r#","attributes":[{}]"#, attributes.join(","))
}

/// Two processes: one calls the other, and links to a span of it; one span is open.
fn two_processes() -> String {
    let server = [text("service.name", "server"), number("process.pid", 7)].join(",");
    let worker = [text("service.name", "worker"), number("process.pid", 7)].join(",");
    let here = [number("thread.id", 3), text("thread.name", "main")];
    let event = r#","events":[{"timeUnixNano":"1700000000000001001","name":"first \"step\""}]"#;
    let stamps = [text("gpu.timestamps", "ok"), text("gpu.adapter", "H200")];
    let link = format!(r#","links":[{{"traceId":"{:032x}","spanId":"{:016x}"}}]"#, 1, 1);
    const T: u64 = 1_700_000_000_000_000_000;
    let mut lines = process(
        &server,
        &[
            &span(1, 0, "request", [T, T + 9000], &with(&here)),
            &span(2, 1, "queue", [T + 1000, T + 2000], &(with(&here) + event)),
            &span(6, 1, "wait", [T + 1500, 0], ""),
        ],
    );
    lines += &process(
        &worker,
        &[
            &span(3, 1, "forward", [T + 2500, T + 5000], &(with(&stamps) + &link)),
            &span(4, 3, "pass", [T + 3000, T + 3999], ""),
            &span(5, 3, "pass", [T + 4000, T + 4100], ""),
        ],
    );
    lines
}

const NOW: &str = "1700000000000010000";

#[test]
fn the_json_of_chrome_is_as_expected_to_the_letter() {
    let directory = file(&two_processes());
    let written = export(&["--chrome", "--now", NOW], directory.path());
    let expected = r#"{"displayTimeUnit":"ns","otherData":{"begin_unix_nano":"1700000000000000000"},"traceEvents":[
{"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"server"}},
{"ph":"M","name":"process_sort_index","pid":7,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"process_name","pid":4194305,"tid":0,"args":{"name":"worker"}},
{"ph":"M","name":"process_sort_index","pid":4194305,"tid":0,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":7,"tid":1,"args":{"name":"main (3)"}},
{"ph":"M","name":"thread_sort_index","pid":7,"tid":1,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":7,"tid":2,"args":{"name":"tasks"}},
{"ph":"M","name":"thread_sort_index","pid":7,"tid":2,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":4194305,"tid":3,"args":{"name":"tasks"}},
{"ph":"M","name":"thread_sort_index","pid":4194305,"tid":3,"args":{"sort_index":2}},
{"ph":"M","name":"thread_name","pid":4194305,"tid":4,"args":{"name":"GPU H200"}},
{"ph":"M","name":"thread_sort_index","pid":4194305,"tid":4,"args":{"sort_index":3}},
{"ph":"X","name":"request","pid":7,"tid":1,"cat":"request","ts":0.000,"dur":9.000,"args":{"thread.id":3,"thread.name":"main","trace_id":"00000000000000000000000000000001","span_id":"0000000000000001"}},
{"ph":"s","name":"link","pid":7,"tid":1,"cat":"link","id":1,"ts":0.000},
{"ph":"s","name":"parent","pid":7,"tid":1,"cat":"parent","id":2,"ts":0.000},
{"ph":"X","name":"queue","pid":7,"tid":1,"cat":"queue","ts":1.000,"dur":1.000,"args":{"thread.id":3,"thread.name":"main","trace_id":"00000000000000000000000000000001","span_id":"0000000000000002","parent_span_id":"0000000000000001"}},
{"ph":"i","name":"first \"step\"","pid":7,"tid":1,"cat":"queue","s":"t","ts":1.001,"args":{}},
{"ph":"X","name":"wait","pid":7,"tid":2,"cat":"wait","ts":1.500,"dur":8.500,"args":{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000006","parent_span_id":"0000000000000001","stagetrace.open":true}},
{"ph":"X","name":"forward","pid":4194305,"tid":3,"cat":"forward","ts":2.500,"dur":2.500,"args":{"gpu.timestamps":"ok","gpu.adapter":"H200","trace_id":"00000000000000000000000000000001","span_id":"0000000000000003","parent_span_id":"0000000000000001"}},
{"ph":"f","name":"link","pid":4194305,"tid":3,"cat":"link","id":1,"ts":2.500,"bp":"e"},
{"ph":"f","name":"parent","pid":4194305,"tid":3,"cat":"parent","id":2,"ts":2.500,"bp":"e"},
{"ph":"X","name":"pass","pid":4194305,"tid":4,"cat":"pass","ts":3.000,"dur":0.999,"args":{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000004","parent_span_id":"0000000000000003"}},
{"ph":"X","name":"pass","pid":4194305,"tid":4,"cat":"pass","ts":4.000,"dur":0.100,"args":{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000005","parent_span_id":"0000000000000003"}}
]}
"#;
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

#[test]
fn slices_of_one_lane_follow_each_other_or_lie_within_each_other() {
    let mut lanes: Vec<Slices> = RUNS.map(|run| of_chrome(&cases("xtuner").join(run))).into();
    // Every way in which the times of two spans can stand to each other, on a thread and off it.
    let here = with(&[number("thread.id", 1)]);
    let mut spans = Vec::new();
    for number in 0..400_u64 {
        let (start, len) = (number * 37 % 61 + 1, number * 53 % 29);
        let rest = if number % 3 == 0 { "" } else { &*here };
        spans.push(span(number + 1, number / 2, "any", [start, start + len], rest));
    }
    let spans: Vec<&str> = spans.iter().map(String::as_str).collect();
    let directory = file(&process("", &spans));
    let made = of_chrome(directory.path());
    assert_eq!(made.values().map(Vec::len).sum::<usize>(), spans.len());
    lanes.push(made);
    let mut nested = 0;
    for slices in lanes.iter().flat_map(HashMap::values) {
        let mut running: Vec<u64> = Vec::new();
        for &(begin, end) in slices {
            while running.last().is_some_and(|until| *until <= begin) {
                running.pop();
            }
            assert!(running.last().is_none_or(|until| end <= *until), "{begin} to {end}");
            nested += usize::from(!running.is_empty());
            running.push(end);
        }
    }
    assert!(nested > 500, "{nested} slices lie within others");
}

/// The slices of each lane, in nanoseconds.
type Slices = HashMap<(u64, u64), Vec<(u64, u64)>>;

fn of_chrome(path: &Path) -> Slices {
    let json: Json = serde_json::from_slice(&export(&["--chrome", "--now", "9"], path)).unwrap();
    let mut lanes = Slices::new();
    for event in json["traceEvents"].as_array().unwrap() {
        if event["ph"] == "X" {
            let lane = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let nanos = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as u64;
            let begin = nanos("ts");
            lanes.entry(lane).or_default().push((begin, begin + nanos("dur")));
        }
    }
    lanes
}

#[test]
fn what_is_exported_as_otlp_reads_as_what_it_was_exported_from() {
    for run in RUNS.into_iter().filter(|run| *run != "live") {
        let before = View::of(&[cases("xtuner").join(run)]);
        let written = export(&["--otlp"], &cases("xtuner").join(run));
        let directory = file(str::from_utf8(&written).unwrap());
        let after = View::of(&[directory.path()]);
        assert!(!before.spans().is_empty() && before.spans() == after.spans(), "{run}");
        let now = 1_800_000_000_000_000_000;
        let statuses = |view: &View| view.json(now)["statuses"].clone();
        assert_eq!(statuses(&before), statuses(&after), "{run}");
    }
}

#[test]
fn spans_that_are_open_have_no_end_in_otlp_and_stay_open() {
    let directory = file(&two_processes());
    let written = export(&["--otlp"], directory.path());
    let again = file(str::from_utf8(&written).unwrap());
    let view = View::of(&[again.path()]);
    assert_eq!(view.spans(), View::of(&[directory.path()]).spans());
    let open = view.spans().iter().filter(|span| span.contains("end_unix_nano: 0,")).count();
    assert_eq!(open, 1);
}

#[test]
fn what_was_open_when_its_process_died_stays_lost() {
    let lost = r#","attributes":[{"key":"stagetrace.open","value":{"boolValue":true}}]"#;
    let directory = file(&process("", &[&span(1, 0, "one", [5, 9], lost)]));
    let written = export(&["--otlp"], directory.path());
    let again = file(str::from_utf8(&written).unwrap());
    let view = View::of(&[again.path()]);
    assert_eq!(view.one().status, Status::Lost);
    assert!(String::from_utf8(written).unwrap().contains(r#""endTimeUnixNano":"9""#));
    let chrome = String::from_utf8(export(&["--chrome"], directory.path())).unwrap();
    assert!(chrome.contains(r#""dur":0.004,"args":{"stagetrace.open":true,"#), "{chrome}");
}

#[test]
fn details_that_cannot_be_read_again_are_missed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let filler = |id: u64| with(&[text("filler", &format!("{id} {}", "x".repeat(2000)))]);
    let lines: String = (1..=3000)
        .map(|id| process("", &[&span(id, 0, "one", [id, id + 1], &filler(id))]))
        .collect();
    fs::write(&path, lines).unwrap();
    let mut sources = Sources::open([&path]).unwrap();
    let (mut store, mut samples) = (Store::new(2 << 20), Samples::default());
    sources.poll(&mut store);
    samples.refresh(&mut store);
    fs::write(&path, "").unwrap();
    let options = ExportOptions {
        format: ExportFormat::Otlp,
        traces: Vec::new(),
        step: StepChoice::All,
        now: 1,
    };
    let mut out = Vec::new();
    let exported =
        stagetrace_viewer::export(&mut sources, &mut store, &samples, &options, &mut out).unwrap();
    assert_eq!(exported.spans, 3000);
    let there = str::from_utf8(&out).unwrap().matches(r#""key":"filler""#).count() as u64;
    assert!((1..3000).contains(&there), "{there}");
    assert_eq!(exported.without_details, 3000 - there);
}

#[test]
fn only_the_traces_and_steps_that_are_asked_for_are_written() {
    let lines: String = (1..=3).map(|trace| line(trace, 1, 0, "one", [1, 2])).collect();
    let directory = file(&lines);
    let (first, third) = (format!("{:032x}", 1), format!("{:016x}", 3));
    let written = export(&["--otlp", "--trace", &first, "--trace", &third], directory.path());
    let again = file(str::from_utf8(&written).unwrap());
    let view = View::of(&[again.path()]);
    let ids = view.store.traces().map(|trace| view.store.trace_id(trace).to_u128());
    assert_eq!(ids.collect::<Vec<_>>(), [1, 3]);

    let run = cases("xtuner").join("live");
    let written = export(&["--otlp", "--step", "latest"], &run);
    let again = file(str::from_utf8(&written).unwrap());
    let (all, latest) = (View::of(&[run]), View::of(&[again.path()]));
    let latest = latest.json(1);
    assert_eq!(latest["available_steps"], serde_json::json!([all.json(1)["latest_step"]]));
}

#[test]
fn details_that_made_room_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let filler = |id: u64| with(&[text("filler", &format!("{id} {}", "x".repeat(2000)))]);
    let lines: String = (1..=3000)
        .map(|id| process("", &[&span(id, 0, "one", [id, id + 1], &filler(id))]))
        .collect();
    fs::write(directory.path().join("traces.jsonl"), lines).unwrap();
    for format in ["--otlp", "--chrome", "--perfetto"] {
        let roomy = export(&[format, "--now", "1"], directory.path());
        let tight = export(&[format, "--now", "1", "--memory-limit", "2"], directory.path());
        assert!(roomy.len() > 6_000_000 && roomy == tight, "{format}");
    }
}

#[test]
fn hostile_names_stay_texts() {
    let name = r#"\"}],\u001b[2J\n\u2028</script>世"#;
    let directory = file(&process(&text("service.name", name), &[&span(1, 0, name, [1, 2], "")]));
    let json: Json =
        serde_json::from_slice(&export(&["--chrome"], directory.path())).expect("it is JSON");
    let is_it = |event: &&Json| event["ph"] == "X";
    let event = json["traceEvents"].as_array().unwrap().iter().find(is_it).unwrap();
    assert_eq!(event["name"], "\"}],\u{1b}[2J\n\u{2028}</script>世");
    assert_eq!(perfetto(directory.path()).slices[0].name, event["name"].as_str().unwrap());
}

#[test]
fn a_file_takes_its_name_when_it_is_whole_and_no_input_is_overwritten() {
    let directory = file(&line(1, 1, 0, "one", [1, 2]));
    let input = directory.path().join("traces.jsonl");
    let output = directory.path().join("out.json");
    let (input, output) = (input.to_str().unwrap(), output.to_str().unwrap());
    assert!(viewer(&["export", "--chrome", "-o", output, input]).status.success());
    assert!(fs::read_to_string(output).unwrap().ends_with("]}\n"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing else is left");
    let before = fs::read(input).unwrap();
    let refused = viewer(&["export", "--otlp", "-o", input, input]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("it is what is read"));
    assert!(!refused.status.success() && fs::read(input).unwrap() == before);
    support::append(directory.path().join("traces.jsonl").as_path(), "torn");
    let noted = viewer(&["export", "--otlp", input]);
    assert!(String::from_utf8_lossy(&noted.stderr).contains("note: 1 lines could not be read"));
    let unknown = viewer(&["export", "--otlp", "--trace", &"ab".repeat(16), input]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no trace abab"));
    let both = viewer(&["export", "--otlp", "--chrome", input]);
    assert!(String::from_utf8_lossy(&both.stderr).contains("cannot be used with"));
}

/// As much of Perfetto's messages as is written, by the numbers in its .proto files.
mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(crate) packet: Vec<TracePacket>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub(crate) timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub(crate) trusted_packet_sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub(crate) track_event: Option<TrackEvent>,
        #[prost(uint32, optional, tag = "13")]
        pub(crate) sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "60")]
        pub(crate) track_descriptor: Option<TrackDescriptor>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        pub(crate) uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub(crate) name: Option<String>,
        #[prost(message, optional, tag = "3")]
        pub(crate) process: Option<ProcessDescriptor>,
        #[prost(uint64, optional, tag = "5")]
        pub(crate) parent_uuid: Option<u64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct ProcessDescriptor {
        #[prost(int32, optional, tag = "1")]
        pub(crate) pid: Option<i32>,
        #[prost(string, optional, tag = "6")]
        pub(crate) process_name: Option<String>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub(crate) debug_annotations: Vec<DebugAnnotation>,
        #[prost(int32, optional, tag = "9")]
        pub(crate) r#type: Option<i32>,
        #[prost(uint64, optional, tag = "11")]
        pub(crate) track_uuid: Option<u64>,
        #[prost(string, optional, tag = "23")]
        pub(crate) name: Option<String>,
        #[prost(fixed64, repeated, packed = "false", tag = "47")]
        pub(crate) flow_ids: Vec<u64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct DebugAnnotation {
        #[prost(bool, optional, tag = "2")]
        pub(crate) bool_value: Option<bool>,
        #[prost(int64, optional, tag = "4")]
        pub(crate) int_value: Option<i64>,
        #[prost(string, optional, tag = "6")]
        pub(crate) string_value: Option<String>,
        #[prost(string, optional, tag = "10")]
        pub(crate) name: Option<String>,
    }
}

/// What a reader of Perfetto's makes of a trace.
#[derive(Default)]
struct Drawn {
    /// Names of tracks, below those of their processes.
    tracks: Vec<(String, String)>,
    slices: Vec<Drawing>,
}

#[derive(Debug, PartialEq)]
struct Drawing {
    track: String,
    name: String,
    times: [u64; 2],
    /// How many slices it lies within.
    depth: usize,
    flows: Vec<u64>,
    annotations: Vec<String>,
}

fn perfetto(path: &Path) -> Drawn {
    let bytes = export(&["--perfetto", "--now", NOW], path);
    let trace = proto::Trace::decode(&*bytes).expect("it is a trace");
    assert_eq!(trace.packet[0].sequence_flags, Some(1), "nothing before it counts");
    let mut drawn = Drawn::default();
    let mut names = HashMap::new();
    let mut events = Vec::new();
    for packet in trace.packet {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(track) = packet.track_descriptor {
            let name = track.process.clone().and_then(|process| process.process_name);
            let name = name.or(track.name).unwrap();
            if let Some(parent) = track.parent_uuid {
                let parent: &String = &names[&parent];
                drawn.tracks.push((parent.clone(), name.clone()));
            }
            assert_eq!(names.insert(track.uuid.unwrap(), name), None);
        }
        events.extend(packet.track_event.map(|event| (packet.timestamp.unwrap(), event)));
    }
    // Readers sort so, and keep the order of those of the same time.
    events.sort_by_key(|(at, _)| *at);
    let mut running: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, event) in events {
        let of_track = running.entry(event.track_uuid.unwrap()).or_default();
        match event.r#type {
            Some(1) => {
                of_track.push(drawn.slices.len());
                let annotations = event.debug_annotations.into_iter().map(|one| {
                    let values = [
                        one.string_value,
                        one.int_value.map(|v| v.to_string()),
                        one.bool_value.map(|v| v.to_string()),
                    ];
                    format!(
                        "{}={}",
                        one.name.unwrap(),
                        values.into_iter().flatten().collect::<String>()
                    )
                });
                drawn.slices.push(Drawing {
                    track: names[&event.track_uuid.unwrap()].clone(),
                    name: event.name.unwrap(),
                    times: [at, 0],
                    depth: of_track.len() - 1,
                    flows: event.flow_ids,
                    annotations: annotations.collect(),
                });
            }
            Some(2) => drawn.slices[of_track.pop().expect("it has begun")].times[1] = at,
            other => assert_eq!(other, Some(3)),
        }
    }
    assert!(running.values().all(Vec::is_empty), "every slice has ended");
    drawn
}

#[test]
fn a_reader_of_perfetto_s_trace_draws_each_span_where_and_when_it_was() {
    let directory = file(&two_processes());
    let drawn = perfetto(directory.path());
    let tracks: Vec<_> = drawn.tracks.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        tracks,
        [("server", "main (3)"), ("server", "tasks"), ("worker", "tasks"), ("worker", "GPU H200")]
    );
    const T: u64 = 1_700_000_000_000_000_000;
    let shown: Vec<_> = drawn
        .slices
        .iter()
        .map(|one| {
            let [begin, end] = one.times.map(|at| at - T);
            (&*one.track, &*one.name, begin, end, one.depth, &*one.flows)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("main (3)", "request", 0, 9000, 0, &[1, 2][..]),
            ("main (3)", "queue", 1000, 2000, 1, &[]),
            ("tasks", "wait", 1500, 10000, 0, &[]),
            ("tasks", "forward", 2500, 5000, 0, &[1, 2]),
            ("GPU H200", "pass", 3000, 3999, 0, &[]),
            ("GPU H200", "pass", 4000, 4100, 0, &[]),
        ]
    );
    assert_eq!(
        drawn.slices[2].annotations,
        [
            "trace_id=00000000000000000000000000000001",
            "span_id=0000000000000006",
            "parent_span_id=0000000000000001",
            "stagetrace.open=true"
        ]
    );
}

#[test]
fn every_run_is_drawn_by_a_reader_of_perfetto_s_trace_as_its_spans_are() {
    for run in RUNS {
        let path = cases("xtuner").join(run);
        let drawn = perfetto(&path);
        let view = View::of(&[&path]);
        assert_eq!(drawn.slices.len(), view.store.stats().spans, "{run}");
        let numbers = view.store.traces().flat_map(|trace| view.store.spans_of(trace));
        let spans = numbers.map(|number| view.store.span(number)).filter(|span| span.has_ended());
        let mut expected: Vec<_> =
            spans.map(|span| (span.start_unix_nano, span.end_unix_nano, span.name)).collect();
        let slices = drawn.slices.into_iter();
        let mut found: Vec<_> = slices
            .filter(|one| !one.annotations.contains(&"stagetrace.open=true".to_owned()))
            .map(|one| (one.times[0], one.times[1], one.name))
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{run}");
    }
}
