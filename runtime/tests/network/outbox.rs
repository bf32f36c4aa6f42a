//! A server that is away: what cannot be sent waits on disk, and arrives when it is back.

use crate::failures::answering;
use crate::inherited::of_endpoint;
use crate::support::{
    self, LONG, config, flush, problems, scenarios, sink, step, steps, wait_until, written,
};
use crate::{collector, numbers};
use stagetrace::{FlushError, Otlp, TraceConfig, TraceGuard, init};
use stagetrace_collector::{Collector, GrpcCode, Reply};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// With an outbox, and half a second for an export.
pub(crate) fn with_outbox() -> TraceConfig {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("outbox");
    config()
        .output_dir(dir)
        .outbox_max_bytes(16 << 20)
        .batching(|batching| batching.export_timeout = Duration::from_millis(500))
}

pub(crate) fn start(otlp: Otlp) -> TraceGuard {
    init(with_outbox().otlp(otlp)).unwrap()
}

/// Files of outboxes in a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(".otlp.outbox")).collect()
}

/// The spans wait on disk, and nothing is lost.
pub(crate) fn all_wait(spans: u64) {
    wait_until(|| sink("otlp").outbox == spans);
    assert_eq!((sink("otlp").failed, sink("otlp").exported), (0, 0));
}

/// Everything arrives, once, and nothing is left.
pub(crate) fn all_arrive(collector: &Collector, trace: &TraceGuard, spans: usize) {
    wait_until(|| sink("otlp").exported == spans as u64);
    assert_eq!(numbers(collector), (0..spans as i64).collect::<Vec<_>>());
    assert_eq!((sink("otlp").outbox, sink("otlp").failed), (0, 0));
    assert_eq!(sink("otlp").failing, None);
    assert_eq!(files(trace.run_dir().unwrap()), Vec::<PathBuf>::new());
}

/// While the server answers like this, everything waits; then it arrives.
fn waits_while(otlp: fn(String) -> Otlp, reply: Reply) {
    let collector = collector();
    collector.reply(reply);
    let trace = start(otlp(collector.endpoint()));
    steps(0, 20);
    all_wait(20);
    assert_eq!(numbers(&collector), Vec::<i64>::new());
    assert!(sink("otlp").failing.is_some() && sink("otlp").failing_since.is_some());
    assert_eq!(stagetrace::status().complaints.len(), 1, "{:?}", stagetrace::status().complaints);
    collector.reply(Reply::success());
    all_arrive(&collector, &trace, 20);
    let [over] = &stagetrace::status().complaints[..] else { panic!("it is said once") };
    assert!(over.starts_with("20 spans that waited have arrived at "), "{over}");
}

