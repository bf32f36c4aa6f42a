//! What is left on disk, however a process ends.

use stagetrace::{Carrier, FlushError, span};
use stagetrace_tests::ended::{
    Ended, assert_finished_requests, ended, file, file_of_run, open_request, run_dir, started,
    waiting,
};
use stagetrace_tests::pipeline::{Generate, serve};
use stagetrace_tests::{Spans, alone, command, finish, start, until};
use stagetrace_wire::recording::read::{Recording, State};
use stagetrace_wire::recording::recover::{Remove, recover};
use stagetrace_wire::span::Value;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_exits");

#[test]
fn a_return_from_main_leaves_everything_in_the_file() {
    let ended = ended(PROGRAM, "return");
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", ended.stderr);
    let spans = Spans::of_dir(ended.dir.path());
    assert_finished_requests(&spans, &ended.finished());
    assert_eq!(spans.len(), 50 * 6 + 6);
    let recording = Recording::open(ended.recording()).unwrap();
    assert_eq!((recording.state(), recording.is_alive()), (State::Closed, Some(false)));
    assert_eq!(recording.snapshot().spans.len(), 0);
    let names: Vec<_> = recording.table().stages.iter().map(|stage| stage.name.clone()).collect();
    assert!(names.iter().any(|name| name == "denoise_step"), "{names:?}");
}

#[test]
fn a_panic_leaves_everything_in_the_file_and_marks_what_it_went_through() {
    let ended = ended(PROGRAM, "panic");
    assert_eq!(ended.status.code(), Some(101));
    let spans = Spans::of_dir(ended.dir.path());
    assert_finished_requests(&spans, &ended.finished());
    let expected = "\
generate error.type=panic
  scheduler_dispatch error.type=panic
    gpu_forward
      denoise_step
      denoise_step
    background error.type=panic
";
    assert_eq!(open_request(&spans, &["error.type"]), expected);
    assert_eq!(Recording::open(ended.recording()).unwrap().state(), State::Closed);
}

/// What a process leaves that ended without a word: all that had ended, and which spans were open.
fn assert_nothing_is_lost(ended: &Ended) {
    Spans::of_killed(ended.dir.path());
    let recording = Recording::open(ended.recording()).unwrap();
    assert_eq!((recording.state(), recording.is_alive()), (State::Running, Some(false)));
    let snapshot = recording.snapshot();
    assert!(snapshot.damage.is_none(), "{:?}", snapshot.damage);
    let mut open: Vec<_> = snapshot.open().map(|span| span.name().into_owned()).collect();
    open.sort();
    assert_eq!(open, ["background", "generate", "scheduler_dispatch"]);
    for span in snapshot.open() {
        assert_eq!(snapshot.request_id(span), Some("open"), "{}", span.name());
    }
    let (recovered, spans) = ended.recovered();
    assert_eq!(recovered.open, 3);
    assert_finished_requests(&spans, &ended.finished());
    assert_eq!(ended.finished().len(), 50);
    let expected = "\
generate stagetrace.open=true
  scheduler_dispatch stagetrace.open=true
    gpu_forward
      denoise_step
      denoise_step
    background n=7 stagetrace.open=true
";
    assert_eq!(open_request(&spans, &["n", "stagetrace.open"]), expected);
    let events: Vec<_> = spans.iter().flat_map(|span| &span.events).collect();
    assert_eq!(events.len(), 1, "the event of an open span is there");
    // A second time there is nothing more to bring back.
    let (again, after) = ended.recovered();
    assert_eq!((again.ended, again.open), (0, 0));
    assert_eq!(after.len(), spans.len());
}

