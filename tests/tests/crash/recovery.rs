//! Recovery itself is killed, runs twice at once, and meets a process that lives.

use crate::dead::{Dead, is_open};
use crate::traced::program;
use crate::victim::{Victim, Work, victim};
use stagetrace_tests::ended::file;
use stagetrace_tests::finish;
use stagetrace_tests::rounds::Label;
use stagetrace_wire::recording::read::Recording;
use stagetrace_wire::recording::recover::{RecoverError, Remove, recover};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The main thread of the program that recovers is called like the program.
const MAIN: &str = "recording";

/// What a killed victim left, to be tried on again and again.
fn killed() -> Dead {
    let victim = Victim::start(Work { put_aside_at: "100000", ..Work::default() });
    victim.wait_for(400);
    victim.kill()
}

/// Copies the files of a run.
fn copied(run: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    for file in fs::read_dir(run).expect("it can be read") {
        let path = file.expect("it can be read").path();
        fs::copy(&path, to.join(path.file_name().expect("a file"))).expect("it can be copied");
    }
}

fn recovering(run: &Path, remove: bool) -> Command {
    let recording = file(run, "recording").expect("it is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_recording"));
    command.arg("recover").arg(recording).arg(run).args(remove.then_some("--remove"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Which spans there are, and which of them are open.
fn summary(dead: &Dead, run: &Path) -> BTreeMap<Label, bool> {
    dead.found(run).spans.iter().map(|(label, span)| (*label, is_open(span))).collect()
}

#[test]
fn recovery_that_is_killed_at_any_call_is_made_good_by_the_next() {
    let dead = killed();
    let run = dead.run_dir().expect("it had begun");
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let whole = dir.path().join("whole");
    copied(&run, &whole);
    let output = recovering(&whole, true).output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = summary(&dead, &whole);
    for kills in 1.. {
        assert!(kills < 200, "it does not come to its end");
        let run_dir = dir.path().join(kills.to_string());
        copied(&run, &run_dir);
        let Some(mut traced) = program(recovering(&run_dir, true), MAIN) else { return };
        let mut left = kills;
        let stop = traced.run_to(|stop| {
            left -= u32::from(stop.result.is_some());
            left == 0
        });
        let ended = traced.kill();
        if stop.is_none() {
            assert!(ended.success() && kills > 5, "{ended} after {kills} calls");
            break;
        }
        // Whoever looks in between finds nothing doubled either.
        let _ = dead.found_so_far(&run_dir);
        if let Some(recording) = file(&run_dir, "recording") {
            recover(recording, &run_dir, Remove::Yes).expect("the next one comes to its end");
        }
        assert_eq!(summary(&dead, &run_dir), expected, "killed after {stop:?}");
        let names = fs::read_dir(&run_dir).expect("it can be read");
        let names: Vec<_> = names.map(|file| file.expect("it can be read").file_name()).collect();
        let is_lines = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".jsonl");
        assert!(names.iter().all(is_lines), "nothing else is left: {names:?}");
        fs::remove_dir_all(&run_dir).expect("it can be removed");
    }
}

#[test]
fn of_recoveries_at_once_one_does_it() {
    let dead = killed();
    let run = dead.run_dir().expect("it had begun");
    let recording = dead.recording().expect("it is left");
    let results = std::thread::scope(|scope| {
        let recover = || recover(&recording, &run, Remove::No);
        let all: Vec<_> = (0..4).map(|_| scope.spawn(recover)).collect();
        all.into_iter().map(|one| one.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    let mut did = 0;
    for result in results {
        match result {
            Ok(recovered) => did += u32::from(recovered.ended + recovered.open > 0),
            Err(error) => assert!(matches!(error, RecoverError::InUse), "{error}"),
        }
    }
    assert_eq!(did, 1, "the others found it in use, or nothing to do");
    dead.recovered(Remove::Yes);
}

#[test]
fn recovery_refuses_a_busy_process_and_changes_nothing() {
    let victim = Victim::start(Work::default());
    victim.wait_for(200);
    let recording = victim.recording().expect("it is there");
    let run = recording.parent().expect("a file").to_owned();
    for remove in [Remove::Yes, Remove::No] {
        let refused = recover(&recording, &run, remove);
        assert!(matches!(refused, Err(RecoverError::InUse)), "{refused:?}");
    }
    victim.wait_for(600);
    let dead = victim.kill();
    assert!(file(&run, "part").is_none());
    assert!(dead.recovered(Remove::Yes).acknowledged > 1000);
}

#[test]
fn the_next_process_adopts_what_was_killed_and_so_does_the_one_after_a_killed_adoption() {
    let dead = killed();
    let run = dead.run_dir().expect("it had begun");
    let recording = dead.recording().expect("it is left");
    // Without room a span is not recorded, so perhaps none was open.
    let snapshot = Recording::open(&recording).expect("it can be read").snapshot();
    let was_open = snapshot.open().next().is_some();
    let later = Work { workers: "1", end: ("shutdown", 10), ..Work::default() };
    for attempt in 0..30 {
        let ledger = dead.dir.path().join(format!("ledger-{attempt}"));
        stagetrace_tests::ledger::Ledger::create(&ledger).expect("it can be made");
        let mut command = victim(later, dead.dir.path(), &ledger);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        if attempt < 8 {
            // Killed somewhere in it, most of them.
            let mut child = command.spawn().expect("it can be started");
            std::thread::sleep(std::time::Duration::from_millis(3 * attempt));
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        } else {
            let (status, _, errors) = finish(command.spawn().expect("it can be started"));
            // That it records more than it can write is no matter here.
            let mut complaints = errors.lines().filter(|line| !line.contains(" are dropped: "));
            assert!(status.success() && complaints.next().is_none(), "{status}: {errors}");
            if !recording.exists() {
                break;
            }
        }
    }
    assert!(!recording.exists(), "nobody adopted it");
    let found = dead.found(&run);
    assert_eq!(found.spans.values().any(is_open), was_open);
    assert!(found.acknowledged > 500, "{found:?}");
}
