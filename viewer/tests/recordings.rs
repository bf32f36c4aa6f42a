//! Recordings beside their `.jsonl`: what is open, since when, and what died with its process.

use std::fs::{self, File};
use std::path::Path;

use stagetrace_viewer::Status;
use stagetrace_wire::recording::layout::{BLOCK, header, slot};
use tempfile::TempDir;

#[path = "../../wire/tests/handmade/mod.rs"]
mod handmade;
mod support;

use handmade::{EPOCH, Handmade, Record, STEM, TRACE, side, site, text};
use support::{View, append, line};

/// The trace of handmade spans.
const ID: u128 = (TRACE[0] as u128) << 64 | TRACE[1] as u128;

/// A run with a recording whose writer lives as long as the file is locked.
fn run(made: &Handmade) -> (TempDir, File) {
    let directory = tempfile::tempdir().unwrap();
    let lock = write(directory.path(), made);
    lock.lock().unwrap();
    (directory, lock)
}

fn write(directory: &Path, made: &Handmade) -> File {
    let path = directory.join(format!("{STEM}.recording"));
    fs::write(&path, made.bytes()).unwrap();
    File::open(path).unwrap()
}

/// An open root, and below it a stage that is open and one that has ended.
fn spans() -> Vec<Record> {
    let child = |span: Record, site| Record { parent: 1, site, ..span };
    vec![
        Record { flags: slot::ROOT, root: 1, ..Record::open(1) },
        child(Record::ended(2), 2),
        Record { begin: 30, ..child(Record::open(3), 3) },
    ]
}

fn recording(spans: &[Record]) -> Handmade {
    let records: Vec<Vec<u64>> = spans.iter().map(Record::words).collect();
    let sites = [site(1, "generate", &[]), site(2, "queue", &[]), site(3, "gpu_forward", &[])];
    let sites: Vec<&str> = sites.iter().map(String::as_str).collect();
    Handmade::new(3).table(1, &sites).chunk(2, &records)
}

#[test]
fn the_stage_that_is_open_is_the_current_one_and_its_age_runs_from_its_begin() {
    let (directory, _lock) = run(&recording(&spans()));
    let view = View::of(&[directory.path()]);
    let sample = view.one();
    assert_eq!((sample.status, sample.is_open, sample.finished_spans), (Status::Running, true, 1));
    let summary = view.json(EPOCH + 1030);
    let open = &summary["open_samples"][0];
    assert_eq!(open["age_ns"], "1020");
    assert_eq!(open["current"]["stage"], "gpu_forward");
    assert_eq!(open["current"]["age_ns"], "1000");
    assert_eq!(open["current"]["path"], serde_json::json!(["generate", "gpu_forward"]));
    assert_eq!(summary["live_source"], true);
    assert_eq!(summary["services"], serde_json::json!(["server"]));
    assert_eq!(summary["stages"][0]["stage"], "queue");
}

#[test]
fn of_several_open_stages_the_deepest_is_the_current_one_though_another_began_later() {
    let mut all = spans();
    let open = |span, parent, begin, site| Record { parent, begin, site, ..Record::open(span) };
    all.push(open(4, 3, 35, 2));
    all.push(open(5, 1, 50, 3));
    let (directory, _lock) = run(&recording(&all));
    let view = View::of(&[directory.path()]);
    let summary = view.json(EPOCH + 1030);
    assert_eq!(summary["open_samples"][0]["current"]["span_id"], "0000000000000004");
    assert_eq!(summary["occupancy"][0]["oldest_age_ns"], "995");

    // Of equally deep ones the one that began last.
    all.push(open(6, 5, 55, 1));
    let (directory, _lock) = run(&recording(&all));
    let summary = View::of(&[directory.path()]).json(EPOCH + 1030);
    assert_eq!(summary["open_samples"][0]["current"]["span_id"], "0000000000000006");
}

#[test]
fn a_span_that_ends_in_the_jsonl_is_open_no_more() {
    let (directory, _lock) = run(&recording(&spans()));
    let mut view = View::of(&[directory.path()]);
    let jsonl = directory.path().join(format!("{STEM}.jsonl"));
    append(&jsonl, line(ID, 3, 1, "gpu_forward", [EPOCH + 30, EPOCH + 50]));
    append(&jsonl, line(ID, 1, 0, "generate", [EPOCH + 10, EPOCH + 60]));
    view.poll();
    let sample = view.one();
    assert_eq!((sample.status, sample.finished_spans), (Status::Completed, 3));
    assert_eq!(sample.duration, Some(50));
    // The recording, which still has them open, does not change that.
    view.poll();
    assert_eq!(view.one().finished_spans, 3);
}

#[test]
fn a_span_that_leaves_its_recording_and_never_comes_has_an_unknown_end() {
    let (directory, lock) = run(&recording(&spans()));
    let mut view = View::of(&[directory.path()]);
    drop(lock);
    let others = [Record { span: 9, trace: [7, 7], ..Record::open(9) }];
    let lock = write(directory.path(), &recording(&others));
    lock.lock().unwrap();
    view.poll();
    let of_first =
        |sample: &stagetrace_viewer::Sample| view.store.trace_id(sample.trace).to_u128() == ID;
    let sample = view.samples.iter(&view.store).find(of_first).unwrap();
    assert_eq!((sample.status, sample.result_not_exported), (Status::Unknown, true));
}

