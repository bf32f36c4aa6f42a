//! From process to process: a request carries its trace through pipes, headers and relays.

use serde_json::{Value as Json, json};
use stagetrace::{Outcome, Parent, Traced, span};
use stagetrace_tests::pipeline::{Generate, decode, dispatch};
use stagetrace_tests::{Spans, alone, command, finish, start};
use stagetrace_wire::span::{Value, flags};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Runs a process of a chain on a request and gives the request that it sends on.
fn hop(role: &str, dir: &Path, request: &Json) -> Json {
    run_hop(command(env!("CARGO_BIN_EXE_hop"), dir), role, request)
}

fn run_hop(mut command: Command, role: &str, request: &Json) -> Json {
    command.arg(role).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
    let (status, output, errors) = finish(child);
    assert!(status.success() && errors.is_empty(), "{role}: {status}\n{errors}");
    serde_json::from_str(&output).expect("one JSON line")
}

fn request(trace: Json) -> Json {
    json!({ "id": "a", "model": "digits", "steps": 2, "prompt": "7", "_trace_state": trace })
}

#[test]
fn a_request_that_goes_from_process_to_process_through_pipes_is_one_trace() {
    let dir = tempfile::tempdir().unwrap();
    let begun = hop("begin", dir.path(), &request(json!(null)));
    let relayed = hop("relay", dir.path(), &begun);
    let served = hop("serve", dir.path(), &relayed);
    let done = hop("stages", dir.path(), &served);
    let spans = Spans::of_dir(dir.path());
    let expected = "\
generate stagetrace.outcome=handed_over
  scheduler_dispatch
    generate stagetrace.outcome=ok
      gpu_forward
      decode
";
    assert_eq!(spans.tree(&["stagetrace.outcome"]), expected);
    assert!(spans.iter().all(|span| span.trace_id == spans[0].trace_id));
    let processes: Vec<_> =
        spans.iter().map(|span| span.resource.attribute("process.pid").cloned()).collect();
    assert_eq!(processes[0], processes[1]);
    assert_eq!(processes[2], processes[3]);
    assert!(processes[1] != processes[2] && processes[3] != processes[4]);
    let remote: Vec<_> = spans.iter().map(|span| span.flags & flags::IS_REMOTE != 0).collect();
    assert_eq!(remote, [false, false, true, false, true]);
    assert_eq!(done["_trace_state"]["stage"], "gpu_forward");
}

#[test]
fn a_relay_without_recorder_forwards_what_came_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let carrier = json!({
        "traceparent": TRACEPARENT.replace("00-", "cc-") + "-of-a-later-version",
        "tracestate": "vendor=a b, other=1",
        "baggage": "tenant=acme;secret",
        "level": 4,
        "stage": "router",
        "later": { "z": 1, "a": [null] },
    });
    let sent = hop("relay", dir.path(), &request(carrier.clone()));
    assert_eq!(sent["_trace_state"], carrier);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was recorded");
}

#[test]
fn a_recorder_that_is_switched_off_forwards_what_came_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let carrier = json!({ "traceparent": TRACEPARENT, "tracestate": "a=1", "x": true });
    for (name, value) in [("OTEL_SDK_DISABLED", "true"), ("STAGETRACE_LEVEL", "0")] {
        let mut command = command(env!("CARGO_BIN_EXE_hop"), dir.path());
        command.env(name, value);
        let sent = run_hop(command, "serve", &request(carrier.clone()));
        assert_eq!(sent["_trace_state"], carrier, "{name}");
        assert_eq!(Spans::of_dir(dir.path()).len(), 0, "{name}");
    }
}