#[test]
fn a_shutdown_that_runs_out_of_time_loses_nothing() {
    let ran = alone(|| {
        let trace = start();
        for _ in 0..500 {
            serve("a", 0);
        }
        // It may be in time all the same: who asks is given a moment for the answer.
        if let Err(error) = trace.shutdown(Duration::ZERO) {
            assert_eq!(error, FlushError::Deadline(Duration::ZERO));
        }
    })
    .run();
    let run = run_dir(ran.dir());
    if let Some(recording) = file(&run, "recording") {
        recover(recording, &run, Remove::No).unwrap();
    }
    let spans = Spans::of_killed(ran.dir());
    assert_eq!(spans.len(), 500 * 4);
    let identities: HashSet<_> = spans.iter().map(|span| span.identity()).collect();
    assert_eq!(identities.len(), spans.len());
}

#[test]
fn what_ends_while_the_shutdown_goes_on_is_not_lost() {
    let ran = alone(|| {
        let trace = start();
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let done = done.clone();
                std::thread::spawn(move || {
                    let (mut recorded, mut rounds) = (0_u64, 0);
                    while !done.load(std::sync::atomic::Ordering::Relaxed) && rounds < 1_000_000 {
                        rounds += 1;
                        let span = span!("span");
                        recorded += u64::from(span.is_recorded());
                        drop(span);
                        std::thread::sleep(Duration::from_micros(20));
                    }
                    recorded
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        trace.shutdown(Duration::from_secs(20)).unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let recorded: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        println!("\nrecorded {recorded}");
    })
    .run();
    let recorded = ran.stdout.lines().find_map(|line| line.strip_prefix("recorded ")).unwrap();
    let run = run_dir(ran.dir());
    recover(file(&run, "recording").unwrap(), &run, Remove::No).unwrap();
    let spans = Spans::of_killed(ran.dir());
    assert_eq!(spans.all("span").len(), recorded.parse::<usize>().unwrap());
    // One of each thread may still have been open when the recording was closed.
    let open = spans.iter().filter(|span| span.attribute("stagetrace.open").is_some()).count();
    assert!(open <= 2, "{open}");
}

#[test]
fn exit_without_a_word_loses_nothing() {
    let ended = ended(PROGRAM, "exit");
    assert_eq!(ended.status.code(), Some(1));
    assert_nothing_is_lost(&ended);
}

/// Spans of threads that are alive, at rest or dead when the process ends at once, past every destructor.
#[test]
fn an_end_past_every_destructor_loses_nothing_of_any_thread() {
    let ran = alone(|| {
        let trace = start();
        let (to_thread, work) = std::sync::mpsc::channel::<()>();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            serve("of a living thread", 1);
            let open = span!("open");
            done.send(()).unwrap();
            // Until the process is gone.
            let _ = work.recv();
            drop(open);
        });
        std::thread::spawn(|| serve("of a dead thread", 1)).join().unwrap();
        serve("of the first thread", 1);
        is_done.recv().unwrap();
        std::mem::forget((trace, to_thread));
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    })
    .run();
    let run = run_dir(ran.dir());
    let recovered = recover(file(&run, "recording").unwrap(), &run, Remove::No).unwrap();
    assert_eq!(recovered.open, 1);
    let spans = Spans::of_killed(ran.dir());
    let tree = "  scheduler_dispatch\n    gpu_forward\n    decode\n";
    for thread in ["of a living thread", "of a dead thread", "of the first thread"] {
        let is_its = |span: &&stagetrace_wire::span::Span| {
            span.attribute("stagetrace.request.id") == Some(&Value::from(thread))
        };
        let trace = spans.iter().find(is_its).unwrap_or_else(|| panic!("{thread}")).trace_id;
        let of_trace: Vec<_> = spans.iter().filter(|s| s.trace_id == trace).cloned().collect();
        assert_eq!(Spans::from(of_trace).tree(&[]), format!("generate\n{tree}"), "{thread}");
    }
}

#[test]
fn an_abort_loses_nothing() {
    let ended = ended(PROGRAM, "abort");
    assert!(!ended.status.success());
    assert_nothing_is_lost(&ended);
}

