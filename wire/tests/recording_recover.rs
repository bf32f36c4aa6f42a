//! What a dead process had not written yet becomes JSON lines, once.

#![cfg(unix)] // for links

use handmade::{Dir, EPOCH, Handmade, RUN, Record, STEM, one_of_everything, site};
use stagetrace_wire::otlp::json::{Contents, ReadOptions, read_lines, write_spans};
use stagetrace_wire::recording::layout::{header, slot};
use stagetrace_wire::recording::read::ReadError;
use stagetrace_wire::recording::recover::{RecoverError, Recovered, Remove, recover};
use stagetrace_wire::span::{Span, StatusCode, Value, find};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

mod handmade;

/// A dead process: its run's directory, and its recording elsewhere, linked from there.
struct Dead {
    run_dir: Dir,
    shm: Dir,
    recording: PathBuf,
    link: PathBuf,
}

impl Dead {
    fn with(made: &Handmade) -> Dead {
        let (run_dir, shm) = (Dir::new(), Dir::new());
        fs::create_dir(shm.join(RUN)).expect("the run's own directory");
        let recording = shm.write(&format!("{RUN}/{STEM}.recording"), &made.bytes());
        let link = run_dir.join(format!("{STEM}.recording"));
        std::os::unix::fs::symlink(&recording, &link).expect("a link");
        Dead { run_dir, shm, recording, link }
    }

    fn recover(&self, remove: Remove) -> Result<Recovered, RecoverError> {
        recover(&self.link, &*self.run_dir, remove)
    }

    fn recovered_path(&self) -> PathBuf {
        self.run_dir.join(format!("{STEM}.recovered.jsonl"))
    }

    fn recovered(&self) -> Vec<Span> {
        read(&self.recovered_path()).spans
    }
}

fn read(path: &Path) -> Contents {
    let contents = read_lines(&fs::read(path).expect("the file"), &ReadOptions::default());
    assert_eq!((contents.report.damaged_lines, contents.report.incomplete_line), (0, None));
    assert_eq!(contents.duplicates, 0);
    contents
}

fn ids(spans: &[Span]) -> Vec<u64> {
    spans.iter().map(|span| span.span_id.to_u64()).collect()
}

/// A line with these spans of the recording.
fn lines(made: &Handmade, wanted: &[u64]) -> Vec<u8> {
    let recording = made.read();
    let identity = recording.identity();
    let mut spans: Vec<Span> =
        recording.snapshot().spans.iter().map(|span| span.to_span(identity)).collect();
    spans.retain(|span| wanted.contains(&span.span_id.to_u64()));
    assert_eq!(spans.len(), wanted.len());
    write_spans(&identity.resource, &identity.scope, &spans)
}

#[test]
fn every_span_that_is_not_written_is_recovered_with_all_that_is_known_of_it() {
    let made = one_of_everything();
    let dead = Dead::with(&made);
    let recovered = dead.recover(Remove::No).expect("it recovers");
    let file = Some(dead.recovered_path());
    assert_eq!(recovered, Recovered { file, ended: 2, open: 2, known: 1, ..Recovered::default() });
    let spans = dead.recovered();
    assert_eq!(ids(&spans), [0x20, 0x10, 0x11, 0x12], "0x13 is marked as written");
    let forward = &spans[2];
    let recording = made.read();
    let snapshot = recording.snapshot();
    let found = snapshot.spans.iter().find(|span| span.identity().1.to_u64() == 0x11);
    assert_eq!(forward, &found.expect("the stage").to_span(recording.identity()));
    assert!(dead.recording.exists() && dead.link.exists());
}

#[test]
fn what_is_not_sampled_is_read_but_not_recovered() {
    let unsampled = |record| Record { known: slot::ACTIVE | slot::UNSAMPLED, ..record };
    let records = [
        unsampled(Record::ended(1)),
        Record::ended(2),
        unsampled(Record::open(3)),
        Record::open(4),
    ];
    let made = Handmade::new(3)
        .table(1, &[&site(1, "step", &[])])
        .chunk(2, &records.map(|record| record.words()));
    let spans = made.read().snapshot().spans;
    let found = spans.iter().map(|span| (span.identity().1.to_u64(), span.flags() & 1));
    assert_eq!(found.collect::<Vec<_>>(), [(1, 0), (2, 1), (3, 0), (4, 1)]);
    let dead = Dead::with(&made);
    let recovered = dead.recover(Remove::No).expect("it recovers");
    let file = Some(dead.recovered_path());
    let expected = Recovered { file, ended: 1, open: 1, unsampled: 2, ..Recovered::default() };
    assert_eq!(recovered, expected);
    assert_eq!(ids(&dead.recovered()), [2, 4]);
}

