//! A forked child leaves its parent's recording alone, and may begin one of its own.
#![cfg(unix)]

use stagetrace::{
    Carrier, Outcome, Stats, TraceGuard, Traced, add_event, attach, event, span, stage,
};
use stagetrace_tests::ended::file;
use stagetrace_tests::pipeline::{Generate, decode, dispatch, forward};
use stagetrace_tests::{Spans, alone, flushed, start};
use stagetrace_wire::recording::read::Recording;
use stagetrace_wire::recording::recover::{Remove, recover};
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Seconds after which a child that hangs is ended.
const PATIENCE: u32 = 40;

/// Runs `body` in a forked child; gives the child's number. The child ends without destructors, with status 0 if `body`
/// came to its end.
fn forked(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child goes on with a copy of this thread, and ends below.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // SAFETY: ends the child later, if it hangs, and else below.
        unsafe { libc::alarm(PATIENCE) };
        let done = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    child
}

/// Waits until a child has ended well.
fn assert_ends_well(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: waits for a child that was made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed, or did not end");
}

fn shut_down(trace: TraceGuard) -> Stats {
    trace.shutdown(Duration::from_secs(20)).unwrap()
}

/// The names of the spans that are open in this process's recording, as another process sees them.
fn open_spans() -> Vec<String> {
    let recording = Recording::open(stagetrace::status().recording.unwrap()).unwrap();
    assert_eq!(recording.is_alive(), Some(true), "its lock is held");
    let mut open: Vec<_> =
        recording.snapshot().open().map(|span| span.name().into_owned()).collect();
    open.sort();
    open
}

/// The one run below a directory.
fn run_dir(dir: &Path) -> PathBuf {
    let runs: Vec<_> = fs::read_dir(dir).unwrap().map(|run| run.unwrap().path()).collect();
    assert_eq!(runs.len(), 1, "the children are of their parent's run: {runs:?}");
    runs[0].clone()
}

/// How many .jsonl files a run has, which is how many processes wrote any.
fn writers(run: &Path) -> usize {
    let files = fs::read_dir(run).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "jsonl")).count()
}

#[stage("work")]
fn work() {}

