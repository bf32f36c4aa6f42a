//! Files of OTLP in protobuf, and packed ones: what they give is what the same spans give as JSON.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use stagetrace_viewer::{Samples, Sources, Store};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::otlp::protobuf::write_request;

mod support;

use support::{View, append, cases, line};

fn otlp(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/cases/otlp")).join(name)
}

fn packed(plain: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// The spans of lines as a message.
fn message(lines: &str) -> Vec<u8> {
    write_request(&read_lines(lines.as_bytes(), &ReadOptions::default()).spans)
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes(), message].concat()
}

fn ids(view: &View) -> Vec<u128> {
    view.store.traces().map(|trace| view.store.trace_id(trace).to_u128()).collect()
}

#[test]
fn a_file_of_protobuf_gives_the_spans_of_the_same_file_as_json() {
    let pairs = [
        ("all_values.pb", "all_values.collector.jsonl", 7),
        ("all_values.pb.gz", "all_values.collector.jsonl", 7),
        ("all_values.unknown_fields.pb", "all_values.collector.jsonl", 7),
        ("js_sdk.pb", "js_sdk.json", 2),
        ("empty.pb", "empty.jsonl", 0),
    ];
    for (file, same, spans) in pairs {
        let view = View::of(&[otlp(file)]);
        assert_eq!(view.store.stats().spans, spans, "{file}");
        assert_eq!(view.spans(), View::of(&[otlp(same)]).spans(), "{file}");
        let report = &view.report().files[0];
        assert_eq!((report.damaged_lines, report.torn_line), (0, None), "{file}");
    }
    assert_eq!(View::of(&[otlp("all_values_finite.pb")]).store.stats().spans, 7);
}

#[test]
fn packed_lines_and_documents_are_those_that_were_packed() {
    let directory = tempfile::tempdir().unwrap();
    let run = cases("xtuner/agent");
    let files = [
        (run.join("traces.jsonl"), "traces.jsonl.gz"),
        (otlp("all_values.pretty.json"), "pretty.json.gz"),
        (cases("xtuner/jaeger/traces.json"), "jaeger.json.gz"),
    ];
    for (plain, name) in files {
        let path = directory.path().join(name);
        fs::write(&path, packed(fs::read(&plain).unwrap())).unwrap();
        let (view, expected) = (View::of(&[&path]), View::of(&[&plain]));
        assert!(view.store.stats().spans > 0, "{name}");
        assert_eq!(view.spans(), expected.spans(), "{name}");
        assert_eq!(view.report().files[0].bytes, fs::metadata(&plain).unwrap().len(), "{name}");
    }
}

#[test]
fn a_run_in_protobuf_is_read_with_what_was_rotated_away_and_packed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: Vec<u8>| fs::write(directory.path().join(name), bytes).unwrap();
    write("traces-2026-07-15T01-04-10.125.pb.gz", packed(message(&line(1, 1, 0, "a", [5, 9]))));
    write("traces.pb", message(&line(2, 1, 0, "b", [5, 9])));
    write("old.1.jsonl.gz", packed(line(3, 1, 0, "c", [5, 9])));
    write("old.jsonl", line(4, 1, 0, "d", [5, 9]).into());
    assert_eq!(ids(&View::of(&[directory.path()])), [3, 4, 1, 2]);
    assert_eq!(ids(&View::of(&[directory.path().join("traces.pb")])), [1, 2]);
    assert_eq!(ids(&View::of(&[directory.path().join("old.jsonl")])), [3, 4]);
}

#[test]
fn messages_with_their_lengths_are_followed_whatever_the_file_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let frames: Vec<u8> =
        (1..=50).flat_map(|at| framed(&message(&line(at, 1, 0, "x", [5, 9])))).collect();
    for name in ["traces.pb", "traces.proto"] {
        let path = directory.path().join(name);
        fs::write(&path, &frames[..2]).unwrap();
        let mut view = View::of(&[&path]);
        let mut seen = 0;
        for piece in frames[2..].chunks(37) {
            append(&path, piece);
            view.poll();
            let spans = view.store.stats().spans;
            assert!(spans >= seen, "{name}");
            seen = spans;
        }
        assert_eq!(ids(&view), (1..=50).collect::<Vec<_>>(), "{name}");
        let report = &view.report().files[0];
        assert_eq!((report.lines, report.torn_line, report.restarts), (50, None, 0), "{name}");
        assert_eq!(view.store.stats().duplicates, 0, "{name}");
        assert_eq!(report.bytes, frames.len() as u64, "{name}");
    }
}

#[test]
fn a_torn_or_damaged_message_costs_itself_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.pb");
    let sound = |at| framed(&message(&line(at, 1, 0, "x", [5, 9])));
    let empty = framed(b"");
    fs::write(&path, [sound(1), framed(b"garbage"), empty, sound(2), vec![0, 0, 1]].concat())
        .unwrap();
    let view = View::of(&[&path]);
    assert_eq!(ids(&view), [1, 2]);
    let report = &view.report().files[0];
    assert_eq!((report.lines, report.damaged_lines, report.torn_line), (4, 1, Some(5)));
    assert_eq!(report.damaged[0].0, 2);
}

