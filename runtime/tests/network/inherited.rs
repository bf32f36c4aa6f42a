//! What waits when its process ends: who sends it.

use crate::outbox::{all_arrive, all_wait, away, files, limit_files, start, with_outbox};
use crate::support::{self, LONG, flush, scenarios, sink, step, steps, wait_until};
use crate::{collector, numbers};
use stagetrace::{Otlp, TraceGuard, init};
use stagetrace_collector::Reply;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

scenarios! {
    fn the_next_process_of_the_run_sends_what_a_killed_one_left() {
        if let Some((_, endpoint)) = part() {
            leave_twenty(start_in_run("killed", endpoint));
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
            leave_twenty(init(alone(&endpoint).otlp(Otlp::grpc(endpoint))).unwrap());
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
            leave_twenty(init(alone(&endpoint).otlp(Otlp::http(endpoint))).unwrap());
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

    fn what_a_server_refuses_of_them_is_told() {
        let alone = |endpoint: &str| with_outbox().output_dir(of_endpoint("refused", endpoint));
        if let Some((_, endpoint)) = part() {
            leave_twenty(init(alone(&endpoint).otlp(Otlp::http(endpoint))).unwrap());
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

/// Has twenty spans wait, and dies.
fn leave_twenty(_trace: TraceGuard) -> ! {
    steps(0, 20);
    all_wait(20);
    std::process::abort();
}

fn start_in_run(run: &str, endpoint: String) -> TraceGuard {
    let run = format!("{run}-{}", port(&endpoint));
    init(with_outbox().run_id(run).otlp(Otlp::http(endpoint))).unwrap()
}

/// A directory for what goes there.
pub(crate) fn of_endpoint(name: &str, endpoint: &str) -> PathBuf {
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
    let output = command(part, endpoint).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    println!("{}{said}", String::from_utf8_lossy(&output.stdout));
    (output.status.success(), said)
}

/// This scenario in another process, as this part of it.
pub(crate) fn command(part: &str, endpoint: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(std::env::args().skip(1)).env(PART, part).env(ENDPOINT, endpoint);
    command
}

/// Which part this process is, if it is not the scenario itself, and where it sends to.
pub(crate) fn part() -> Option<(String, String)> {
    Some((std::env::var(PART).ok()?, std::env::var(ENDPOINT).ok()?))
}