#[test]
fn a_forked_child_records_nothing_and_does_not_disturb_its_parent() {
    let spans = alone(|| {
        let trace = start();
        let outer = span!("outer");
        outer.in_scope(|| {
            drop(span!("before"));
            assert_ends_well(forked(|| {
                for _ in 0..100_000 {
                    drop(span!("in the child"));
                }
                drop(stagetrace::flush(Duration::from_millis(10)));
                assert!(!stagetrace::status().running);
            }));
            drop(span!("after"));
        });
        drop(outer);
        let stats = shut_down(trace);
        assert_eq!((stats.begun, stats.handed, stats.dropped_spans()), (3, 3, 0));
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "outer\n  before\n  after\n");
}

#[test]
fn a_child_that_ends_normally_does_not_close_its_parents_recording() {
    let spans = alone(|| {
        let mut trace = Some(start());
        let mut outer = Some(span!("outer"));
        assert_ends_well(forked(|| {
            let outer = outer.take().unwrap();
            outer.in_scope(|| drop(span!("in the child")));
            drop(outer);
            drop(trace.take());
        }));
        assert_eq!(open_spans(), ["outer"]);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "outer\n");
}

#[test]
fn a_guard_dropped_in_a_forked_child_changes_nothing_in_the_parent() {
    let spans = alone(|| {
        let _trace = start();
        let request = Generate::begun("a");
        dispatch(&request, || {
            let mut inner = Some(span!("inner"));
            work();
            flushed();
            for starts in [false, true] {
                let child = forked(|| {
                    // Everything that is open, innermost first, and with all that can be said about it.
                    let _trace = starts.then(start);
                    let inner = inner.take().unwrap();
                    inner.set_attribute("from", "the child");
                    inner.add_event("in the child", &[]);
                    event!("in the child");
                    inner.end(Outcome::Error);
                    request.finish(Outcome::Error);
                    drop(request.clone());
                });
                assert_ends_well(child);
                assert_eq!(open_spans(), ["generate", "inner", "scheduler_dispatch"]);
            }
            // The child has unwound through the stage that this thread is still in.
            let child = forked(|| {
                let dispatched = catch_unwind(AssertUnwindSafe(|| {
                    dispatch(&request, || panic!("as expected"));
                }));
                assert!(dispatched.is_err());
            });
            assert_ends_well(child);
            assert_eq!(open_spans(), ["generate", "inner", "scheduler_dispatch"]);
        });
        request.finish(Outcome::Ok);
    })
    .run()
    .spans();
    let expected = "generate\n  scheduler_dispatch\n    inner\n    work\n";
    assert_eq!(spans.tree(&["from", "error.type"]), expected);
    assert!(spans.iter().all(|span| span.events.is_empty()));
}

#[test]
fn a_child_that_calls_init_records_into_a_recording_of_its_own() {
    let ran = alone(|| {
        let trace = start();
        let outer = span!("outer");
        let child = outer.in_scope(|| {
            drop(span!("before"));
            let child = forked(|| {
                let trace = start();
                assert!(stagetrace::init(stagetrace::TraceConfig::new()).is_err(), "only once");
                (0..3).for_each(|_| work());
                let request = Generate::begun("of the child");
                dispatch(&request, || forward(&request));
                request.finish(Outcome::Ok);
                let stats = shut_down(trace);
                assert_eq!((stats.begun, stats.handed, stats.dropped_spans()), (6, 6, 0));
            });
            drop(span!("after"));
            child
        });
        assert_ends_well(child);
        drop(outer);
        let stats = shut_down(trace);
        assert_eq!((stats.begun, stats.handed), (3, 3));
    })
    .run();
    let spans = ran.spans();
    // What was current at the fork is the place in the trace under which the child begins.
    let expected = "\
generate
  scheduler_dispatch
    gpu_forward
outer
  after
  before
  work
  work
  work
";
    assert_eq!(spans.tree_by_name(), expected);
    assert_eq!(writers(&run_dir(ran.dir())), 2);
    let of = |name: &str| spans.one(name).resource.attribute("process.pid").cloned();
    assert_ne!(of("generate"), of("outer"));
    let numbers: HashSet<_> = spans.iter().map(|span| span.span_id).collect();
    assert_eq!(numbers.len(), spans.len());
}

#[test]
fn what_a_child_inherits_goes_on_in_its_own_recording() {
    let spans = alone(|| {
        let trace = start();
        let request = Generate::begun("a");
        let mut span = Some(span!("by hand"));
        let position = request.position();
        let child = forked(|| {
            let trace = start();
            let span = span.take().unwrap();
            // Their own spans are the parent's. What is inside them is the child's.
            decode(&request);
            span.in_scope(work);
            {
                let _attached = attach(position);
                work();
                add_event("nobody's", &[]);
            }
            drop(span);
            request.finish(Outcome::Ok);
            let sent = serde_json::to_string(&request.trace).unwrap();
            assert!(sent.contains(&position.trace_id().unwrap().to_string()), "{sent}");
            let stats = shut_down(trace);
            assert_eq!((stats.begun, stats.handed, stats.open), (3, 3, 0), "{stats:?}");
        });
        assert_ends_well(child);
        drop(span);
        request.finish(Outcome::Ok);
        drop(trace);
    })
    .run()
    .spans();
    let expected = "by hand\n  work\ngenerate\n  decode\n  work\n";
    assert_eq!(spans.tree_by_name(), expected);
    assert!(spans.iter().all(|span| span.events.is_empty()));
}

#[test]
fn a_fork_at_any_moment_leaves_a_child_that_can_record() {
    const CHILDREN: usize = 12;
    let ran = alone(|| {
        let trace = start();
        let done = Arc::new(AtomicBool::new(false));
        let busy: Vec<_> = (0..2)
            .map(|_| {
                let done = done.clone();
                std::thread::spawn(move || {
                    let mut rounds = 0;
                    // All that takes a lock somewhere, as often as can be.
                    while !done.load(Ordering::Relaxed) && rounds < 1_000_000 {
                        rounds += 1;
                        let requests: Vec<_> = (0..50).map(|_| Generate::begun("busy")).collect();
                        drop(requests);
                        stagetrace::testing::capture(|| span!("captured")).output.discard();
                        std::thread::spawn(work).join().unwrap();
                        std::thread::sleep(Duration::from_micros(100));
                    }
                })
            })
            .collect();
        for _ in 0..CHILDREN {
            let child = forked(|| {
                let trace = start();
                let request = Generate::begun("of a child");
                decode(&request);
                std::thread::spawn(work).join().unwrap();
                request.finish(Outcome::Ok);
                let captured = stagetrace::testing::capture(work);
                assert_eq!(captured.tree(&[]), "work\n");
                let stats = shut_down(trace);
                assert_eq!((stats.begun, stats.handed), (3, 3), "{stats:?}");
            });
            assert_ends_well(child);
        }
        done.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        drop(trace);
    })
    .run();
    let spans = ran.spans();
    assert_eq!(writers(&run_dir(ran.dir())), 1 + CHILDREN);
    let of_children = spans.all("decode");
    assert_eq!(of_children.len(), CHILDREN);
    let numbers: HashSet<_> = spans.iter().map(|span| span.identity()).collect();
    assert_eq!(numbers.len(), spans.len(), "no id is another process's");
}

#[test]
fn a_child_of_a_child_records_too() {
    let spans = alone(|| {
        let trace = start();
        work();
        let child = forked(|| {
            // It does not start itself, but its own child does.
            let child = forked(|| {
                let trace = start();
                work();
                let child = forked(|| {
                    let trace = start();
                    work();
                    assert_eq!(shut_down(trace).handed, 1);
                });
                assert_ends_well(child);
                work();
                assert_eq!(shut_down(trace).handed, 2);
            });
            assert_ends_well(child);
        });
        assert_ends_well(child);
        drop(trace);
    })
    .run();
    assert_eq!(writers(&run_dir(spans.dir())), 3);
    assert_eq!(spans.spans().all("work").len(), 4);
}

#[test]
fn a_fork_inside_a_capture_is_no_other() {
    let spans = alone(|| {
        let _trace = start();
        work();
        let mut child = None;
        let captured = stagetrace::testing::capture(|| {
            work();
            let pid = forked(|| {
                let captured = stagetrace::testing::capture(work);
                assert_eq!(captured.tree(&[]), "work\n");
                work();
            });
            child = Some(pid);
            work();
        });
        assert_eq!(captured.tree(&[]), "work\nwork\n");
        assert_ends_well(child.unwrap());
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 1);
}

#[test]
fn a_child_that_lives_on_does_not_keep_its_dead_parents_recording() {
    let ran = alone(|| {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let parent = forked(|| {
            let trace = start();
            work();
            let open = span!("open");
            let child = forked(|| {
                there.write_all(b"!").unwrap();
                // Lives until the connection is shut down.
                drop(there.read(&mut [0]));
            });
            assert!(child > 0);
            // Ends without a word.
            std::mem::forget((trace, open));
        });
        here.read_exact(&mut [0]).unwrap();
        assert_ends_well(parent);
        let dir = PathBuf::from(std::env::var_os("STAGETRACE_DIR").unwrap());
        let run = run_dir(&dir);
        let recording = file(&run, "recording").unwrap();
        let alive = Recording::open(&recording).unwrap().is_alive();
        assert_eq!(alive, Some(false), "the child has closed its copy of the lock");
        let recovered = recover(&recording, &run, Remove::Yes).unwrap();
        assert_eq!(recovered.open, 1);
        // Closing would not do: the child has a copy of this end as well.
        here.shutdown(Shutdown::Both).unwrap();
    })
    .run();
    let spans = Spans::of_killed(ran.dir());
    assert_eq!(spans.tree(&["stagetrace.open"]), "work\nopen stagetrace.open=true\n");
}