#[test]
fn an_open_span_has_a_mark_and_the_last_sign_of_life_as_its_end() {
    let dead = Dead::with(&one_of_everything());
    dead.recover(Remove::No).expect("it recovers");
    let spans = dead.recovered();
    for span in &spans {
        let is_open = [0x10, 0x12].contains(&span.span_id.to_u64());
        let mark = find(&span.attributes, "stagetrace.open");
        assert_eq!(mark, is_open.then_some(&Value::Bool(true)), "{}", span.name);
        if is_open {
            assert_eq!(span.end_unix_nano, EPOCH + 1_000_000, "the last anchor");
            assert_eq!(span.status.code, StatusCode::Unset);
        }
    }
    assert_eq!(find(&spans[1].attributes, "stagetrace.request.id"), Some(&Value::from("req-1")));
}

#[test]
fn what_is_estimated_or_gone_is_said() {
    let made = Handmade::new(3)
        .table(1, &[&site(1, "step", &[])])
        .chunk(2, &[Record { sides: 3, ..Record::ended(1) }.words()])
        .word(header::ANCHOR_COUNT, 1);
    let dead = Dead::with(&made);
    dead.recover(Remove::No).expect("it recovers");
    let span = &dead.recovered()[0];
    assert_eq!(find(&span.attributes, "stagetrace.missing_details"), Some(&Value::I64(3)));
    assert_eq!(find(&span.attributes, "stagetrace.time.uncertain"), Some(&Value::Bool(true)));
}

#[test]
fn spans_in_any_file_of_the_process_are_not_written_again() {
    let made = one_of_everything();
    let dead = Dead::with(&made);
    dead.run_dir.write(&format!("{STEM}.1.jsonl"), &lines(&made, &[0x20]));
    dead.run_dir.write(&format!("{STEM}.jsonl"), &lines(&made, &[0x11]));
    // Of other processes.
    dead.run_dir.write("server-4712-00000000.jsonl", &lines(&made, &[0x10]));
    dead.run_dir.write(&format!("{STEM}.x.jsonl"), &lines(&made, &[0x10]));
    let recovered = dead.recover(Remove::No).expect("it recovers");
    assert_eq!((recovered.ended, recovered.open, recovered.known), (0, 2, 3));
    assert_eq!(ids(&dead.recovered()), [0x10, 0x12]);
}

#[test]
fn a_torn_last_line_does_not_count_and_is_not_changed() {
    let made = one_of_everything();
    let whole = lines(&made, &[0x20]);
    for torn in [&lines(&made, &[0x11])[..40], lines(&made, &[0x11]).trim_ascii_end()] {
        let dead = Dead::with(&made);
        let before = [&whole[..], torn].concat();
        let path = dead.run_dir.write(&format!("{STEM}.jsonl"), &before);
        dead.recover(Remove::No).expect("it recovers");
        assert_eq!(ids(&dead.recovered()), [0x10, 0x11, 0x12]);
        assert_eq!(fs::read(path).expect("the file"), before);
    }
}

#[test]
fn recovering_again_adds_nothing() {
    let dead = Dead::with(&one_of_everything());
    dead.recover(Remove::No).expect("it recovers");
    let once = fs::read(dead.recovered_path()).expect("the file");
    let again = dead.recover(Remove::No).expect("it recovers");
    assert_eq!((again.ended, again.open, again.known), (0, 0, 5));
    assert_eq!(again.file, Some(dead.recovered_path()));
    assert_eq!(fs::read(dead.recovered_path()).expect("the file"), once);
}

#[test]
fn what_an_earlier_recovery_lacks_is_put_behind_what_it_has() {
    let made = one_of_everything();
    let dead = Dead::with(&made);
    let before = lines(&made, &[0x11]);
    dead.run_dir.write(&format!("{STEM}.recovered.jsonl"), &before);
    let recovered = dead.recover(Remove::No).expect("it recovers");
    assert_eq!((recovered.ended, recovered.open), (1, 2));
    assert!(fs::read(dead.recovered_path()).expect("the file").starts_with(&before));
    assert_eq!(ids(&dead.recovered()), [0x11, 0x20, 0x10, 0x12]);
}

#[test]
fn an_interruption_at_any_step_is_made_good_by_the_next_recovery() {
    let made = one_of_everything();
    let expected = {
        let dead = Dead::with(&made);
        dead.recover(Remove::No).expect("it recovers");
        fs::read(dead.recovered_path()).expect("the file")
    };
    let finish = |dead: &Dead| {
        let recovered = dead.recover(Remove::Yes).expect("it recovers");
        assert!(recovered.removed);
        assert_eq!(fs::read(dead.recovered_path()).expect("the file"), expected);
        assert_eq!(dead.run_dir.names(), [format!("{STEM}.recovered.jsonl")]);
        assert!(dead.shm.names().is_empty(), "the run's directory there is gone as well");
    };
    // While it was writing.
    let dead = Dead::with(&made);
    dead.run_dir.write(&format!("{STEM}.recovered.jsonl.part"), &expected[..100]);
    finish(&dead);
    // After it had written, before it removed anything.
    let dead = Dead::with(&made);
    dead.run_dir.write(&format!("{STEM}.recovered.jsonl"), &expected);
    finish(&dead);
    // Between the recording and the link to it.
    let dead = Dead::with(&made);
    dead.run_dir.write(&format!("{STEM}.recovered.jsonl"), &expected);
    fs::remove_dir_all(dead.shm.join(RUN)).expect("it can be removed");
    finish(&dead);
    // Nothing is left to do, and nothing is where the recording was.
    assert!(matches!(dead.recover(Remove::Yes), Err(RecoverError::Read(ReadError::Io { .. }))));
}

