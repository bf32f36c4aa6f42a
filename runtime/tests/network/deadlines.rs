//! Flushes and shutdowns keep their deadlines though the server hangs, wherever they are called, and lose nothing.

use crate::collector;
use crate::support::{self, LONG, config, scenarios, steps};
use stagetrace::{FlushError, Otlp, Stats, TraceGuard, flush, init};
use stagetrace_collector::{Collector, Reply};
use std::time::Duration;
use tokio::runtime::Builder;

const WITHIN: Duration = Duration::from_millis(300);

/// A server that hangs, with a batch on its way there and others behind it.
fn hanging() -> (Collector, TraceGuard) {
    let collector = collector();
    collector.reply(Reply::hang());
    let config = config().outbox_max_bytes(1 << 20).shutdown_timeout(WITHIN);
    let config = config.batching(|batching| batching.export_timeout = LONG);
    let otlp = Otlp::grpc(collector.endpoint()).timeout(LONG);
    let trace = init(config.otlp(otlp)).unwrap();
    steps(0, 20);
    collector.wait_for_requests_blocking(|requests| !requests.is_empty(), LONG).unwrap();
    (collector, trace)
}

/// It says what is not done.
fn is_told(flushed: Result<Stats, FlushError>) {
    match flushed {
        Err(FlushError::Sinks(errors)) => {
            assert_eq!((errors.len(), errors[0].sink), (1, "otlp"), "{errors:?}");
        }
        Err(FlushError::Deadline(_)) => {}
        other => panic!("{other:?}"),
    }
}

fn flushes_in_time() {
    is_told(support::in_time(WITHIN, || flush(WITHIN)));
}

fn shuts_down_in_time(trace: TraceGuard) {
    is_told(support::in_time(WITHIN, || trace.shutdown(WITHIN)));
}

scenarios! {
    fn without_a_runtime_they_keep_their_deadlines() {
        let (_collector, trace) = hanging();
        flushes_in_time();
        flushes_in_time();
        shuts_down_in_time(trace);
        assert!(matches!(flush(WITHIN), Err(FlushError::NotRunning)), "it is the second");
    }

    fn inside_a_runtime_with_one_thread_they_do() {
        let (_collector, trace) = hanging();
        Builder::new_current_thread().build().unwrap().block_on(async {
            flushes_in_time();
            shuts_down_in_time(trace);
        });
    }

    fn on_the_only_worker_of_a_runtime_they_do() {
        let (_collector, trace) = hanging();
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let task = async move {
            flushes_in_time();
            shuts_down_in_time(trace);
        };
        runtime.block_on(runtime.spawn(task)).unwrap();
    }

    fn called_at_once_each_keeps_its_own() {
        let (_collector, trace) = hanging();
        std::thread::scope(|scope| {
            scope.spawn(|| is_told(flush(Duration::from_secs(2))));
            std::thread::sleep(Duration::from_millis(50));
            for _ in 0..4 {
                scope.spawn(flushes_in_time);
            }
        });
        shuts_down_in_time(trace);
    }

    fn a_shutdown_beside_flushes_keeps_its_deadline() {
        let (_collector, trace) = hanging();
        std::thread::scope(|scope| {
            scope.spawn(|| is_told(flush(Duration::from_secs(1))));
            std::thread::sleep(Duration::from_millis(50));
            shuts_down_in_time(trace);
        });
    }

    fn a_guard_that_is_dropped_by_a_panic_keeps_its_own() {
        let (_collector, trace) = hanging();
        let panicked = support::in_time(WITHIN, || {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _trace = trace;
                panic!("as programs do");
            }))
        });
        assert!(panicked.is_err());
        assert!(matches!(flush(WITHIN), Err(FlushError::NotRunning)));
    }

    fn a_program_that_is_told_to_end_ends_in_time_and_leaves_what_it_could_not_send() {
        let (_collector, trace) = hanging();
        let dir = trace.run_dir().unwrap().to_owned();
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let mut terminate = signal(SignalKind::terminate()).unwrap();
            let pid = std::process::id().to_string();
            let told = std::process::Command::new("kill").args(["-TERM", &pid]).status();
            assert!(told.unwrap().success());
            terminate.recv().await;
            shuts_down_in_time(trace);
        });
        let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name());
        let files: Vec<_> = files.filter_map(|name| name.into_string().ok()).collect();
        assert!(files.iter().any(|name| name.ends_with(".otlp.outbox")), "{files:?}");
    }
}
