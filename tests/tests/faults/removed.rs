//! What others do to our files while we write them: remove, move, cut, forbid, stand in the way.

use crate::support::*;
use stagetrace_tests::rights::{NOBODY, become_user, may_change_user, with_mounts};
use stagetrace_tests::{Spans, alone, counters, start, start_with, until};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn a_file_that_is_removed_under_way_is_begun_anew() {
    let ran = alone(|| {
        let _trace = start();
        job();
        assert_all_written(JOB);
        for round in 2..5 {
            fs::remove_file(own_file("jsonl")).unwrap();
            job();
            assert_all_written(round * JOB);
            assert_eq!(ours(&trace_dir()), JOB);
        }
    })
    .run();
    assert_one_complaint(&ran, &["somebody removed", ".jsonl", "begun anew"]);
}

#[test]
fn a_run_directory_that_is_removed_under_way_is_made_again_for_what_comes() {
    let Some(setup) = with_mounts("mount -t tmpfs tmpfs /dev/shm") else { return };
    for mapping in ["auto", "run-dir"] {
        let ran = alone(|| {
            let trace = start();
            job();
            assert_all_written(JOB);
            fs::remove_dir_all(trace.run_dir().unwrap()).unwrap();
            job();
            assert_all_written(2 * JOB);
            trace.shutdown(SOON).unwrap();
            assert_eq!(ours(&trace_dir()), JOB);
        })
        .env("STAGETRACE_MAPPING", mapping)
        .after_shell(&setup)
        .run();
        let complaints = ran.complaints();
        assert!(complaints[0].contains("somebody removed"), "{complaints:?}");
        // With the directory went the recording that lay in it.
        let recording = complaints.iter().filter(|line| line.contains("the recording of this"));
        assert!(recording.count() <= usize::from(mapping == "run-dir"), "{complaints:?}");
        assert!(complaints.len() <= 2, "{complaints:?}");
    }
}

#[test]
fn a_run_directory_that_is_renamed_under_way_keeps_getting_what_comes() {
    let ran = alone(|| {
        let trace = start_with(|config| config.jsonl_max_bytes(50_000));
        job();
        assert_all_written(JOB);
        fs::rename(trace.run_dir().unwrap(), trace_dir().join("elsewhere")).unwrap();
        for round in 2..5 {
            job();
            assert_all_written(round * JOB);
        }
        trace.shutdown(SOON).unwrap();
        assert_eq!(ours(&trace_dir()), 4 * JOB);
    })
    .run();
    assert_one_complaint(&ran, &["cannot put", "aside", "No such file or directory"]);
}

#[test]
fn a_file_that_is_moved_away_goes_on_until_it_is_large_and_then_another_begins() {
    let ran = alone(|| {
        let _trace = start_with(|config| config.jsonl_max_bytes(100_000));
        job();
        assert_all_written(JOB);
        let (path, moved) = (own_file("jsonl"), trace_dir().join("moved.jsonl"));
        fs::rename(&path, &moved).unwrap();
        let mut rounds = 1;
        while !path.exists() {
            job();
            rounds += 1;
            assert_all_written(rounds * JOB);
            assert!(rounds < 100, "no other is begun");
        }
        job();
        assert_all_written((rounds + 1) * JOB);
        assert_eq!(ours(&trace_dir()), (rounds + 1) * JOB);
    })
    .run();
    assert_complaints(&ran, &[]);
}

/// Spans and damaged lines in a file.
fn read(path: &Path) -> (u64, u64) {
    let contents = read_lines(&fs::read(path).unwrap(), &ReadOptions::default());
    assert_eq!(contents.report.incomplete_line, None);
    (contents.spans.len() as u64, contents.report.damaged_lines)
}

#[test]
fn a_file_that_is_cut_or_written_into_by_others_never_spoils_the_next_line() {
    let ran = alone(|| {
        let _trace = start();
        job();
        assert_all_written(JOB);
        let path = own_file("jsonl");
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        // As `logrotate` does it with `copytruncate`.
        file.set_len(0).unwrap();
        job();
        assert_all_written(2 * JOB);
        assert_eq!(read(&path), (JOB, 0));
        // In the middle of a line, which cannot be read any more.
        file.set_len(100).unwrap();
        job();
        assert_all_written(3 * JOB);
        assert_eq!(read(&path), (JOB, 1));
        // Something without its end.
        (&file).write_all(b"{\"resource").unwrap();
        job();
        assert_all_written(4 * JOB);
        assert_eq!(read(&path), (2 * JOB, 2));
    })
    .run();
    assert_complaints(&ran, &[]);
}

