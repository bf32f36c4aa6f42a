//! A server that is away: what cannot be sent waits on disk, and arrives when it is back.

use crate::failures::answering;
use crate::support::{
    self, LONG, config, flush, problems, scenarios, sink, step, steps, wait_until, written,
};
use crate::{collector, numbers};
use stagetrace::{FlushError, Otlp, TraceConfig, TraceGuard, init};
use stagetrace_collector::{Collector, GrpcCode, Reply};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// With an outbox, and half a second for an export.
fn with_outbox() -> TraceConfig {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("outbox");
    config()
        .output_dir(dir)
        .outbox_max_bytes(16 << 20)
        .batching(|batching| batching.export_timeout = Duration::from_millis(500))
}

fn start(otlp: Otlp) -> TraceGuard {
    init(with_outbox().otlp(otlp)).unwrap()
}

/// Files of outboxes in a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(".otlp.outbox")).collect()
}

/// The spans wait on disk, and nothing is lost.
fn all_wait(spans: u64) {
    wait_until(|| sink("otlp").outbox == spans);
    assert_eq!((sink("otlp").failed, sink("otlp").exported), (0, 0));
}

/// Everything arrives, once, and nothing is left.
fn all_arrive(collector: &Collector, trace: &TraceGuard, spans: usize) {
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

    fn the_next_process_of_the_run_sends_what_a_killed_one_left() {
        if let Some((_, endpoint)) = part() {
            let _trace = start_in_run("killed", endpoint);
            steps(0, 20);
            all_wait(20);
            std::process::abort();
        }
        let collector = away();
        assert!(!process("killed", &collector.endpoint()));
        let trace = start_in_run("killed", collector.endpoint());
        wait_until(|| sink("otlp").failing.is_some());
        collector.accept_connections().unwrap();
        wait_until(|| collector.spans().len() == 20);
        wait_until(|| sink("otlp").failing.is_none());
        assert_eq!((sink("otlp").exported, sink("otlp").handed), (0, 0), "none is of this process");
        step(20);
        flush(LONG).unwrap();
        assert_eq!(numbers(&collector), (0..21).collect::<Vec<_>>());
        assert_eq!(files(trace.run_dir().unwrap()), Vec::<PathBuf>::new());
    }

    fn another_run_sends_only_what_was_to_go_to_the_same_server() {
        match part() {
            Some((part, endpoint)) if part == "leaves" => {
                let trace = start(Otlp::http(endpoint));
                steps(0, 20);
                all_wait(20);
                return drop(trace);
            }
            Some((_, endpoint)) => {
                let _trace = start(Otlp::http(endpoint));
                step(20);
                return drop(flush(LONG).unwrap());
            }
            None => {}
        }
        let (collector, elsewhere) = (away(), collector());
        assert!(process("leaves", &collector.endpoint()));
        assert!(process("elsewhere", &elsewhere.endpoint()));
        assert_eq!(numbers(&elsewhere), [20]);
        collector.accept_connections().unwrap();
        let _trace = start(Otlp::http(collector.endpoint()));
        wait_until(|| collector.spans().len() == 20);
        assert_eq!(numbers(&collector), (0..20).collect::<Vec<_>>());
    }

    fn a_call_of_recover_sends_what_was_left_wherever_it_was_to_go() {
        // Whatever other tests left is not for this one.
        let alone = |endpoint: &str| with_outbox().output_dir(of_endpoint("recover", endpoint));
        if let Some((_, endpoint)) = part() {
            let _trace = init(alone(&endpoint).otlp(Otlp::grpc(endpoint))).unwrap();
            steps(0, 20);
            all_wait(20);
            std::process::abort();
        }
        let (collector, other) = (away(), away());
        assert!(!process("killed", &collector.endpoint()));
        let config = || alone(&collector.endpoint()).otlp(Otlp::http(other.endpoint()));
        let second = Duration::from_secs(1);
        let recovery = support::in_time(second, || stagetrace::recover(config(), second)).unwrap();
        assert!((recovery.sent, recovery.waiting) == (0, 20), "{recovery:?}");
        let (dir, to) = (of_endpoint("recover", &collector.endpoint()), other.endpoint());
        let problem = format!("20 spans wait on below {}: {to}/v1/traces: ", dir.display());
        assert!(recovery.problems[0].starts_with(&problem), "{recovery:?}");
        other.accept_connections().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let recovery = runtime.block_on(async { stagetrace::recover(config(), LONG).unwrap() });
        assert_eq!((recovery.sent, recovery.waiting, recovery.problems), (20, 0, vec![]));
        assert_eq!(numbers(&other), (0..20).collect::<Vec<_>>());
    }

    fn what_recover_cannot_send_is_counted_with_what_would_send_it() {
        let alone = |endpoint: &str| with_outbox().output_dir(of_endpoint("unsent", endpoint));
        if let Some((_, endpoint)) = part() {
            let _trace = init(alone(&endpoint).otlp(Otlp::http(endpoint))).unwrap();
            steps(0, 20);
            all_wait(20);
            std::process::abort();
        }
        let collector = away();
        let endpoint = collector.endpoint();
        assert!(!process("killed", &endpoint));
        let dir = of_endpoint("unsent", &endpoint);
        let waits = format!("20 spans in 1 files wait for {endpoint}/v1/traces, below {}, ", dir.display());
        let unsent = |config, remedy: &str| {
            let recovery = stagetrace::recover(config, LONG).unwrap();
            assert_eq!((recovery.sent, recovery.waiting), (0, 20), "{recovery:?}");
            let problem = &recovery.problems[0];
            assert!(problem.starts_with(&waits) && problem.contains(remedy), "{recovery:?}");
        };
        unsent(alone(&endpoint), "no endpoint: OTEL_EXPORTER_OTLP_ENDPOINT names one");
        let json = alone(&endpoint).otlp(Otlp::http_json(&*endpoint));
        unsent(json, "sent by OTEL_EXPORTER_OTLP_PROTOCOL = http/protobuf or grpc");
        assert_eq!(collector.requests().len(), 0);
    }

    fn who_ends_says_who_sends_what_waits_and_who_does_not_send_it_says_so_too() {
        match part() {
            Some((part, endpoint)) if part == "ends" => {
                let config = with_outbox().output_dir(of_endpoint("ends", &endpoint));
                let trace = init(config.otlp(Otlp::http(endpoint))).unwrap();
                steps(0, 20);
                all_wait(20);
                return drop(trace);
            }
            Some((_, endpoints)) => {
                let (first, endpoint) = endpoints.split_once(' ').unwrap();
                let config = with_outbox().output_dir(of_endpoint("ends", first));
                let mapping = stagetrace::Mapping::RunDir;
                let trace = init(config.mapping(mapping).otlp(Otlp::http(endpoint))).unwrap();
                step(20);
                flush(LONG).unwrap();
                if part().unwrap().0 == "killed" {
                    std::mem::forget(stagetrace::span!("open"));
                    std::process::abort();
                }
                return drop(trace);
            }
            None => {}
        }
        let (collector, elsewhere) = (away(), collector());
        let (_, said) = output("ends", &collector.endpoint());
        let warning = "stagetrace: warning: otlp: 20 spans wait in the outbox: ";
        assert!(said.contains(warning) && !said.contains("stagetrace: error"), "{said}");
        let dir = of_endpoint("ends", &collector.endpoint());
        let remedy = "; the next start, or stagetrace::recover, sends them from ";
        assert!(said.contains(&format!("{remedy}{}", dir.display())), "{said}");
        let both = format!("{} {}", collector.endpoint(), elsewhere.endpoint());
        let waits = format!("20 spans in 1 files wait for {}/v1/traces, below ", collector.endpoint());
        let (_, said) = output("killed", &both);
        assert!(said.contains(&waits) && said.contains("stagetrace::recover sends them"), "{said}");
        let (_, said) = output("elsewhere", &both);
        assert!(said.contains("; no endpoint gets what is only there"), "{said}");
    }

    fn the_shell_sends_what_only_a_file_has() {
        if Command::new("curl").arg("--version").output().is_err() {
            return println!("not checked: there is no curl");
        }
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/outbox.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        let script = docs.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let trace = init(with_outbox()).unwrap();
        steps(0, 20);
        flush(LONG).unwrap();
        let entries = std::fs::read_dir(trace.run_dir().unwrap()).unwrap();
        let mut files = entries.map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.to_string_lossy().ends_with(".jsonl")).unwrap();
        let collector = collector();
        let url = format!("{}/v1/traces", collector.endpoint());
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", script]).env("URL", url).env("FILE", file);
        assert!(shell.status().unwrap().success());
        assert_eq!(numbers(&collector), (0..20).collect::<Vec<_>>());
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

    fn what_a_server_refuses_of_them_is_told() {
        let alone = |endpoint: &str| with_outbox().output_dir(of_endpoint("refused", endpoint));
        if let Some((_, endpoint)) = part() {
            let _trace = init(alone(&endpoint).otlp(Otlp::http(endpoint))).unwrap();
            steps(0, 20);
            all_wait(20);
            std::process::abort();
        }
        let collector = away();
        assert!(!process("killed", &collector.endpoint()));
        collector.script([Reply::status(400), Reply::partial_success(3)]);
        collector.accept_connections().unwrap();
        let config = alone(&collector.endpoint()).otlp(Otlp::http(collector.endpoint()));
        let recovery = stagetrace::recover(config, LONG).unwrap();
        assert_eq!((recovery.sent, recovery.waiting), (9, 0));
        let [problem] = &recovery.problems[..] else { panic!("{recovery:?}") };
        assert!(problem.starts_with("11 spans are lost: "), "{problem}");
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

    #[cfg(unix)]
    fn what_lies_beyond_a_limit_of_files_is_sent_all_the_same() {
        if let Some((_, endpoint)) = part() {
            let _trace = start_in_run("limited", endpoint);
            steps(0, 200);
            all_wait(200);
            std::process::abort();
        }
        let collector = away();
        assert!(!process("killed", &collector.endpoint()));
        limit_files(512);
        collector.accept_connections().unwrap();
        let _trace = start_in_run("limited", collector.endpoint());
        wait_until(|| collector.spans().len() == 200);
    }

    fn what_a_living_process_keeps_is_left_to_it() {
        if let Some((_, endpoint)) = part() {
            let _trace = start_in_run("living", endpoint);
            step(20);
            return drop(flush(LONG).unwrap());
        }
        let collector = away();
        let trace = start_in_run("living", collector.endpoint());
        steps(0, 20);
        all_wait(20);
        let other = crate::collector();
        assert!(process("other", &other.endpoint()));
        assert_eq!(numbers(&other), [20]);
        collector.accept_connections().unwrap();
        all_arrive(&collector, &trace, 20);
    }
}

/// No file may become longer than this from now on.
#[cfg(unix)]
fn limit_files(bytes: u64) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Fsize, limit).unwrap();
}