scenarios! {
    fn spans_for_a_server_that_refuses_connections_wait_and_arrive_in_order() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        let trace = start(Otlp::http(collector.endpoint()));
        steps(0, 20);
        all_wait(20);
        steps(20, 1000);
        all_wait(1020);
        assert!(!files(trace.run_dir().unwrap()).is_empty());
        collector.accept_connections().unwrap();
        all_arrive(&collector, &trace, 1020);
        // From now on they go the straight way.
        step(1020);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector).last(), Some(&1020));
    }

    fn what_comes_while_others_wait_goes_behind_them() {
        let collector = away();
        let trace = start(Otlp::http(collector.endpoint()));
        steps(0, 200);
        all_wait(200);
        collector.reply(Reply::success().delay(Duration::from_millis(30)).keep_spans());
        collector.accept_connections().unwrap();
        wait_until(|| sink("otlp").exported >= 24);
        steps(200, 40);
        all_arrive(&collector, &trace, 240);
    }

    fn spans_for_one_that_hangs_wait() {
        waits_while(Otlp::http, Reply::hang());
    }

    fn spans_for_one_that_hangs_wait_over_grpc_too() {
        waits_while(Otlp::grpc, Reply::hang());
    }

    fn spans_for_one_that_asks_for_time_wait_as_long_as_it_asks() {
        let collector = collector();
        collector.script([Reply::status(503).retry_after(Duration::from_secs(2))]);
        let trace = start(Otlp::http_json(collector.endpoint()));
        steps(0, 20);
        all_arrive(&collector, &trace, 20);
        let requests = collector.requests();
        let wait = requests[1].arrived.duration_since(requests[0].arrived);
        assert!(wait >= Duration::from_secs(2), "{wait:?}");
    }

    fn spans_for_one_that_is_unavailable_wait() {
        waits_while(Otlp::grpc, Reply::grpc(GrpcCode::Unavailable));
    }

    fn spans_for_one_that_breaks_connections_wait() {
        waits_while(Otlp::http, Reply::close());
    }

    fn spans_for_one_that_speaks_something_else_wait() {
        let (endpoint, _) = answering("220 mail.example ready\r\n");
        let _trace = start(Otlp::http(endpoint));
        steps(0, 8);
        all_wait(8);
    }

    fn one_that_answers_slowly_gets_everything_once() {
        let collector = collector();
        collector.reply(Reply::success().delay(Duration::from_millis(100)));
        let trace = start(Otlp::http(collector.endpoint()));
        steps(0, 200);
        all_arrive(&collector, &trace, 200);
        assert_eq!(stagetrace::status().complaints, Vec::<String>::new());
    }

    fn one_that_breaks_off_its_answer_gets_that_batch_twice_and_loses_none() {
        let collector = collector();
        collector.script([Reply::close_mid_body().keep_spans()]);
        let _trace = start(Otlp::http(collector.endpoint()));
        steps(0, 20);
        wait_until(|| sink("otlp").exported == 20);
        let mut arrived = numbers(&collector);
        arrived.sort_unstable();
        let twice = arrived.len() - 20;
        arrived.dedup();
        assert_eq!(arrived, (0..20).collect::<Vec<_>>());
        assert!(twice <= 8, "{twice}");
    }

    fn spans_that_are_refused_for_good_do_not_wait() {
        let collector = collector();
        collector.reply(Reply::status(400));
        let trace = start(Otlp::http(collector.endpoint()));
        step(0);
        wait_until(|| sink("otlp").failed == 1);
        assert_eq!((sink("otlp").failed_by, sink("otlp").outbox), (vec![("rejected", 1)], 0));
        assert_eq!(files(trace.run_dir().unwrap()), Vec::<PathBuf>::new());
    }

    fn what_is_refused_when_it_is_sent_at_last_is_lost_and_counted() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        let trace = start(Otlp::http(collector.endpoint()));
        steps(0, 20);
        all_wait(20);
        collector.script([Reply::status(400), Reply::partial_success(3)]);
        collector.accept_connections().unwrap();
        wait_until(|| sink("otlp").outbox == 0);
        let otlp = sink("otlp");
        assert_eq!((otlp.failed_by, otlp.exported), (vec![("rejected", 11)], 9));
        assert_eq!(written(&trace).len(), 20);
    }

    fn a_batch_that_is_too_large_when_it_is_sent_at_last_is_halved() {
        for_one_that_takes_little(Otlp::grpc);
    }

    fn a_batch_in_json_too() {
        for_one_that_takes_little(Otlp::http_json);
    }

    fn a_flush_tells_that_spans_wait_and_does_not_wait_itself() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        let _trace = start(Otlp::http(collector.endpoint()));
        steps(0, 20);
        all_wait(20);
        step(20);
        let begin = Instant::now();
        let problems = problems(flush(LONG));
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        assert!(problems[0].1.starts_with("21 spans wait in the outbox: "), "{problems:?}");
        collector.accept_connections().unwrap();
        // It tries at once, whenever the next attempt was due.
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), (0..21).collect::<Vec<_>>());
    }

    fn a_shutdown_puts_aside_what_it_cannot_send_in_time() {
        let collector = collector();
        collector.reply(Reply::hang());
        let config = with_outbox().batching(|batching| batching.export_timeout = LONG);
        let trace = init(config.otlp(Otlp::http(collector.endpoint()).timeout(LONG))).unwrap();
        let dir = trace.run_dir().unwrap().to_owned();
        steps(0, 20);
        collector.wait_for_requests_blocking(|requests| !requests.is_empty(), LONG).unwrap();
        let within = Duration::from_millis(300);
        let Err(FlushError::Sinks(errors)) = support::in_time(within, || trace.shutdown(within)) else {
            panic!("it hangs")
        };
        assert_eq!(errors[0].problem, "20 spans wait in the outbox: no answer before the shutdown");
        assert_eq!(files(&dir).len(), 1);
    }

    fn the_queue_does_not_overflow_while_an_attempt_hangs() {
        let collector = collector();
        collector.reply(Reply::hang());
        let config = with_outbox().batching(|batching| {
            batching.export_timeout = LONG;
            // Half of it is more than comes while both threads are late.
            batching.max_queue_size = Some(512);
        });
        let _trace = init(config.otlp(Otlp::http(collector.endpoint()))).unwrap();
        for round in 0..100 {
            steps(20 * round, 20);
            std::thread::sleep(Duration::from_millis(10));
        }
        wait_until(|| sink("otlp").handed == 2000);
        let otlp = sink("otlp");
        assert_eq!((otlp.failed, otlp.outbox + otlp.queued), (0, 2000), "{otlp:?}");
        assert!(otlp.outbox > 1000, "{otlp:?}");
    }

    fn what_there_is_no_room_for_goes_oldest_first_and_is_counted() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        let config = with_outbox().outbox_max_bytes(256 << 10);
        let trace = init(config.otlp(Otlp::http(collector.endpoint()))).unwrap();
        for number in 0..3000_usize {
            step(number);
            if number % 500 == 499 {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        wait_until(|| sink("otlp").queued == 0);
        let otlp = sink("otlp");
        let [("outbox_full", lost)] = otlp.failed_by[..] else { panic!("{otlp:?}") };
        assert_eq!(lost + otlp.outbox, 3000);
        let bytes: u64 =
            files(trace.run_dir().unwrap()).iter().map(|file| file.metadata().unwrap().len()).sum();
        assert!(bytes <= 256 << 10, "{bytes}");
        collector.accept_connections().unwrap();
        wait_until(|| sink("otlp").outbox == 0);
        let arrived = numbers(&collector);
        assert_eq!(arrived.len() as u64, 3000 - lost);
        let (first, last) = (arrived.iter().min(), arrived.iter().max());
        assert!(first > Some(&500) && last == Some(&2999), "{first:?} to {last:?}");
    }

    fn what_has_waited_too_long_goes_and_is_counted() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        let config = with_outbox().outbox_max_age(Duration::from_secs(1));
        let trace = init(config.otlp(Otlp::http(collector.endpoint()))).unwrap();
        steps(0, 20);
        wait_until(|| sink("otlp").failed == 20);
        assert_eq!(sink("otlp").failed_by, [("outbox_expired", 20)]);
        assert_eq!(files(trace.run_dir().unwrap()), Vec::<PathBuf>::new());
    }

    fn a_run_directory_that_is_gone_loses_them_and_says_so() {
        let collector = collector();
        collector.refuse_connections().unwrap();
        // Whose file would make it anew.
        let config = with_outbox().jsonl(false);
        let trace = init(config.otlp(Otlp::http(collector.endpoint()))).unwrap();
        std::fs::remove_dir_all(trace.run_dir().unwrap()).unwrap();
        steps(0, 8);
        wait_until(|| sink("otlp").failed == 8);
        let failing = sink("otlp").failing.unwrap();
        assert!(failing.contains("; nor can it wait in "), "{failing}");
        assert_eq!(sink("otlp").failed_by, [("unavailable", 8)]);
        // Without it, they go as they would without an outbox.
        collector.accept_connections().unwrap();
        steps(8, 8);
        wait_until(|| sink("otlp").exported == 8);
        assert_eq!(sink("otlp").failing, None);
    }

    fn a_flush_of_much_may_take_longer_than_one_export() {
        let collector = away();
        let _trace = start(Otlp::http(collector.endpoint()));
        steps(0, 160);
        all_wait(160);
        // Twenty batches.
        collector.reply(Reply::success().delay(Duration::from_millis(100)));
        collector.accept_connections().unwrap();
        let recorder = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            steps(160, 16);
        });
        flush(LONG).unwrap();
        recorder.join().unwrap();
        flush(LONG).unwrap();
        assert_eq!((sink("otlp").exported, sink("otlp").failed), (176, 0));
    }

    fn a_shutdown_sends_as_much_as_it_has_time_for() {
        let collector = away();
        let trace = start(Otlp::http(collector.endpoint()));
        steps(0, 160);
        all_wait(160);
        collector.reply(Reply::success().delay(Duration::from_millis(100)));
        collector.accept_connections().unwrap();
        support::in_time(LONG, || trace.shutdown(LONG)).unwrap();
        assert_eq!(numbers(&collector).len(), 160);
    }

    fn without_a_run_directory_it_is_said_that_there_is_no_outbox() {
        let collector = collector();
        let path = of_endpoint("no-directory", &collector.endpoint());
        std::fs::write(&path, "a file").unwrap();
        let trace = init(with_outbox().output_dir(path).otlp(Otlp::http(collector.endpoint()))).unwrap();
        let complaints = stagetrace::status().complaints;
        let told = |what: &String| what.contains("there is no outbox without a run directory");
        assert!(complaints.iter().any(told), "{complaints:?}");
        drop(trace);
    }

    #[cfg(unix)]
    fn a_limit_of_files_costs_spans_and_no_process() {
        // Smaller than what each file begins with.
        limit_files(32);
        let collector = away();
        let config = with_outbox().jsonl(false).mapping(stagetrace::Mapping::Memory);
        let _trace = init(config.otlp(Otlp::http(collector.endpoint()))).unwrap();
        steps(0, 8);
        wait_until(|| sink("otlp").failed == 8);
        assert_eq!(sink("otlp").failed_by, [("unavailable", 8)]);
    }
}