#[test]
fn sigterm_loses_nothing() {
    let ended = waiting(PROGRAM, &[]).end("-TERM");
    assert!(!ended.status.success() && ended.stderr.is_empty(), "{}", ended.stderr);
    assert_nothing_is_lost(&ended);
}

#[test]
fn sigkill_loses_nothing() {
    assert_nothing_is_lost(&waiting(PROGRAM, &[]).end("-KILL"));
}

#[test]
fn a_kill_at_any_instant_loses_no_request_that_had_finished() {
    let never = "0";
    for (delay, put_aside_at) in
        [(3, never), (20, never), (45, "20000"), (100, never), (170, "5000"), (260, never)]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut child =
            started(PROGRAM, "work", dir.path(), &[("STAGETRACE_JSONL_MAX_BYTES", put_aside_at)]);
        assert!(until(Duration::from_secs(20), || file_of_run(dir.path(), "jsonl").is_some()));
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        let (status, stdout, stderr) = finish(child);
        let ended = Ended { status, stdout, stderr, dir };
        let (_, spans) = ended.recovered();
        let roots = spans.all("generate");
        let done: HashSet<_> = roots
            .iter()
            .filter(|root| root.attribute("stagetrace.open").is_none())
            .filter_map(|root| root.attribute("stagetrace.request.id")?.as_str())
            .collect();
        let finished = ended.finished();
        let lost: Vec<_> = finished.iter().filter(|id| !done.contains(*id)).collect();
        let dropped = Recording::open(ended.recording()).unwrap().losses();
        assert!(
            dropped.iter().all(|(_, count)| *count == 0),
            "too fast for the machine: {dropped:?}"
        );
        let (some, all) = (&lost[..lost.len().min(5)], finished.len());
        assert!(lost.is_empty(), "after {delay} ms, {} of {all}: {some:?} ..", lost.len());
        for stage in ["scheduler_dispatch", "background", "decode"] {
            let ended = spans.all(stage);
            let ended = ended.iter().filter(|span| span.attribute("stagetrace.open").is_none());
            let ended: HashSet<_> = ended.map(|span| span.trace_id).collect();
            for root in &roots {
                let id = root.attribute("stagetrace.request.id").and_then(Value::as_str);
                if finished.contains(&id.unwrap_or_default()) {
                    let of_trace = spans.iter().filter(|span| span.trace_id == root.trace_id);
                    let of_trace = Spans::from(of_trace.cloned().collect::<Vec<_>>());
                    assert!(
                        ended.contains(&root.trace_id),
                        "{stage} of {id:?} after {delay} ms:\n{}",
                        of_trace.tree(&["stagetrace.open"])
                    );
                }
            }
        }
        let mut ids: Vec<_> = spans.iter().map(|span| span.identity()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), spans.len(), "no span twice, after {delay} ms");
    }
}

#[test]
fn a_living_process_shows_its_open_spans_and_who_they_belong_to() {
    let waiting = waiting(PROGRAM, &[]);
    let path = file_of_run(waiting.dir(), "recording").unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.state(), recording.is_alive()), (State::Running, Some(true)));
    let early = recording.snapshot();
    std::thread::sleep(Duration::from_millis(50));
    let late = recording.snapshot();
    for snapshot in [&early, &late] {
        let open: HashSet<_> = snapshot.open().map(|span| span.name().into_owned()).collect();
        assert_eq!(open.len(), 3, "{open:?}");
        assert!(snapshot.open().all(|span| snapshot.request_id(span) == Some("open")));
        let all: Vec<_> = snapshot.open().flat_map(|span| span.attributes()).collect();
        let has = |key: &str, value: Value| {
            all.iter().any(|(other, found)| *other == key && Value::from(*found) == value)
        };
        assert!(has("n", Value::I64(7)) && has("diffusion.steps", Value::I64(2)), "{all:?}");
        assert!(has("gen_ai.request.model", Value::from("digits")), "{all:?}");
    }
    let age = |snapshot: &stagetrace_wire::recording::read::Snapshot| {
        let dispatch = snapshot.open().find(|span| span.name() == "scheduler_dispatch").unwrap();
        snapshot.age(dispatch)
    };
    let passed = age(&late) - age(&early);
    assert!((50_000_000..5_000_000_000).contains(&passed), "{passed} ns");
    assert!(recover(&path, run_dir(waiting.dir()), Remove::No).is_err(), "it lives");
    let ended = waiting.end("-KILL");
    assert_eq!(Recording::open(ended.recording()).unwrap().is_alive(), Some(false));
}