#[test]
fn a_message_that_is_too_long_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.pb");
    let long = framed(&vec![7; 65 << 20]);
    fs::write(&path, [long, framed(&message(&line(1, 1, 0, "x", [5, 9])))].concat()).unwrap();
    let view = View::of(&[&path]);
    assert_eq!(ids(&view), [1]);
    assert_eq!(view.report().files[0].damaged, [(1, "longer than 64 MiB".to_owned())]);
}

#[test]
fn a_message_that_is_still_being_written_is_read_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.pb");
    let whole = message(&line(1, 1, 0, "x", [5, 9]));
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let mut view = View::of(&[&path]);
    assert_eq!((view.store.stats().spans, view.report().files[0].torn_line), (0, Some(1)));
    append(&path, &whole[whole.len() - 1..]);
    view.poll();
    assert_eq!((view.store.stats().spans, view.report().files[0].torn_line), (1, None));
    view.poll();
    assert_eq!((view.store.stats().duplicates, view.report().files[0].restarts), (0, 0));
}

#[test]
fn a_packed_file_is_followed_in_whole_members_and_torn_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl.gz");
    let lines = |from: u128| -> String {
        (from..from + 1000).map(|at| line(at, 1, 0, "x", [5, 9])).collect()
    };
    fs::write(&path, packed(lines(1))).unwrap();
    let mut view = View::of(&[&path]);
    assert_eq!(view.store.stats().spans, 1000);
    let second = packed(lines(1001));
    append(&path, &second[..second.len() / 2]);
    view.poll();
    let torn = view.store.stats().spans;
    assert!((1001..2000).contains(&torn), "{torn}");
    assert!(view.report().files[0].torn_line.is_some());
    append(&path, &second[second.len() / 2..]);
    view.poll();
    view.poll();
    let stats = view.store.stats();
    assert_eq!((stats.spans, stats.duplicates), (2000, 0));
    let report = &view.report().files[0];
    assert_eq!((report.torn_line, report.damaged_lines, report.lines), (None, 0, 2000));
    // Written anew, of the same length or not.
    fs::write(&path, packed(lines(3001))).unwrap();
    view.poll();
    assert_eq!(view.store.stats().spans, 3000);
    assert_eq!(view.report().files[0].restarts, 1);
}

#[test]
fn a_small_file_that_unpacks_to_a_huge_line_costs_that_line_and_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl.gz");
    // A member may stand there many times.
    let (some, sound) = (packed(vec![b' '; 8 << 20]), packed(line(1, 1, 0, "x", [5, 9])));
    fs::write(&path, [some.repeat(9), packed("\n"), sound].concat()).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let view = View::of(&[&path]);
    assert_eq!(ids(&view), [1]);
    assert_eq!(view.report().files[0].damaged, [(1, "longer than 64 MiB".to_owned())]);
}

#[test]
fn a_corrupt_packed_file_says_so_once_and_keeps_what_came_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl.gz");
    fs::write(&path, [packed(line(1, 1, 0, "x", [5, 9])), vec![7; 1000]].concat()).unwrap();
    let mut view = View::of(&[&path]);
    append(&path, [9; 10]);
    view.poll();
    assert_eq!(ids(&view), [1]);
    let report = &view.report().files[0];
    assert_eq!((report.damaged_lines, &report.error), (1, &None), "{:?}", report.damaged);
}

#[test]
fn details_of_messages_and_of_packed_files_make_room_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let span = |trace: u128| {
        let text = format!("{trace} ").repeat(100);
        let attribute =
            format!(r#""attributes":[{{"key":"k","value":{{"stringValue":"{text}"}}}}],"name""#);
        line(trace, 1, 0, "x", [5, 9 + trace as u64]).replace(r#""name""#, &attribute)
    };
    let lines: Vec<String> = (1..=6_000).map(span).collect();
    let frames = |lines: &[String]| -> Vec<u8> {
        lines.chunks(100).flat_map(|some| framed(&message(&some.concat()))).collect()
    };
    let (first, second) = lines.split_at(5_000);
    for (name, parts) in [
        ("frames.pb", [frames(first), frames(second)]),
        ("frames.pb.gz", [packed(frames(first)), packed(frames(second))]),
        ("lines.jsonl.gz", [packed(first.concat()), packed(second.concat())]),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, &parts[0]).unwrap();
        let limit = View::of(&[&path]).store.stats().bytes / 2;
        let (sources, store) = (Sources::open([&path]).unwrap(), Store::new(limit));
        let mut view = View { sources, store, samples: Samples::default() };
        view.poll();
        append(&path, &parts[1]);
        view.poll();
        assert_eq!((view.store.stats().spans, view.store.stats().refused), (6_000, 0), "{name}");
        let mut absent = 0;
        for trace in view.store.traces().step_by(500) {
            let span = view.store.spans_of(trace).next().unwrap();
            absent += usize::from(view.store.span(span).attributes.is_empty());
            view.sources.restore(&mut view.store, trace);
            let id = view.store.trace_id(trace).to_u128();
            let text = format!("{id} ").repeat(100);
            let span = view.store.span(span);
            assert_eq!(span.attributes[0].1.as_str(), Some(&*text), "{name}");
        }
        assert!(absent > 2, "{name}: {absent} of twelve had made room");
    }
}
