//! A store of limited size: details make room first, and are read again when they are asked for.

use std::fs;
use std::path::Path;

use stagetrace_viewer::{Samples, Sources, Store, Summary, SummaryOptions};

mod support;

use support::{View, append, line};

/// Lines of spans of which each has a text of its own.
fn spans(traces: std::ops::Range<u128>) -> String {
    let span = |trace: u128| {
        let text = format!("{trace} ").repeat(100);
        let attribute =
            format!(r#""attributes":[{{"key":"k","value":{{"stringValue":"{text}"}}}}],"name""#);
        line(trace, 1, 0, "x", [5, 9 + trace as u64]).replace(r#""name""#, &attribute)
    };
    traces.map(span).collect()
}

fn limited(path: &Path, bytes: usize) -> View {
    let sources = Sources::open([path]).unwrap();
    let mut view = View { sources, store: Store::new(bytes), samples: Samples::default() };
    view.poll();
    view
}

fn summary(view: &View) -> String {
    let options = SummaryOptions { step: Default::default(), now: 1000, stuck: Default::default() };
    let summary = Summary::new(&view.store, &view.samples, &view.report(), &options).unwrap();
    serde_json::to_string(&summary).unwrap()
}

#[test]
fn details_make_room_for_spans_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, spans(1..40_000)).unwrap();
    let all = View::of(&[&path]);
    let limit = all.store.stats().bytes / 2;
    let mut few = limited(&path, limit);
    append(&path, spans(40_000..40_002));
    few.poll();
    let mut all = all;
    all.poll();

    let stats = few.store.stats();
    assert_eq!((stats.spans, stats.refused), (40_001, 0));
    assert!(stats.bytes < limit + (1 << 20), "{} of {limit}", stats.bytes);
    assert_eq!(summary(&few), summary(&all), "which does not need them");

    let traces: Vec<_> = all.store.traces().collect();
    let mut absent = 0;
    for trace in [0, 4_000, 8_000, 12_000, 30_000, 39_999, 40_000].map(|at| traces[at]) {
        let id = all.store.trace_id(trace);
        let expected = all.store.spans_of(trace).map(|span| all.store.span(span)).next();
        let trace = few.store.find_trace(id).unwrap();
        let span = few.store.spans_of(trace).next().unwrap();
        absent += usize::from(few.store.span(span).attributes.is_empty());
        few.sources.restore(&mut few.store, trace);
        assert_eq!(Some(few.store.span(span)), expected);
    }
    assert!((3..7).contains(&absent), "{absent} of seven had made room");
}

#[test]
fn details_come_back_where_a_span_was_open_first_and_there_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let ended = spans(1..2);
    let open = ended.replace(r#""endTimeUnixNano":"10""#, r#""endTimeUnixNano":"0""#);
    assert_ne!(open, ended);
    fs::write(&path, open + &ended + &ended + &spans(2..20_000)).unwrap();
    let mut view = limited(&path, View::of(&[&path]).store.stats().bytes / 2);
    append(&path, spans(20_000..20_001));
    view.poll();
    let first = view.store.traces().next().unwrap();
    let span = view.store.spans_of(first).next().unwrap();
    assert!(view.store.span(span).attributes.is_empty(), "they had made room");
    view.sources.restore(&mut view.store, first);
    assert_eq!(view.store.span(span).attributes.len(), 1);
}

#[test]
fn details_come_back_where_lines_were_torn_or_too_long() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let first = spans(1..2);
    fs::write(&path, first.trim_end()).unwrap();
    let mut view = limited(&path, 3 << 19);
    // The line that is there but for its end is read at once, and its end comes with others.
    append(&path, "\n".to_owned() + &spans(2..3_000));
    view.poll();
    append(&path, spans(3_000..3_001));
    view.poll();
    let traces: Vec<_> = view.store.traces().collect();
    assert_eq!((traces.len(), view.store.stats().duplicates), (3_000, 0));
    for trace in traces.into_iter().take(1_000) {
        view.sources.restore(&mut view.store, trace);
        let span = view.store.spans_of(trace).next().unwrap();
        assert_eq!(view.store.span(span).attributes.len(), 1, "trace {trace:?}");
    }
}

#[test]
fn details_of_a_file_that_was_written_anew_are_gone_and_never_those_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, spans(1..20_000)).unwrap();
    let mut view = limited(&path, View::of(&[&path]).store.stats().bytes / 2);
    fs::write(&path, spans(20_000..40_000)).unwrap();
    let first = view.store.traces().next().unwrap();
    let span = view.store.spans_of(first).next().unwrap();
    view.sources.restore(&mut view.store, first);
    let span = view.store.span(span);
    assert_eq!((span.name.as_str(), span.attributes.len()), ("x", 0));
}

#[test]
fn when_no_room_is_left_spans_are_refused_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let text: String = (1..=100_000).map(|at| line(at, 1, 0, "x", [5, 9])).collect();
    fs::write(&path, text).unwrap();
    let limit = 4 << 20;
    let view = limited(&path, limit);
    let stats = view.store.stats();
    assert_eq!(stats.spans as u64 + stats.refused, 100_000);
    assert!(stats.refused > 0 && stats.bytes < 4 * limit, "{stats:?}");
}

