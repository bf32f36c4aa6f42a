//! A process per scenario, since `init` is once per process; the file to compare to; how a sink stands.

use stagetrace::{FlushError, SinkStatus, Stats, TraceConfig, TraceGuard, stage};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::span::Span;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// How much longer than its deadline a flush may take.
const SLACK: Duration = Duration::from_millis(50);

const CHILD: &str = "STAGETRACE_TEST_CHILD";
/// They measure time, so they run one after another.
static TURN: Mutex<()> = Mutex::new(());

/// Runs the test with this path in a process of its own.
pub(crate) fn in_own_process(path: &str, body: fn()) {
    if std::env::var_os(CHILD).is_some() {
        std::thread::spawn(|| {
            std::thread::sleep(9 * LONG);
            eprintln!("it hangs");
            std::process::abort();
        });
        return body();
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let executable = std::env::current_exe().expect("a test has an executable");
    let (_crate, test) = path.split_once("::").expect("the path begins with the crate");
    let child = Command::new(executable)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        // Printing one takes longer than an export may.
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("the test can be run again");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&child.stdout), text(&child.stderr));
    assert!(child.status.success(), "{}\n{out}\n{err}", child.status);
    assert!(out.contains("1 passed"), "the test was not found: {out}");
    if let Some((_, why)) = out.split_once("not checked: ") {
        println!("not checked: {}", why.lines().next().unwrap_or_default());
    }
}

/// Makes each function a test that runs in a process of its own.
macro_rules! scenarios {
    ($($(#[$attribute:meta])* fn $name:ident() $body:block)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            crate::support::in_own_process(path, || $body);
        }
    )*};
}
pub(crate) use scenarios;

/// A configuration that writes where tests may, with batches of eight and short times, and no outbox.
pub(crate) fn config() -> TraceConfig {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exporters");
    let config = TraceConfig::new().output_dir(dir).outbox_max_bytes(0);
    config.service_name("exporter-test").batching(|batching| {
        batching.max_export_batch_size = 8;
        batching.schedule_delay = Duration::from_millis(20);
        batching.export_timeout = Duration::from_secs(1);
    })
}

#[stage("step", attrs("number" = _number))]
pub(crate) fn step(_number: usize) {}

/// Records so many spans, numbered from `from` on.
pub(crate) fn steps(from: usize, count: usize) {
    (from..from + count).for_each(step);
}

/// What the .jsonl holds.
pub(crate) fn written(trace: &TraceGuard) -> Vec<Span> {
    read_lines(&written_lines(trace), &ReadOptions::default()).spans
}

/// The .jsonl itself.
pub(crate) fn written_lines(trace: &TraceGuard) -> Vec<u8> {
    let dir = trace.run_dir().expect("the run has a directory");
    let entries = std::fs::read_dir(dir).expect("it can be listed");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let file = paths.into_iter().find(|path| path.extension().is_some_and(|e| e == "jsonl"));
    std::fs::read(file.expect("there is a .jsonl")).expect("it can be read")
}

/// Flushes, in time.
pub(crate) fn flush(within: Duration) -> Result<Stats, FlushError> {
    in_time(within, || stagetrace::flush(within))
}

/// Does what has this deadline: it takes little longer than that, beyond what threads are late that only sleep until then,
/// since on a busy machine all are. Two of them wake one after the other, as the answer comes over two threads.
pub(crate) fn in_time<R>(within: Duration, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let sleeper = std::thread::spawn(move || {
        if within == LONG {
            return within;
        }
        std::thread::sleep(within);
        let second = std::thread::spawn(move || start.elapsed());
        second.join().expect("it does not panic")
    });
    let done = work();
    let took = start.elapsed();
    if took > within + SLACK {
        let slept = sleeper.join().expect("it does not panic");
        assert!(took < slept + SLACK, "took {took:?} instead of {within:?}, or {slept:?}");
    }
    done
}

/// How a sink stands. All that it was handed is accounted for.
pub(crate) fn sink(name: &str) -> SinkStatus {
    let mut stats = None;
    // On a busy machine no answer may come in time.
    wait_until(|| {
        stats = stagetrace::stats();
        stats.is_some()
    });
    let stats = stats.expect("it was there");
    for sink in &stats.sinks {
        // Reports of losses are not among the program's spans.
        let due = match sink.name {
            "jsonl" => stats.handed,
            _ => stats.handed - stats.undecided - stats.sampled_out,
        };
        assert!(sink.handed >= due, "{sink:?}");
        assert_eq!(
            sink.handed,
            sink.queued + sink.outbox + sink.exported + sink.failed,
            "{sink:?}"
        );
        let by_cause: u64 = sink.failed_by.iter().map(|(_, count)| count).sum();
        assert_eq!(sink.failed, by_cause, "{sink:?}");
    }
    let sink = stats.sinks.into_iter().find(|sink| sink.name == name);
    sink.expect("the sink is there")
}

/// The problems of a failed flush, by sink.
pub(crate) fn problems(flushed: Result<Stats, FlushError>) -> Vec<(&'static str, String)> {
    match flushed {
        Ok(_) => Vec::new(),
        Err(FlushError::Sinks(errors)) => {
            errors.into_iter().map(|error| (error.sink, error.problem)).collect()
        }
        Err(other) => panic!("the failures are not named: {other:?}"),
    }
}

/// Waits until `what` is so.
pub(crate) fn wait_until(mut what: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !what() {
        assert!(Instant::now() < deadline, "it does not come to pass");
        std::thread::sleep(Duration::from_millis(2));
    }
}