/// No file may become longer than this from now on.
#[cfg(unix)]
pub(crate) fn limit_files(bytes: u64) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Fsize, limit).unwrap();
}

/// A collector that cannot be reached yet.
pub(crate) fn away() -> Collector {
    let collector = collector();
    collector.refuse_connections().unwrap();
    collector
}

fn for_one_that_takes_little(to: fn(String) -> Otlp) {
    let (grpc, http) = (20_000, 20_000);
    let builder = Collector::builder().max_grpc_bytes(grpc).max_http_bytes(http);
    let collector = builder.start_blocking().unwrap();
    collector.refuse_connections().unwrap();
    let _trace = start(to(collector.endpoint()));
    for number in 0..8_usize {
        let span = stagetrace::span!("step", "number" = number);
        span.set_attribute("prompt", "x".repeat(if number == 4 { 30_000 } else { 4_000 }));
    }
    all_wait(8);
    collector.accept_connections().unwrap();
    wait_until(|| sink("otlp").outbox == 0);
    let mut arrived = numbers(&collector);
    arrived.sort_unstable();
    assert_eq!(arrived, [0, 1, 2, 3, 5, 6, 7]);
    assert_eq!((sink("otlp").exported, sink("otlp").failed_by), (7, vec![("too_large", 1)]));
}