/// What is kept of hostile lines, within a limit. Counts those that were refused.
fn refused_of(limit: usize, spans: u64, span: impl Fn(u64) -> String) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, (1..=spans).map(&span).collect::<String>()).unwrap();
    let mut view = limited(&path, limit);
    let stats = view.store.stats();
    assert_eq!(stats.spans as u64 + stats.refused, spans);
    assert!(stats.bytes < limit + limit / 4, "{} of {limit}", stats.bytes);
    assert!(view.samples.bytes() < limit, "{stats:?}");
    let json = view.json(1000);
    assert_eq!(json["losses"]["beyond_memory"], stats.refused);
    assert_eq!(json["finished_spans"], stats.spans as u64);

    // It is known now what was found, which may be less than was expected. More is bounded as well.
    append(&path, (spans + 1..=2 * spans).map(&span).collect::<String>());
    view.poll();
    let after = view.store.stats();
    assert_eq!(after.spans as u64 + after.refused, 2 * spans);
    assert!(after.bytes < limit + limit / 4, "{} of {limit}", after.bytes);
    assert_eq!(view.json(1000)["finished_spans"], after.spans as u64);
    stats.refused
}

fn with_attribute(number: u64, trace: u128, key: &str, value: &str) -> String {
    let attribute =
        format!(r#""attributes":[{{"key":"{key}","value":{{"stringValue":"{value}"}}}}],"name""#);
    line(trace, number, 0, "x", [5, 9 + number]).replace(r#""name""#, &attribute)
}

#[test]
fn a_stage_for_each_span_is_counted_within_the_limit() {
    let stage = |at: u64| with_attribute(at, at.into(), "stage", &format!("stage number {at}"));
    let refused = refused_of(8 << 20, 20_000, stage);
    assert!((10_000..19_000).contains(&refused), "{refused}");
    assert_eq!(refused_of(64 << 20, 20_000, stage), 0);
}

#[test]
fn a_message_for_each_error_is_counted_within_the_limit() {
    let text = "e".repeat(3000);
    let error = |at: u64| with_attribute(at, at.into(), "error.message", &format!("{at} {text}"));
    let refused = refused_of(8 << 20, 6_000, error);
    assert!((3_000..6_000).contains(&refused), "{refused}");
}

#[test]
fn a_key_for_each_span_is_counted_within_the_limit() {
    let text = "k".repeat(3000);
    let key = |at: u64| with_attribute(at, at.into(), &format!("{at} {text}"), "v");
    let refused = refused_of(8 << 20, 6_000, key);
    assert!((3_000..6_000).contains(&refused), "{refused}");
}

#[test]
fn samples_of_one_trace_are_counted_within_the_limit() {
    let sample = |at: u64| with_attribute(at, 1, "rollout.id", &at.to_string());
    let refused = refused_of(4 << 20, 30_000, sample);
    assert!((5_000..25_000).contains(&refused), "{refused}");
}

#[test]
fn a_process_for_each_span_is_counted_within_the_limit() {
    let process = |at: u64| {
        let name = format!(
            r#"{{"attributes":[{{"key":"service.name","value":{{"stringValue":"service {at}"}}}}]}}"#
        );
        let line = line(at.into(), at, 0, "x", [5, 9]);
        line.replace(r#""resource":{}"#, &format!(r#""resource":{name}"#))
    };
    let refused = refused_of(8 << 20, 20_000, process);
    assert!((10_000..19_000).contains(&refused), "{refused}");
}

#[test]
fn what_live_files_repeat_takes_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.jsonl");
    let text = "t".repeat(2000);
    let record = |event: &str, at: u64| {
        format!(
            r#"{{"event":"{event}","time_s":1.5,"span_name":"x","span_name_path":["x"],"attributes":{{"k":"{at} {text}"}},"trace_id":"{at:032x}","span_id":"{at:016x}"}}"#
        ) + "\n"
    };
    let all = |range: std::ops::Range<u64>| range.map(|at| record("start", at)).collect::<String>();
    fs::write(&path, all(1..1_000)).unwrap();
    let mut view = View::of(&[&path]);
    let before = view.store.stats();
    assert_eq!((before.spans, before.finished), (999, 0));
    append(&path, all(1..500) + &record("end", 7) + &all(500..1_000));
    view.poll();
    let after = view.store.stats();
    assert_eq!(
        (after.spans, view.samples.iter(&view.store).filter(|one| one.is_open).count()),
        (999, 998)
    );
    assert!(after.bytes < before.bytes + 20_000, "{} after {}", after.bytes, before.bytes);
}

#[test]
fn a_span_that_is_known_ends_though_there_is_no_room_for_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let open = line(1, 1, 0, "x", [5, 0]);
    fs::write(&path, open).unwrap();
    let mut view = limited(&path, 1 << 20);
    let mut next = 2;
    loop {
        let before = view.store.stats().spans;
        append(
            &path,
            (next..next + 5_000).map(|at| line(at, 1, 0, "x", [5, 9])).collect::<String>(),
        );
        next += 5_000;
        view.poll();
        if view.store.stats().spans == before {
            break;
        }
    }
    let ended = with_attribute(1, 1, "error.message", "never said before");
    append(&path, ended);
    view.poll();
    let first = view.store.traces().next().unwrap();
    let span = view.store.spans_of(first).next().unwrap();
    assert_eq!(view.store.span(span).end_unix_nano, 10);
    let failure = view.store.failure(span).unwrap();
    assert_eq!(view.text(failure.message).unwrap(), "(no room for more names)");
}
