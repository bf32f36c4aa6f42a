//! What dead processes left is recovered from the command line, and living ones are left alone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stagetrace_viewer::Status;
use stagetrace_wire::recording::layout::slot;

#[path = "../../wire/tests/handmade/mod.rs"]
mod handmade;
mod support;

use handmade::{Handmade, Record, STEM, site};
use support::View;

fn recover(arguments: &[&str], path: &Path) -> Output {
    let viewer = env!("CARGO_BIN_EXE_stagetrace-viewer");
    Command::new(viewer).arg("recover").args(arguments).arg(path).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Writes a recording of an open root and an ended stage below it.
fn write(directory: &Path) -> PathBuf {
    let spans = [
        Record { flags: slot::ROOT, root: 1, ..Record::open(1) },
        Record { parent: 1, site: 2, ..Record::ended(2) },
    ];
    let records: Vec<Vec<u64>> = spans.iter().map(Record::words).collect();
    let sites = [site(1, "generate", &[]), site(2, "queue", &[])];
    let sites: Vec<&str> = sites.iter().map(String::as_str).collect();
    let path = directory.join(format!("{STEM}.recording"));
    fs::write(&path, Handmade::new(3).table(1, &sites).chunk(2, &records).bytes()).unwrap();
    path
}

#[test]
fn a_dead_process_s_spans_are_recovered_and_its_recording_stays_unless_it_is_to_go() {
    let directory = tempfile::tempdir().unwrap();
    let recording = write(directory.path());
    let lines = directory.path().join(format!("{STEM}.recovered.jsonl"));
    let output = recover(&[], directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told =
        format!("{}: 1 ended and 1 open spans to {}\n", recording.display(), lines.display());
    assert_eq!(text(&output), told);
    assert!(recording.exists());
    let view = View::of(&[&lines]);
    assert_eq!((view.one().status, view.store.stats().spans), (Status::Lost, 2));

    // By its own name, once more.
    let output = recover(&["--remove"], &recording);
    let told = "nothing is missing elsewhere; 2 were there already; recording removed\n";
    assert!(output.status.success() && text(&output).ends_with(told), "{}", text(&output));
    assert!(!recording.exists());
    let told = format!("{}: no recordings\n", directory.path().display());
    assert_eq!(text(&recover(&[], directory.path())), told);
    assert_eq!(View::of(&[&lines]).store.stats().spans, 2);
}

#[test]
fn a_living_process_is_left_alone_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let recording = write(directory.path());
    let lock = File::open(&recording).unwrap();
    lock.lock().unwrap();
    let output = recover(&["--remove"], directory.path());
    assert!(output.status.success());
    let told = format!(
        "{}: left alone: its process lives, or another one recovers it\n",
        recording.display()
    );
    assert_eq!(text(&output), told);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was written");
}

#[test]
fn what_is_no_recording_fails_and_keeps_nobody_from_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let recording = write(directory.path());
    fs::write(directory.path().join("a.recording"), "no recording").unwrap();
    fs::write(directory.path().join("b.recording"), "").unwrap();
    let output = recover(&[], directory.path());
    assert!(!output.status.success());
    let told = text(&output);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].contains("a.recording: not recovered: "), "{told}");
    assert!(lines[1].contains("b.recording: empty: "), "{told}");
    assert!(lines[2].starts_with(&recording.display().to_string()), "{told}");
    assert!(lines[2].contains("1 ended and 1 open spans"), "{told}");
    let nowhere = recover(&[], &directory.path().join("nothing"));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("cannot read "));
}
