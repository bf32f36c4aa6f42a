//! What the next process does with what a dead one left.

use stagetrace_tests::ended::{Ended, assert_finished_requests, ended, file, run_dir, waiting};
use stagetrace_tests::{Spans, command, finish, until};
use stagetrace_wire::recording::read::Recording;
use stagetrace_wire::span::StatusCode;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_exits");

/// Starts so many processes in the directory at once, and waits for them.
fn next_processes(dir: &Path, count: usize) {
    let processes: Vec<_> = (0..count)
        .map(|_| {
            let mut command = command(env!("CARGO_BIN_EXE_serve"), dir);
            // Long enough for what it does in the background.
            command.args(["1", "300"]).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for process in processes {
        let (status, _, errors) = finish(process);
        assert!(status.success() && errors.is_empty(), "{errors}");
    }
}

/// Whether the run of a dead process is as if it had ended well, but for the open spans.
fn is_adopted(ended: &Ended, run: &Path) -> bool {
    let recovered = fs::read_dir(run).unwrap().any(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        name.starts_with("test-") && name.ends_with(".recovered.jsonl")
    });
    recovered && file(run, "recording").is_none() && ended.dir.path().exists()
}

#[test]
fn the_next_process_brings_back_what_a_dead_one_left() {
    let ended = ended(PROGRAM, "abort");
    let run = ended.run_dir();
    let adopted = until(Duration::from_secs(60), || {
        // Several at once, of which one does it.
        next_processes(ended.dir.path(), 4);
        is_adopted(&ended, &run)
    });
    assert!(adopted, "{:?}", fs::read_dir(&run).unwrap().collect::<Vec<_>>());
    let spans = Spans::of_killed(&run);
    assert_finished_requests(&spans, &ended.finished());
    assert_eq!(spans.iter().filter(|s| s.attribute("stagetrace.open").is_some()).count(), 3);
    let identities: HashSet<_> = spans.iter().map(|span| span.identity()).collect();
    assert_eq!((identities.len(), spans.len()), (50 * 6 + 6, 50 * 6 + 6), "no span twice");
}

#[test]
fn the_next_process_leaves_the_recording_of_a_living_one_alone() {
    let waiting = waiting(PROGRAM, &[]);
    let run = run_dir(waiting.dir());
    next_processes(waiting.dir(), 4);
    let recording = Recording::open(file(&run, "recording").unwrap()).unwrap();
    assert_eq!(recording.is_alive(), Some(true));
    assert_eq!(recording.snapshot().open().count(), 3);
    waiting.end("-KILL");
}

#[test]
fn a_recording_in_shared_memory_is_linked_from_the_run_and_goes_when_it_is_brought_back() {
    let waiting = waiting(PROGRAM, &[("STAGETRACE_MAPPING", "shm")]);
    let run = run_dir(waiting.dir());
    let target = fs::read_link(file(&run, "recording").unwrap()).expect("a link");
    assert!(target.starts_with("/dev/shm") && target.exists(), "{}", target.display());
    let ended = waiting.end("-KILL");
    let adopted = until(Duration::from_secs(60), || {
        next_processes(ended.dir.path(), 1);
        is_adopted(&ended, &run)
    });
    assert!(adopted && !target.exists(), "{}", target.display());
    let directory = target.parent().unwrap();
    assert!(until(Duration::from_secs(5), || !directory.exists()), "{}", directory.display());
    let spans = Spans::of_killed(&run);
    assert_finished_requests(&spans, &ended.finished());
    assert!(spans.iter().all(|span| span.status.code == StatusCode::Unset));
}
