//! Requests that are exported whatever samplers say: forced by the program, or by whoever sent them.

use serde_json::json;
use stagetrace::{
    Carrier, Outcome, Parent, Sampler, TailSampling, TraceConfig, TraceGuard, TraceState, Traced,
    attach, extract, inject, span, stage,
};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode, dispatch, forward};
use stagetrace_tests::{Ran, alone, flushed, start_with};
use std::collections::BTreeSet;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Samplers that want nothing.
fn nothing(config: TraceConfig) -> TraceConfig {
    let nothing = |tail: &mut TailSampling| {
        (tail.errors, tail.slowest, tail.per_second, tail.jsonl) = (false, false, 0.0, true);
    };
    config.sampler(Sampler::Ratio(0.0)).tail_sampling(nothing)
}

fn start_wanting_nothing() -> TraceGuard {
    start_with(nothing)
}

/// A request that is not yet begun, with what it brings.
fn bringing(trace: TraceState) -> Generate {
    Generate { trace, ..Generate::new("a", 1) }
}

fn forced() -> Generate {
    let mut request = Generate::new("a", 1);
    assert!(request.trace.force());
    request
}

fn from_headers(tracestate: &str) -> TraceState {
    TraceState::from_headers([("traceparent", TRACEPARENT), ("tracestate", tracestate)])
}

/// What the request sends on.
fn sent(request: &Generate) -> serde_json::Value {
    serde_json::to_value(&request.trace).expect("a trace state becomes JSON")
}

fn serve(mut request: Generate) {
    request.begin(None);
    dispatch(&request, || {
        forward(&request);
        decode(&request);
    });
    request.finish(Outcome::Ok);
}

#[stage(Pipeline::Decode, request)]
async fn decode_later(request: &Generate) {
    tokio::task::yield_now().await;
    decode(request);
}

fn tree(ran: &Ran) -> String {
    ran.spans().tree(&[])
}

const WHOLE: &str = "\
generate
  scheduler_dispatch
    gpu_forward
    decode
";

#[test]
fn a_forced_request_is_exported_whole_though_nothing_else_is() {
    let ran = alone(|| {
        let _trace = start_wanting_nothing();
        serve(Generate::new("before", 1));
        serve(forced());
        serve(Generate::new("after", 1));
        let stats = flushed();
        assert_eq!((stats.begun, stats.undecided, stats.sampled_out), (4, 0, 0), "{stats:?}");
    })
    .run();
    assert_eq!(tree(&ran), WHOLE);
    assert_eq!(ran.spans().one("generate").trace_state, "stagetrace=f:1", "which says why");
}

#[test]
fn it_is_so_over_threads_and_tasks_and_for_what_is_sent_on() {
    let ran = alone(|| {
        let _trace = start_wanting_nothing();
        let mut request = forced();
        request.begin(None);
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let in_task = request.clone();
        runtime
            .block_on(async { tokio::spawn(async move { decode_later(&in_task).await }).await })
            .unwrap();
        let received = dispatch(&request, || {
            drop(span!("by hand"));
            serde_json::to_string(&request).unwrap()
        });
        std::thread::spawn(move || serve(serde_json::from_str(&received).unwrap())).join().unwrap();
        request.finish(Outcome::Ok);
        // One that is made below it is of the same trace, and sends the same on.
        let mut child = Generate::new("child", 1);
        child.begin(dispatch(&request, stagetrace::current));
        assert_eq!(sent(&child)["tracestate"], "stagetrace=f:1");
        child.finish(Outcome::Ok);
        let position = TraceState::from(dispatch(&request, stagetrace::current));
        serve(bringing(position));
    })
    .run();
    let expected = "\
generate
  decode
    decode
  scheduler_dispatch
    by hand
    generate
      scheduler_dispatch
        gpu_forward
        decode
  scheduler_dispatch
    generate
  scheduler_dispatch
    generate
      scheduler_dispatch
        gpu_forward
        decode
";
    assert_eq!(tree(&ran), expected);
}

