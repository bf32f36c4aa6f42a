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
    let mut view = limited(&path, 1 << 20);
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
