//! Files while they are written: whatever was read when, all that counts is what is there.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};

mod support;

use support::{View, append, cases, line};

const NOW: u64 = 1_784_173_500_000_000_001;

/// The beginning of a file of the cases, cut at a line, so that many cuts can be tried.
fn beginning(file: &str, bytes: usize) -> Vec<u8> {
    let text = fs::read(cases("xtuner").join(file)).unwrap();
    let end = text[bytes..].iter().position(|byte| *byte == b'\n').unwrap();
    text[..=bytes + end].to_vec()
}

/// Reads a file that grows by pieces.
fn grown(text: &[u8], cuts: &[usize], path: &Path) -> View {
    fs::write(path, "").unwrap();
    let mut view = View::of(&[path]);
    let mut before = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        append(path, &text[before..cut]);
        before = cut;
        view.poll();
    }
    view
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_that_grows_is_read_as_if_it_had_been_whole(
        which in 0..3_usize,
        mut places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text = match which {
            0 => beginning("traces_only/traces.jsonl", 20_000),
            1 => beginning("live/live.jsonl", 20_000),
            _ => fs::read(cases("otlp/all_values.jaeger.json")).unwrap(),
        };
        let directory = tempfile::tempdir().unwrap();
        let mut cuts: Vec<usize> = places.drain(..).map(|place| place.index(text.len())).collect();
        cuts.sort();
        let grown = grown(&text, &cuts, &directory.path().join("traces.jsonl"));
        fs::write(directory.path().join("whole.jsonl"), &text).unwrap();
        let whole = View::of(&[directory.path().join("whole.jsonl")]);
        prop_assert_eq!(grown.everything(NOW), whole.everything(NOW));
        let counts = |view: &View| {
            let report = view.report().files[0].clone();
            (report.lines, report.known_lines, report.damaged_lines, report.torn_line)
        };
        prop_assert_eq!(counts(&grown), counts(&whole));
    }

    #[test]
    fn a_line_that_is_changed_anywhere_is_read_as_the_contract_reads_it(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let mut text = beginning("agent/traces.jsonl", 4_000);
        for (place, byte, how) in changes {
            let at = place.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte % 128),
                _ => drop(text.remove(at)),
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("traces.jsonl");
        fs::write(&path, &text).unwrap();
        let contents = read_lines(&text, &ReadOptions::default());
        let mut expected: Vec<String> =
            contents.spans.iter().map(|span| format!("{span:?}")).collect();
        expected.sort();
        prop_assert_eq!(View::of(&[&path]).spans(), expected);
    }
}

#[test]
fn a_torn_last_line_counts_as_torn_until_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    let (first, second) = (line(1, 1, 0, "first", [5, 9]), line(2, 2, 0, "second", [5, 9]));
    fs::write(&path, format!("{first}{}", &second[..40])).unwrap();
    let mut view = View::of(&[&path]);
    assert_eq!((view.store.stats().spans, view.report().files[0].torn_line), (1, Some(2)));

    // Whole but for its newline, and then with it.
    append(&path, &second[40..second.len() - 1]);
    view.poll();
    assert_eq!((view.store.stats().spans, view.report().files[0].torn_line), (2, None));
    append(&path, "\n");
    view.poll();
    let stats = view.store.stats();
    assert_eq!((stats.spans, stats.duplicates, view.report().files[0].lines), (2, 0, 2));
}

#[test]
fn what_was_appended_is_read_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, line(1, 1, 0, "first", [5, 9])).unwrap();
    let mut view = View::of(&[&path]);
    for number in 2..20 {
        append(&path, line(number, 1, 0, "next", [5, 9]));
        view.poll();
        view.poll();
        let stats = view.store.stats();
        assert_eq!((stats.spans as u128, stats.duplicates), (number, 0));
    }
}