#[test]
fn what_was_open_in_a_process_that_died_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    drop(write(directory.path(), &recording(&spans())));
    let view = View::of(&[directory.path()]);
    assert_eq!((view.one().status, view.one().lost_spans), (Status::Lost, 2));
    let summary = view.json(EPOCH + 1000);
    assert_eq!(summary["open_samples"], serde_json::json!([]));
    assert_eq!(summary["occupancy"], serde_json::json!([]));
    assert_eq!(summary["lost"][0]["stage"], "gpu_forward");
}

#[test]
fn what_recovery_writes_of_a_dead_process_stays_lost() {
    let directory = tempfile::tempdir().unwrap();
    drop(write(directory.path(), &recording(&spans())));
    let recording = directory.path().join(format!("{STEM}.recording"));
    let mut view = View::of(&[directory.path()]);
    let text = line(ID, 1, 0, "generate", [EPOCH + 10, EPOCH + 90]).replace(
        r#""name""#,
        r#""attributes":[{"key":"stagetrace.open","value":{"boolValue":true}}],"name""#,
    );
    append(&directory.path().join(format!("{STEM}.recovered.jsonl")), text);
    fs::remove_file(recording).unwrap();
    view.poll();
    assert_eq!((view.one().status, view.one().is_open), (Status::Lost, false));
}

#[test]
fn late_attributes_of_an_open_span_arrive_and_looking_again_takes_no_memory() {
    let mut open = spans();
    open[0].sides = 1;
    let (directory, lock) = run(&recording(&open));
    let mut view = View::of(&[directory.path()]);
    // Values that are met again are kept in another way.
    (0..3).for_each(|_| view.poll());
    let before = view.store.stats().bytes;
    (0..100).for_each(|_| view.poll());
    assert_eq!(view.store.stats().bytes, before);

    let records: Vec<Vec<u64>> = open.iter().map(Record::words).collect();
    let late = side(
        1,
        40,
        1,
        &handmade::keyed(&[("step", stagetrace_wire::recording::value::Tag::Str, text("7"))]),
    );
    let made = recording(&open).chunk(2, &[records, vec![late]].concat());
    drop(lock);
    let lock = write(directory.path(), &made);
    lock.lock().unwrap();
    view.poll();
    let root = view.store.span(view.one().root.unwrap());
    assert!(root.attributes.iter().any(|(key, _)| key == "step"), "{root:?}");
}

#[test]
fn what_a_dead_process_had_spooled_is_read_with_its_recording() {
    let directory = tempfile::tempdir().unwrap();
    drop(write(directory.path(), &recording(&spans())));
    let spooled = Record { parent: 1, site: 2, ..Record::ended(4) }.words();
    let spool = Handmade::new(2).chunk(1, &[spooled]).bytes()[BLOCK..].to_vec();
    fs::write(directory.path().join(format!("{STEM}.spool")), spool).unwrap();
    let view = View::of(&[directory.path()]);
    assert_eq!(view.json(EPOCH)["stages"][0]["raw_spans"], serde_json::json!({"queue": 2}));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_recording_that_is_gone_is_told_and_hides_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join(format!("{STEM}.recording"));
    std::os::unix::fs::symlink("/nonexistent/gone.recording", link).unwrap();
    append(&directory.path().join("a.jsonl"), line(1, 1, 0, "generate", [5, 9]));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
        .arg("summary")
        .arg(directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("1 samples in 0 groups, 0 steps: completed 1\n"), "{text}");
    assert!(text.contains(&format!("note: cannot read {STEM}.recording: ")), "{text}");
}

#[test]
fn spans_that_are_not_sampled_are_not_shown() {
    let mut all = spans();
    all.iter_mut().for_each(|span| span.known |= slot::UNSAMPLED);
    let (directory, _lock) = run(&recording(&all));
    assert_eq!(View::of(&[directory.path()]).store.stats().spans, 0);
}

#[test]
fn what_a_recorder_lost_is_told() {
    let made = recording(&spans()).word(header::DROPPED, 5).word(header::DROPPED + 3, 7);
    let (directory, _lock) = run(&made);
    let losses = view_losses(directory.path());
    assert_eq!((&losses["recorder_spans"], &losses["recorder_details"]), (&5.into(), &7.into()));
}

#[test]
fn the_reports_of_a_recorder_are_no_requests() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    append(&path, line(1, 1, 0, "stagetrace.loss", [5, 9]));
    append(&path, line(2, 1, 0, "stagetrace.clock", [5, 5]));
    append(&path, line(3, 1, 0, "generate", [5, 9]));
    let view = View::of(&[&path]);
    assert_eq!(view.samples.iter(&view.store).count(), 1);
    assert_eq!(view_losses(&path)["unassigned_spans"], 2);
}

#[test]
fn a_span_that_stands_for_an_open_one_elsewhere_is_folded_into_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    let pending = line(1, 77, 5, "gpu_forward", [10, 10]).replace(
        r#""name""#,
        r#""attributes":[{"key":"stagetrace.pending","value":{"stringValue":"0000000000000005"}}],"name""#,
    );
    append(&path, pending);
    let mut view = View::of(&[&path]);
    assert!(view.one().is_open);
    assert_eq!(view.store.stats().spans, 1);
    assert_eq!(view.json(110)["open_samples"][0]["current"]["age_ns"], "100");
    append(&path, line(1, 5, 0, "gpu_forward", [10, 30]));
    view.poll();
    assert_eq!((view.one().status, view.one().finished_spans), (Status::Completed, 1));
}

fn view_losses(path: &Path) -> serde_json::Value {
    View::of(&[path]).json(EPOCH)["losses"].clone()
}