#[test]
fn a_directory_that_is_forbidden_under_way_keeps_its_file_and_is_used_again_later() {
    if !may_change_user() {
        return;
    }
    let ran = alone(|| {
        fs::set_permissions(trace_dir(), fs::Permissions::from_mode(0o777)).unwrap();
        become_user(NOBODY);
        let trace = start_with(|config| config.jsonl_max_bytes(50_000));
        let run = run_dir();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o500)).unwrap();
        for round in 1..4 {
            job();
            assert_all_written(round * JOB);
        }
        let files = || names(&run).iter().filter(|name| name.ends_with(".jsonl")).count();
        assert_eq!(files(), 1);
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
        for round in 4..7 {
            job();
            assert_all_written(round * JOB);
        }
        assert!(files() > 1, "it is put aside again");
        trace.shutdown(SOON).unwrap();
        assert_eq!(ours(&run), 6 * JOB);
    })
    .run();
    assert_one_complaint(&ran, &["cannot put", "aside", "Permission denied"]);
}

#[test]
fn what_stands_in_the_place_of_the_next_file_is_left_alone_and_the_spans_wait() {
    let ran = alone(|| {
        let _trace = start();
        job();
        assert_all_written(JOB);
        let path = own_file("jsonl");
        fs::remove_file(&path).unwrap();
        let victim = trace_dir().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &path).unwrap();
        job();
        assert_sink_fails(true);
        let failing = counters().sinks.remove(0).failing;
        assert!(failing.as_ref().is_some_and(|it| it.contains("File exists")), "{failing:?}");
        job();
        fs::remove_file(&path).unwrap();
        assert_sink_fails(false);
        assert_all_written(3 * JOB);
        assert_eq!(ours(&trace_dir()), 2 * JOB);
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    })
    .run();
    assert_complaints(&ran, &[&["somebody removed"], &["cannot write", "File exists"]]);
}

#[test]
fn files_are_put_aside_beside_what_others_planted_there() {
    let ran = alone(|| {
        let _trace = start_with(|config| config.jsonl_max_bytes(50_000));
        let path = own_file("jsonl");
        let aside = |number: u32| path.with_extension(format!("{number}.jsonl"));
        let victim = trace_dir().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, aside(1)).unwrap();
        symlink("/nowhere/at/all", aside(2)).unwrap();
        fs::create_dir(aside(3)).unwrap();
        File::create(aside(4)).unwrap();
        for round in 1..4 {
            job();
            assert_all_written(round * JOB);
        }
        assert!(fs::symlink_metadata(aside(5)).unwrap().is_file());
        assert!(fs::symlink_metadata(aside(2)).unwrap().is_symlink());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        fs::remove_file(aside(1)).unwrap();
        fs::remove_file(aside(2)).unwrap();
        assert_eq!(ours(&trace_dir()), 3 * JOB);
    })
    .run();
    assert_complaints(&ran, &[]);
}

#[test]
fn what_stands_in_the_place_of_the_closed_recording_is_left_alone() {
    let ran = alone(|| {
        let trace = start();
        let victim = trace_dir().join("victim");
        fs::write(&victim, "precious").unwrap();
        let recording = own_file("recording");
        symlink(&victim, recording.with_extension("recording.closing")).unwrap();
        job();
        let stats = trace.shutdown(SOON).unwrap();
        assert_eq!(stats.handed, JOB);
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(recording.exists());
    })
    .run();
    assert_one_complaint(&ran, &["cannot close the recording", "File exists"]);
    assert_eq!(ran.spans().len() as u64, JOB);
}

#[test]
fn an_idle_process_whose_directory_is_removed_makes_no_other() {
    let ran = alone(|| {
        let trace = start();
        job();
        assert_all_written(JOB);
        fs::remove_dir_all(run_dir()).unwrap();
        until(std::time::Duration::from_millis(1500), || false);
        assert_eq!(names(&trace_dir()), Vec::<String>::new());
        trace.shutdown(SOON).unwrap();
        assert_eq!(names(&trace_dir()), Vec::<String>::new());
    })
    .run();
    assert_one_complaint(&ran, &["removed the recording"]);
    assert_eq!(Spans::of_dir(ran.dir()).len(), 0);
}