#[test]
fn a_file_that_is_rotated_while_it_is_followed_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, line(1, 1, 0, "first", [5, 9])).unwrap();
    let mut view = View::of(&[&path]);
    // Written after the last look, then put aside for a new one.
    append(&path, line(2, 1, 0, "second", [5, 9]));
    fs::rename(&path, directory.path().join("traces-2026-07-15T01-04-10.125.jsonl")).unwrap();
    fs::write(&path, line(3, 1, 0, "third", [5, 9])).unwrap();
    view.poll();
    let stats = view.store.stats();
    assert_eq!((stats.spans, stats.duplicates), (3, 0));
    let names: Vec<String> = view.report().files.into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["traces-2026-07-15T01-04-10.125.jsonl", "traces.jsonl"]);

    // Even if what was put aside is removed at once.
    append(&path, line(4, 1, 0, "fourth", [5, 9]));
    fs::remove_file(&path).unwrap();
    view.poll();
    assert_eq!(view.store.stats().spans, 4);
}

#[test]
fn a_file_that_is_cut_short_or_written_anew_is_read_from_its_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("traces.jsonl");
    fs::write(&path, line(1, 1, 0, "first", [5, 9]) + &line(2, 1, 0, "second", [5, 9])).unwrap();
    let mut view = View::of(&[&path]);

    fs::write(&path, line(3, 1, 0, "shorter", [5, 9])).unwrap();
    view.poll();
    assert_eq!(view.store.stats().spans, 3, "what is known stays");

    let longer: String = (4..9).map(|trace| line(trace, 1, 0, "longer", [5, 9])).collect();
    fs::write(&path, longer).unwrap();
    view.poll();
    assert_eq!((view.store.stats().spans, view.report().files[0].restarts), (8, 2));
}

#[test]
fn files_that_are_made_later_are_found() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.jsonl"), line(1, 1, 0, "a", [5, 9])).unwrap();
    let mut view = View::of(&[directory.path()]);
    fs::write(directory.path().join("b.jsonl"), line(2, 1, 0, "b", [5, 9])).unwrap();
    view.poll();
    assert_eq!(view.store.stats().spans, 2);
}

#[test]
fn a_document_over_many_lines_is_read_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    let line = line(1, 1, 0, "only", [5, 9]);
    let document: serde_json::Value = serde_json::from_str(&line).unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let mut view = View::of(&[&path]);
    assert_eq!((view.store.stats().spans, view.report().files[0].torn_line), (0, Some(1)));
    fs::write(&path, &text).unwrap();
    view.poll();
    assert_eq!((view.store.stats().spans, view.report().files[0].torn_line), (1, None));
}

#[test]
fn the_order_of_files_does_not_matter() {
    let (traces, live) = (cases("xtuner/live/traces.jsonl"), cases("xtuner/live/live.jsonl"));
    let one = View::of(&[&traces, &live]).everything(NOW);
    let other = View::of(&[&live, &traces]).everything(NOW);
    assert_eq!(one.0, other.0);
    let mut both = [one.1, other.1];
    both.iter_mut().for_each(|json| json["damaged_lines"] = serde_json::Value::Null);
    assert_eq!(both[0], both[1]);
}

#[test]
fn a_large_file_that_several_threads_read_gives_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (large, damaged) = (directory.path().join("large.jsonl"), "{damaged\n");
    let mut text = String::new();
    for number in 1..=60_000_u128 {
        text += &line(number, 1, 0, &format!("name {}", number % 1000), [5, number as u64]);
        if number % 20_000 == 0 {
            text += damaged;
        }
    }
    fs::write(&large, &text).unwrap();
    assert!(text.len() > 8 << 20, "{} bytes are read by one thread", text.len());
    let view = View::of(&[&large]);
    let contents = read_lines(text.as_bytes(), &ReadOptions::default());
    let mut expected: Vec<String> = contents.spans.iter().map(|span| format!("{span:?}")).collect();
    expected.sort();
    assert_eq!(view.spans(), expected);
    let report = &view.report().files[0];
    let lines: Vec<u64> = report.damaged.iter().map(|(line, _)| *line).collect();
    assert_eq!((report.lines, lines), (60_003, vec![20_001, 40_002, 60_003]));
}