#[test]
fn a_reader_of_a_busy_process_finds_only_whole_spans() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(PROGRAM, "work", dir.path(), &[]);
    assert!(until(Duration::from_secs(20), || file_of_run(dir.path(), "jsonl").is_some()));
    let recording = Recording::open(file_of_run(dir.path(), "recording").unwrap()).unwrap();
    let known = ["generate", "scheduler_dispatch", "background", "decode"];
    let (mut ended, mut open) = (0, 0);
    for _ in 0..150 {
        let snapshot = recording.snapshot();
        let damage = snapshot.damage;
        let broken = (damage.heads, damage.chunks, damage.records, damage.entries);
        assert_eq!(broken, (0, 0, 0, 0), "{damage:?}");
        for span in &snapshot.spans {
            assert!(known.contains(&&*span.name()), "{}", span.name());
            assert!(span.begin() > 0 && span.end().is_none_or(|end| end >= span.begin()));
            assert!(!span.is_root() || span.request_id().is_some());
        }
        ended += snapshot.ended().count();
        open += snapshot.open().count();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(ended > 0 && open > 0, "{ended} ended, {open} open");
    assert!(recording.losses().iter().all(|(_, count)| *count == 0));
    child.kill().unwrap();
    finish(child);
}

#[test]
fn a_clean_end_removes_the_recording_in_shared_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = command(env!("CARGO_BIN_EXE_exits"), dir.path());
    command.arg("return").env("STAGETRACE_MAPPING", "shm");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, _, stderr) = finish(command.spawn().unwrap());
    assert!(status.success(), "{stderr}");
    let run = run_dir(dir.path());
    let recording = file(&run, "recording").unwrap();
    assert!(fs::symlink_metadata(&recording).unwrap().is_file(), "no link any more");
    let run_id = run.file_name().unwrap();
    let uid = {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&run).unwrap().uid()
    };
    let shared = Path::new("/dev/shm").join(format!("stagetrace-{uid}")).join(run_id);
    assert!(!shared.exists(), "{}", shared.display());
}

#[test]
fn a_flush_may_take_for_ever() {
    let spans = alone(|| {
        let trace = start();
        serve("a", 0);
        stagetrace::flush(Duration::MAX).unwrap();
        trace.shutdown(Duration::MAX).unwrap();
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 4);
}

#[test]
fn what_is_open_at_a_clean_end_is_listed_in_the_closed_recording() {
    let ran = alone(|| {
        let trace = start();
        serve("a", 0);
        let mut request = Generate::begun("unfinished");
        let span = span!("background", parent = request.position());
        trace.shutdown(Duration::from_secs(10)).unwrap();
        std::mem::forget(span);
        std::mem::forget(std::mem::replace(&mut request.trace, stagetrace::TraceState::null()));
    })
    .run();
    let recording = Recording::open(file(&run_dir(ran.dir()), "recording").unwrap()).unwrap();
    assert_eq!(recording.state(), State::Closed);
    let snapshot = recording.snapshot();
    let open: Vec<_> = snapshot.open().map(|span| span.name().into_owned()).collect();
    assert_eq!(open, ["generate", "background"]);
    assert_eq!(snapshot.open().next().unwrap().request_id(), Some("unfinished"));
    assert_eq!(ran.spans().len(), 4);
}
