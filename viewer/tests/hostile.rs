//! Files that mean harm: they cost a line, or a span, and neither a crash nor a hang.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use proptest::prelude::*;

mod support;

use support::{View, append, line};

const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
const NOW: u64 = 1_784_173_500_000_000_001;

fn view_of(text: impl AsRef<[u8]>) -> View {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, text).unwrap();
    let view = View::of(&[&path]);
    // It sums up as well, and prints every trace.
    view.json(NOW);
    for trace in view.store.traces() {
        stagetrace_viewer::tree(&view.store, &view.samples, trace, NOW);
    }
    view
}

#[test]
fn deep_nesting_costs_its_line() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}0{}", open.repeat(200_000), close.repeat(200_000));
        let value = format!(r#"{{"resourceSpans":[{{"resource":{deep}}}]}}"#);
        let live = format!(r#"{{"event":"start","attributes":{{"a":{deep}}}}}"#);
        let jaeger = format!(r#"{{"data":[{{"spans":[{deep}]}}]}}"#);
        for hostile in [&deep, &value, &live, &jaeger] {
            let view = view_of(format!("{hostile}\n{}", line(1, 1, 0, "sound", [5, 9])));
            assert_eq!(view.store.stats().spans, 1);
        }
    }
    let deep = format!("{}{}", r#"{"arrayValue":{"values":["#.repeat(5_000), "]}}".repeat(5_000));
    let span = line(1, 1, 0, "x", [5, 9]);
    let hostile = span
        .replace(r#""name""#, &format!(r#""attributes":[{{"key":"k","value":{deep}}}],"name""#));
    assert_eq!(view_of(hostile + &span).store.stats().spans, 1);
}

#[test]
fn a_line_that_is_too_long_costs_itself_alone_and_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let long = "x".repeat(65 << 20);
    fs::write(&path, format!("{long}\n{}{long}", line(1, 1, 0, "sound", [5, 9]))).unwrap();
    let view = View::of(&[&path]);
    assert_eq!(view.store.stats().spans, 1);
    let report = &view.report().files[0];
    assert_eq!(report.damaged, [(1, "longer than 64 MiB".to_owned())]);
    assert_eq!(report.torn_line, Some(3));
}

#[test]
fn huge_texts_are_kept_once_and_messages_are_cut() {
    let name = "n".repeat(1 << 20);
    let span = line(1, 1, 0, &name, [5, 9]);
    let message = format!(r#""status":{{"code":2,"message":"{}"}},"name""#, "ü".repeat(1 << 20));
    let view = view_of(span.replace(r#""name""#, &message));
    let failure = view.store.failure(view.one().error.unwrap()).unwrap();
    assert!(view.text(failure.message).unwrap().len() <= 4096);
    let spans: Vec<_> = view.store.spans_of(view.one().trace).collect();
    assert_eq!(view.store.span(spans[0]).status.message.len(), 2 << 20);
}

#[test]
fn cycles_among_parents_neither_hang_nor_hide_spans() {
    let own = line(1, 1, 1, "its own parent", [5, 9]);
    let two = line(2, 1, 2, "one", [5, 9]) + &line(2, 2, 1, "other", [5, 9]);
    let ring: String =
        (0..1000).map(|at| line(3, at + 1, (at + 1) % 1000 + 1, "ring", [5, 9])).collect();
    let view = view_of(own + &two + &ring + &line(3, 2000, 1, "below the ring", [5, 9]));
    let summary = view.json(NOW);
    assert_eq!((&summary["samples"], &summary["finished_spans"]), (&3.into(), &1004.into()));
    let ring = view.store.find_trace(stagetrace_wire::id::TraceId::from_u128(3).unwrap()).unwrap();
    let text = stagetrace_viewer::tree(&view.store, &view.samples, ring, NOW);
    assert_eq!(text.lines().count(), 1002, "each span once, and the sample");
}

#[test]
fn a_chain_of_a_hundred_thousand_spans_takes_a_moment() {
    let chain: String = (0..100_000).rev().map(|at| line(1, at + 1, at, "deep", [5, 9])).collect();
    let start = Instant::now();
    let view = view_of(chain);
    assert_eq!(view.one().finished_spans, 100_000);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_hundred_thousand_rollouts_in_one_trace_take_a_moment() {
    let rollout = |at: u64| {
        let span = line(1, at, 0, "x", [5, 9]);
        let attribute = format!(
            r#""attributes":[{{"key":"rollout.id","value":{{"stringValue":"r{at}"}}}}],"name""#
        );
        span.replace(r#""name""#, &attribute)
    };
    let start = Instant::now();
    let view = view_of((1..=100_000).map(rollout).collect::<String>());
    assert_eq!(view.samples.iter(&view.store).count(), 100_000);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn as_many_processes_as_spans_take_a_moment() {
    let process = |at: u128| {
        let resource = format!(
            r#""resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"s{at}"}}}}]}}"#
        );
        line(at, 1, 0, "x", [5, 9]).replace(r#""resource":{}"#, &resource)
    };
    let start = Instant::now();
    let view = view_of((1..=50_000).map(process).collect::<String>());
    assert_eq!(view.store.origins().len(), 50_000);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn duplicate_ids_count_once_and_the_first_end_counts() {
    let view = view_of(
        line(1, 1, 0, "without an end", [5, 0])
            + &line(1, 1, 0, "first", [5, 9])
            + &line(1, 1, 0, "second", [5, 19]),
    );
    assert_eq!(view.one().duration, Some(4));
    assert_eq!((view.store.stats().spans, view.store.stats().duplicates), (1, 1));
}

#[test]
fn spans_of_ten_years_and_spans_that_end_before_they_begin_are_added_up() {
    let spans = [
        line(1, 1, 0, "decade", [NOW - 10 * YEAR, NOW]),
        line(2, 1, 0, "decade", [NOW, NOW - 10 * YEAR]),
        line(3, 1, 0, "decade", [0, u64::MAX]),
        line(4, 1, 0, "decade", [u64::MAX, u64::MAX]),
        line(5, 1, 0, "decade", [u64::MAX, 0]),
    ];
    let summary = view_of(spans.concat()).json(NOW);
    let sum = u128::from(u64::MAX) + u128::from(10 * YEAR);
    assert_eq!(summary["stages"][0]["sum_ns"], sum.to_string());
    assert_eq!(summary["stages"][0]["max_ns"], u64::MAX.to_string());
    assert_eq!(summary["open_samples"][0]["age_ns"], "0", "it began in the future");
}

#[test]
fn live_records_with_impossible_times_are_read() {
    let record = |time: &str, id: u64| {
        format!(
            r#"{{"event":"start","time_s":{time},"span_name":"x","span_name_path":[],"attributes":{{}},"trace_id":"{id:032x}","span_id":"{id:016x}"}}"#
        ) + "\n"
    };
    let times = ["-1", "1e300", "0", "1e-300"];
    let text: String = times.iter().zip(1..).map(|(time, id)| record(time, id)).collect();
    let view = view_of(text);
    assert_eq!(view.samples.iter(&view.store).filter(|sample| sample.is_open).count(), 4);
}

#[test]
fn what_is_no_trace_file_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("notes.txt"), "hello\nworld\n").unwrap();
    fs::write(path("numbers.json"), "{\"a\": 1}\n").unwrap();
    fs::write(path("binary.recording"), [7; 100_000]).unwrap();
    fs::create_dir(path("empty")).unwrap();
    let refused = [
        ("notes.txt", "notes.txt is no trace file: it holds neither OTLP, nor lines of XTuner"),
        ("numbers.json", "numbers.json is no trace file"),
        ("binary.recording", "cannot read binary.recording: this is not a recording"),
        ("empty", "holds neither .jsonl files nor recordings; name the directory of a run"),
        ("missing.jsonl", "name a run's directory, a .jsonl, a .json, a .pb or a .recording"),
    ];
    for (name, message) in refused {
        let output = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
            .arg("summary")
            .arg(path(name))
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(message), "{name}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn names_cannot_do_anything_to_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, line(1, 1, 0, "\\u001b[2J\\u0007\\nname", [5, 9])).unwrap();
    let trace = format!("{:032x}", 1);
    for arguments in [vec!["summary"], vec!["tree", &trace]] {
        let output = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
            .args(arguments)
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(r"\u{1b}[2J\u{7}\nname"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}']));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        view_of(bytes);
    }

    #[test]
    fn any_json_of_the_right_words_is_read_to_its_end(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..60),
    ) {
        view_of(words.concat());
    }
}

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\"",
    "0",
    "-1",
    "1e9",
    "null",
    "true",
    "\"resourceSpans\":[",
    "\"spans\":[{",
    "\"data\":[{",
    "\"event\":\"start\",",
    "\"event\":\"end\",",
    "\"time_s\":1,",
    "\"traceId\":\"00000000000000000000000000000001\",",
    "\"spanId\":\"0000000000000001\",",
    "\"parentSpanId\":\"0000000000000001\",",
    "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":1}}],",
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{",
    "}]}]}]}\n",
    "\"links\":[{}],",
    "\"events\":[{}],",
];

#[cfg(unix)]
#[test]
fn pipes_and_devices_beside_the_files_of_a_run_hold_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    append(&dir.path().join("a.jsonl"), line(1, 1, 0, "x", [5, 9]));
    fs::create_dir(dir.path().join("folder.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("device.jsonl")).unwrap();
    for name in ["pipe.jsonl", "pipe.pb", "pipe.jsonl.gz", "pipe.recording"] {
        let made = Command::new("mkfifo").arg(dir.path().join(name)).status();
        assert!(made.unwrap().success());
    }
    let (said, heard) = std::sync::mpsc::channel();
    let path = dir.path().to_owned();
    std::thread::spawn(move || {
        let mut view = View::of(&[path]);
        view.poll();
        said.send((view.json(NOW)["finished_spans"].clone(), view.json(NOW)["unread"].clone()))
    });
    let (spans, unread) = heard.recv_timeout(support::LONG).expect("nothing blocks");
    assert_eq!(spans, 1);
    let unread = unread.to_string();
    for name in ["folder.jsonl", "device.jsonl", "pipe.jsonl", "pipe.pb", "pipe.recording"] {
        assert!(unread.contains(name), "{unread}");
    }
}