/// A collector that cannot be reached yet.
fn away() -> Collector {
    let collector = collector();
    collector.refuse_connections().unwrap();
    collector
}

fn start_in_run(run: &str, endpoint: String) -> TraceGuard {
    let run = format!("{run}-{}", port(&endpoint));
    init(with_outbox().run_id(run).otlp(Otlp::http(endpoint))).unwrap()
}

/// A directory for what goes there.
fn of_endpoint(name: &str, endpoint: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", port(endpoint)))
}

/// It tells one run of a test from the next.
fn port(endpoint: &str) -> &str {
    endpoint.trim_end_matches('/').rsplit(':').next().unwrap()
}

const PART: &str = "STAGETRACE_TEST_PART";
const ENDPOINT: &str = "STAGETRACE_TEST_ENDPOINT";

/// Runs this scenario in another process, as this part of it. Whether that succeeds.
fn process(part: &str, endpoint: &str) -> bool {
    output(part, endpoint).0
}

/// The same; and what it says on standard error.
fn output(part: &str, endpoint: &str) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.args(std::env::args().skip(1)).env(PART, part).env(ENDPOINT, endpoint);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    println!("{}{said}", String::from_utf8_lossy(&output.stdout));
    (output.status.success(), said)
}

/// Which part this process is, if it is not the scenario itself, and where it sends to.
fn part() -> Option<(String, String)> {
    Some((std::env::var(PART).ok()?, std::env::var(ENDPOINT).ok()?))
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
