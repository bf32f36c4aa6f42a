//! The W3C `tracestate` of a request: from its headers to what is left on disk, also by a killed process.

use stagetrace::{Outcome, TraceState, Traced};
use stagetrace_tests::ended::{file, run_dir};
use stagetrace_tests::pipeline::{Generate, dispatch};
use stagetrace_tests::{Spans, alone, start};
use stagetrace_wire::recording::recover::{Remove, recover};
use stagetrace_wire::span::{Span, Value};
use std::time::Duration;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A request that has begun under what came in headers.
fn begun(id: &str, tracestate: &str) -> Generate {
    let headers = [("traceparent", TRACEPARENT), ("tracestate", tracestate)];
    let mut request = Generate::new(id, 1);
    request.trace = TraceState::from_headers(headers);
    request.begin(None);
    request
}

fn of_request<'s>(spans: &'s Spans, id: &str) -> &'s Span {
    let id = Value::from(id);
    let roots = spans.all("generate");
    let root = roots.into_iter().find(|root| root.attribute("stagetrace.request.id") == Some(&id));
    root.unwrap_or_else(|| panic!("there is no request {id:?}"))
}

#[test]
fn a_root_is_written_with_the_tracestate_that_came_and_its_stages_without() {
    let spans = alone(|| {
        let trace = start();
        let request = begun("a", "vendor=a,other=1");
        dispatch(&request, || ());
        request.finish(Outcome::Ok);
        begun("b", "").finish(Outcome::Ok);
        trace.shutdown(Duration::from_secs(20)).unwrap();
    })
    .run()
    .spans();
    assert_eq!(of_request(&spans, "a").trace_state, "vendor=a,other=1");
    assert_eq!(of_request(&spans, "b").trace_state, "");
    assert_eq!(spans.one("scheduler_dispatch").trace_state, "");
}

#[test]
fn a_killed_process_leaves_the_tracestate_of_every_root_ended_or_open() {
    let ran = alone(|| {
        let trace = start();
        let open = begun("open", "vendor=open");
        for number in 0..100 {
            let request = begun(&number.to_string(), &format!("vendor={number}"));
            dispatch(&request, || ());
            request.finish(Outcome::Ok);
        }
        std::mem::forget((trace, open));
        // SAFETY: ends the process at once.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    })
    .try_run();
    let run = run_dir(ran.dir());
    let recovered = recover(file(&run, "recording").unwrap(), &run, Remove::No).unwrap();
    assert_eq!(recovered.open, 1);
    let spans = Spans::of_killed(ran.dir());
    for number in (0..100).map(|number: u32| number.to_string()) {
        assert_eq!(of_request(&spans, &number).trace_state, format!("vendor={number}"));
    }
    let open = of_request(&spans, "open");
    assert_eq!(open.trace_state, "vendor=open");
    assert_eq!(open.attribute("stagetrace.open"), Some(&Value::Bool(true)));
    let stages = spans.all("scheduler_dispatch");
    assert_eq!(stages.len(), 100);
    assert!(stages.iter().all(|span| span.trace_state.is_empty()));
}