#[test]
fn what_cannot_be_read_begins_a_new_trace_and_is_counted() {
    let spans = alone(|| {
        let trace = start();
        for carrier in [json!("nonsense"), json!(7), json!({ "traceparent": "00-zz" })] {
            let mut request: Generate = serde_json::from_value(request(carrier)).unwrap();
            request.begin(None);
            request.finish(Outcome::Ok);
        }
        let stats = trace.shutdown(std::time::Duration::from_secs(10)).unwrap();
        assert_eq!(stats.unreadable_carriers, 3);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "generate\ngenerate\ngenerate\n");
    assert!(spans[0].trace_id != spans[1].trace_id && spans[1].trace_id != spans[2].trace_id);
}

#[test]
fn a_root_its_children_and_its_log_lines_have_the_trace_id_of_the_header() {
    let spans = alone(|| {
        let _trace = start();
        let mut request = Generate::new("a", 1);
        request.begin(Parent::from_headers([("traceparent", TRACEPARENT)]));
        dispatch(&request, || {
            let here = stagetrace::current().trace_id().expect("a stage is current");
            assert_eq!(here.to_string(), &TRACEPARENT[3..35]);
            decode(&request);
        });
        request.finish(Outcome::Ok);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "generate\n  scheduler_dispatch\n    decode\n");
    assert!(spans.iter().all(|span| span.trace_id.to_string() == TRACEPARENT[3..35]));
    assert_eq!(spans[0].parent_span_id.unwrap().to_string(), &TRACEPARENT[36..52]);
}

#[test]
fn headers_carry_the_current_span_to_the_next_process() {
    let spans = alone(|| {
        let _trace = start();
        let outer = span!("client");
        let mut headers = Vec::new();
        outer.in_scope(|| {
            stagetrace::inject(|name, value| headers.push((name.to_owned(), value.to_owned())));
        });
        stagetrace::inject(|name, _| panic!("{name} without a current span"));
        assert_eq!(headers.len(), 1, "{headers:?}");
        // As if it had come from outside.
        let parent = stagetrace::extract(headers);
        assert_eq!(parent.span_id(), outer.position().span_id());
        {
            let _attached = stagetrace::attach(parent);
            drop(span!("server"));
        }
        assert!(stagetrace::extract([("traceparent", "nonsense")]).is_null());
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "client\n  server\n");
    let is_remote = |name: &str| spans.one(name).flags & flags::IS_REMOTE != 0;
    assert!(is_remote("server") && !is_remote("client"));
}

#[test]
fn child_env_makes_a_child_join_the_run() {
    let ran = alone(|| {
        let trace = start();
        let run_dir = trace.run_dir().expect("the directory can be made").to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hop"));
        command.envs(stagetrace::child_env());
        let outer = span!("parent");
        outer.in_scope(|| {
            let request = Generate::begun("a");
            run_hop(command, "serve", &serde_json::to_value(&request).unwrap());
        });
        let files = std::fs::read_dir(&run_dir).unwrap();
        let lines =
            files.filter(|file| file.as_ref().unwrap().path().extension().unwrap() == "jsonl");
        assert_eq!(lines.count(), 2);
    })
    .run();
    let spans = ran.spans();
    let runs: Vec<_> =
        spans.iter().map(|span| span.resource.attribute("stagetrace.run.id").cloned()).collect();
    assert!(runs.iter().all(|run| run.is_some() && *run == runs[0]), "{runs:?}");
    let pids: Vec<_> = spans.iter().filter_map(|s| s.resource.attribute("process.pid")).collect();
    assert!(pids.iter().any(|pid| *pid != pids[0]));
    assert_eq!(std::fs::read_dir(ran.dir()).unwrap().count(), 1, "one run, one directory");
}

#[test]
fn child_env_hands_on_the_level_as_it_is_now() {
    let spans = alone(|| {
        let _trace = start();
        stagetrace::set_level(3);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hop"));
        command.envs(stagetrace::child_env());
        run_hop(command, "serve", &request(json!(null)));
    })
    .run()
    .spans();
    let expected = "generate\n  gpu_forward\n    denoise_step\n    denoise_step\n";
    assert_eq!(spans.tree(&[]), expected);
}

#[test]
fn a_request_keeps_its_level_in_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = command(env!("CARGO_BIN_EXE_hop"), dir.path());
    first.env("STAGETRACE_LEVEL", "3");
    let begun = run_hop(first, "begin", &request(json!(null)));
    assert_eq!(begun["_trace_state"]["level"], 3);
    let mut second = command(env!("CARGO_BIN_EXE_hop"), dir.path());
    second.env("STAGETRACE_LEVEL", "1");
    run_hop(second, "serve", &begun);
    assert_eq!(Spans::of_dir(dir.path()).all("denoise_step").len(), 2);
}

#[test]
fn a_request_that_is_not_sampled_is_recorded_nowhere_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let carrier = json!({ "traceparent": TRACEPARENT.replace("-01", "-00") });
    let sent = hop("serve", dir.path(), &request(carrier));
    let sent = hop("stages", dir.path(), &sent);
    let traceparent = sent["_trace_state"]["traceparent"].as_str().unwrap();
    assert_eq!(&traceparent[..35], &TRACEPARENT[..35]);
    assert!(traceparent.ends_with("-00"), "{traceparent}");
    assert_eq!(Spans::of_dir(dir.path()).len(), 0);
}

#[test]
fn two_processes_say_their_names_apart() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        hop("serve", dir.path(), &request(json!(null)));
    }
    let spans = Spans::of_dir(dir.path());
    let instances: Vec<_> = spans
        .all("generate")
        .iter()
        .map(|span| span.resource.attribute("service.instance.id").and_then(Value::as_str))
        .map(|id| id.expect("every process has one").to_owned())
        .collect();
    assert_ne!(instances[0], instances[1]);
}