#[test]
fn it_is_so_in_the_next_process_through_a_request_and_through_headers() {
    let process = |env: &[(&str, &str)]| {
        let ran = alone(|| {
            let _trace = start_wanting_nothing();
            match (std::env::var("TEST_REQUEST"), std::env::var("TEST_HEADERS")) {
                (Ok(request), _) => serve(serde_json::from_str(&request).unwrap()),
                (_, Ok(headers)) => {
                    let headers: Vec<(String, String)> = serde_json::from_str(&headers).unwrap();
                    let attached = attach(extract(headers.clone()));
                    drop((span!("attached"), attached));
                    serve(bringing(TraceState::from_headers(headers)));
                }
                _ => {
                    let mut request = forced();
                    request.begin(None);
                    dispatch(&request, || {
                        let mut headers = Vec::new();
                        inject(|name, value| headers.push((name, value.to_owned())));
                        println!("\n{}", serde_json::to_string(&request).unwrap());
                        println!("{}", serde_json::to_string(&headers).unwrap());
                    });
                    request.finish(Outcome::Ok);
                }
            }
        });
        env.iter().fold(ran, |ran, (name, value)| ran.env(*name, *value)).run()
    };
    let first = process(&[]);
    assert_eq!(tree(&first), "generate\n  scheduler_dispatch\n");
    let of = |start: &str| first.stdout.lines().find(|line| line.starts_with(start)).unwrap();
    let second = process(&[("TEST_REQUEST", of("{"))]);
    assert_eq!(tree(&second), WHOLE);
    let third = process(&[("TEST_HEADERS", of("[["))]);
    assert_eq!(tree(&third), format!("attached\n{WHOLE}"));
    let all = [&first, &second, &third].map(Ran::spans);
    let traces = all.iter().flat_map(|spans| spans.iter()).map(|span| span.trace_id);
    assert_eq!(traces.collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_sender_forces_with_a_member_of_the_tracestate_and_sets_the_level() {
    let ran = alone(|| {
        let _trace = start_wanting_nothing();
        for tracestate in ["stagetrace=f:1", "rojo=1,stagetrace=l:1;f:1", "stagetrace=f:1;l:4"] {
            serve(bringing(from_headers(tracestate)));
        }
        let carried =
            json!({ "traceparent": TRACEPARENT, "tracestate": "stagetrace=l:1;f:1", "level": 3 });
        serve(bringing(serde_json::from_value(carried).unwrap()));
        // It belongs to the trace of its traceparent, and level 0 records nothing.
        serve(bringing(TraceState::from_headers([("tracestate", "stagetrace=f:1")])));
        serve(bringing(from_headers("stagetrace=f:1;l:0")));
        // What cannot be read says nothing.
        for tracestate in [
            "stagetrace=f:2",
            "stagetrace=f",
            "stagetrace=F:1",
            "stagetrace=:::;;;f:;l:l",
            "stagetrace=f=1",
            "stagetrace=f:1,stagetrace=f:1",
            "Stagetrace=f:1",
            "stagetrace",
            "xstagetrace=f:1",
            "@@,stagetrace=f:1",
        ] {
            serve(bringing(from_headers(tracestate)));
        }
    })
    .run();
    let detailed = "\
generate
  scheduler_dispatch
    gpu_forward
      denoise_step
    decode
";
    let important = "\
generate
  scheduler_dispatch
    gpu_forward
";
    assert_eq!(tree(&ran), format!("{WHOLE}{important}{detailed}{detailed}"));
    for span in ran.spans().iter() {
        assert_eq!(span.flags & 1, 1, "{}", span.name);
    }
}

#[test]
fn a_level_in_the_tracestate_holds_without_force_and_goes_along_in_headers() {
    let ran = alone(|| {
        let _trace = start_with(|config| config);
        let parent = TRACEPARENT.replace("-00", "-01");
        let sent_on = |tracestate: &str| {
            let headers = [("traceparent", parent.as_str()), ("tracestate", tracestate)];
            let mut request = bringing(TraceState::from_headers(headers));
            request.begin(None);
            let mut headers = Vec::new();
            dispatch(&request, || inject(|name, value| headers.push((name, value.to_owned()))));
            forward(&request);
            request.finish(Outcome::Ok);
            headers.into_iter().find(|(name, _)| *name == "tracestate").map(|(_, value)| value)
        };
        assert_eq!(sent_on("stagetrace=l:3").as_deref(), Some("stagetrace=l:3"));
        assert_eq!(sent_on("stagetrace=l:2"), None, "the level of this process is not told");
        assert_eq!(sent_on("stagetrace=l:2;f:1").as_deref(), Some("stagetrace=f:1"));
        assert_eq!(sent_on("rojo=1"), None);
    })
    .run();
    assert_eq!(ran.spans().all("denoise_step").len(), 1);
}

#[test]
fn where_callers_are_not_trusted_their_wishes_do_not_count_and_go_no_further() {
    let ran = alone(|| {
        let _trace = start_with(|config| nothing(config.trust_callers(false)));
        let carried = json!({
            "traceparent": TRACEPARENT, "tracestate": "stagetrace=new:7;f:1;l:3,rojo=1", "level": 3
        });
        for trace in [
            from_headers("stagetrace=l:3;new:7;f:1,rojo=1"),
            serde_json::from_value(carried).unwrap(),
        ] {
            let expected =
                json!({ "traceparent": TRACEPARENT, "tracestate": "stagetrace=new:7,rojo=1" });
            assert_eq!(serde_json::to_value(&trace).unwrap(), expected, "a relay");
            let mut request = bringing(trace);
            request.begin(None);
            assert_eq!(sent(&request)["tracestate"], "stagetrace=new:7,rojo=1");
            request.finish(Outcome::Ok);
            dispatch(&request, || ());
        }
        let headers = [("traceparent", TRACEPARENT), ("tracestate", "stagetrace=f:1")];
        let _attached = attach(extract(headers));
        drop(span!("attached"));
        // The program is no caller.
        let mut own = bringing(from_headers("rojo=1"));
        own.trace.force();
        serve(own);
    })
    .run();
    assert_eq!(tree(&ran), WHOLE);
    assert_eq!(ran.spans().one("generate").trace_state, "stagetrace=f:1,rojo=1");
}

#[test]
fn callers_are_trusted_or_not_as_the_environment_says() {
    for (value, spans) in [("true", 4), ("false", 0)] {
        let ran = alone(|| {
            let _trace = start_wanting_nothing();
            serve(bringing(from_headers("stagetrace=f:1")));
        });
        assert_eq!(ran.env("STAGETRACE_TRUST_CALLERS", value).run().spans().len(), spans);
    }
}

#[test]
fn it_holds_under_whatever_parent_the_request_begins() {
    let ran = alone(|| {
        let _trace = start_wanting_nothing();
        let mut request = forced();
        request
            .begin(Parent::from_headers([("traceparent", TRACEPARENT), ("tracestate", "rojo=1")]));
        assert_eq!(sent(&request)["tracestate"], "stagetrace=f:1,rojo=1");

        let carrier = json!({ "traceparent": TRACEPARENT, "tracestate": "congo=2" });
        let mut below = bringing(serde_json::from_value(carrier).unwrap());
        below.begin(request.position());
        assert_eq!(sent(&below)["tracestate"], "stagetrace=f:1,congo=2");
        below.finish(Outcome::Ok);
        request.finish(Outcome::Ok);
    })
    .run();
    assert_eq!(tree(&ran), "generate\n  generate\n");
}

#[test]
fn it_holds_inside_of_what_is_not_sampled_and_too_late_is_too_late() {
    let ran = alone(|| {
        let _trace = start_wanting_nothing();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut outer = Generate::new("not sampled", 1);
        outer.begin(None);
        dispatch(&outer, || {
            let mut request = forced();
            request.begin(stagetrace::current());
            let carrier = sent(&request);
            assert_eq!(carrier["tracestate"], "stagetrace=f:1");
            assert!(carrier["traceparent"].as_str().unwrap().ends_with("-03"), "{carrier}");
            decode(&request);
            drop(span!("by hand", parent = request.position()));
            runtime.block_on(decode_later(&request));
            request.finish(Outcome::Ok);
            decode(&outer);
        });
        assert!(!outer.trace.force(), "it has been decided");
        outer.finish(Outcome::Ok);
    })
    .run();
    let spans = ran.spans();
    let root = spans.one("generate").span_id;
    let below = spans.iter().filter(|span| span.parent_span_id == Some(root));
    let below: Vec<_> = below.map(|span| span.name.as_str()).collect();
    assert_eq!((below, spans.len()), (vec!["decode", "by hand", "decode"], 5));
}

#[test]
fn what_waits_of_a_trace_in_which_a_request_is_forced_is_exported_with_it() {
    let ran = alone(|| {
        let _trace = start_with(|config| nothing(config).sampler(Sampler::AlwaysOn));
        let mut outer = Generate::new("outer", 1);
        outer.begin(None);
        dispatch(&outer, || {
            decode(&outer);
            assert_eq!(flushed().undecided, 1);
            let mut request = forced();
            request.begin(stagetrace::current());
            decode(&request);
            decode(&request);
            request.finish(Outcome::Ok);
            assert_eq!(flushed().undecided, 0);
        });
        outer.finish(Outcome::Ok);
        serve(Generate::new("another", 1));
        assert_eq!(flushed().sampled_out, 4);
    })
    .run();
    let expected = "\
generate
  scheduler_dispatch
    decode
    generate
    decode
    decode
";
    assert_eq!(tree(&ran), expected);
}