#[test]
fn it_is_the_same_by_either_path() {
    let dead = Dead::with(&one_of_everything());
    let recovered = recover(&dead.recording, &*dead.run_dir, Remove::Yes).expect("it recovers");
    assert!(recovered.removed);
    assert_eq!(dead.run_dir.names(), [format!("{STEM}.recovered.jsonl")]);
    assert!(!dead.recording.exists());
}

#[test]
fn a_recording_in_the_runs_own_directory_is_removed_alone() {
    let dir = Dir::new();
    let path = dir.write(&format!("{STEM}.recording"), &one_of_everything().bytes());
    recover(&path, &*dir, Remove::Yes).expect("it recovers");
    assert_eq!(dir.names(), [format!("{STEM}.recovered.jsonl")]);
}

#[test]
fn without_anything_missing_no_file_is_made() {
    let marked = Record { marks: slot::EXPORTED, ..Record::ended(1) };
    let dead = Dead::with(&Handmade::new(3).chunk(2, &[marked.words()]));
    let recovered = dead.recover(Remove::Yes).expect("it recovers");
    let expected = Recovered { known: 1, removed: true, ..Recovered::default() };
    assert_eq!(recovered, expected);
    assert!(dead.run_dir.names().is_empty());
}

#[test]
fn a_living_processs_recording_is_left_alone() {
    let dead = Dead::with(&one_of_everything());
    let writer = File::open(&dead.recording).expect("the file");
    writer.lock().expect("nobody else has it");
    assert!(matches!(dead.recover(Remove::Yes), Err(RecoverError::InUse)));
    drop(writer);
    assert!(dead.recover(Remove::No).is_ok());
}

#[test]
fn the_small_recording_of_a_process_that_closed_stays() {
    let made = Handmade::new(2).table(1, &[&site(1, "step", &[])]);
    let dir = Dir::new();
    let closed = made.word(header::STATE, header::CLOSED);
    let path = dir.write(&format!("{STEM}.recording"), &closed.bytes());
    let recovered = recover(&path, &*dir, Remove::Yes).expect("there is nothing to do");
    assert_eq!(recovered, Recovered::default());
    assert!(path.exists());
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    for stem in ["", "../../etc/passwd", "a/b", ".hidden", "a\0b", &"x".repeat(200)] {
        let mut made = one_of_everything();
        made.identity(&format!(r#"{{"stem":{}}}"#, serde_json::to_string(stem).expect("a text")));
        let dead = Dead::with(&made);
        let refused = dead.recover(Remove::Yes);
        assert!(matches!(refused, Err(RecoverError::Stem)), "{stem:?}: {refused:?}");
        assert!(dead.recording.exists());
    }
}

#[test]
fn where_nothing_can_be_written_everything_stays() {
    let dead = Dead::with(&one_of_everything());
    let nowhere = dead.run_dir.join("missing");
    let failed = recover(&dead.link, &nowhere, Remove::Yes).expect_err("it is not there");
    assert!(failed.to_string().contains("missing"), "{failed}");
    // A directory stands where the file should be made.
    fs::create_dir(dead.run_dir.join(format!("{STEM}.recovered.jsonl.part"))).expect("made");
    let failed = dead.recover(Remove::Yes).expect_err("it cannot be written");
    assert!(matches!(failed, RecoverError::Write { .. }), "{failed}");
    assert!(dead.recording.exists() && dead.link.exists());
}

#[test]
fn damage_is_told_and_the_rest_recovered() {
    let mut broken = Record::ended(2).words();
    broken[slot::META] = 0;
    let made = Handmade::new(3).chunk(2, &[Record::ended(1).words(), broken]);
    let recovered = Dead::with(&made).recover(Remove::No).expect("it recovers");
    assert_eq!((recovered.ended, recovered.damage.chunks), (1, 1));
}

#[test]
fn many_spans_make_lines_of_bearable_length() {
    let records: Vec<_> = (1..=900).map(|id| Record::ended(id).words()).collect();
    let made = Handmade::new(4).table(1, &[&site(1, "step", &[])]).chunk(2, &records);
    let dead = Dead::with(&made);
    assert_eq!(dead.recover(Remove::No).expect("it recovers").ended, 900);
    let contents = read(&dead.recovered_path());
    assert_eq!((contents.spans.len(), contents.report.lines), (900, 2));
}

#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dead = Dead::with(&one_of_everything());
    dead.recover(Remove::No).expect("it recovers");
    let mode = fs::metadata(dead.recovered_path()).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
