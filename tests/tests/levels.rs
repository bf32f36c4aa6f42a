//! How much is recorded: levels of stages, of the process and of requests, sampling, and the
//! switch.

use serde_json::json;
use stagetrace::{Outcome, Parent, Sampler, TraceConfig, Traced, span, stage};
use stagetrace_tests::pipeline::{
    Generate, Pipeline, decode, denoise_step, dispatch, forward, serve,
};
use stagetrace_tests::{Spans, alone, counters, start, start_with};
use std::time::Duration;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[stage(Pipeline::DenoiseStep)]
fn detail<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[stage(Pipeline::DenoiseStep)]
async fn detail_later(request: &Generate) {
    tokio::task::yield_now().await;
    decode(request);
}

/// A request as another process sent it.
fn received(carrier: serde_json::Value) -> Generate {
    let request = json!({
        "id": "a", "model": "digits", "steps": 1, "prompt": "7", "_trace_state": carrier
    });
    serde_json::from_value(request).expect("a request")
}

/// What the request sends on.
fn sent(request: &Generate) -> serde_json::Value {
    serde_json::to_value(&request.trace).expect("a trace state becomes JSON")
}

#[test]
fn a_filtered_stage_in_the_middle_is_transparent() {
    let spans = alone(|| {
        let _trace = start();
        let request = Generate::begun("a");
        dispatch(&request, || {
            detail(|| {
                forward(&request);
                detail(|| decode(&request));
            });
            let filtered = span!("filtered", level = 3);
            assert!(!filtered.is_recorded());
            filtered.in_scope(|| decode(&request));
            let parent = filtered.position();
            drop(span!("inner", parent = parent));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(detail_later(&request));
        });
        request.finish(Outcome::Ok);
    })
    .run()
    .spans();
    let expected = "\
generate
  scheduler_dispatch
    gpu_forward
    decode
    decode
    inner
    decode
";
    assert_eq!(spans.tree(&[]), expected);
}

#[test]
fn a_stage_is_recorded_up_to_the_level_of_the_process() {
    for (level, names) in [
        ("1", vec!["generate", "scheduler_dispatch", "gpu_forward"]),
        ("2", vec!["generate", "scheduler_dispatch", "gpu_forward", "decode"]),
        ("3", vec!["generate", "scheduler_dispatch", "gpu_forward", "denoise_step", "decode"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = stagetrace_tests::command(env!("CARGO_BIN_EXE_serve"), dir.path());
        command.env("STAGETRACE_LEVEL", level).arg("1");
        let (status, _, errors) = stagetrace_tests::finish(command.spawn().unwrap());
        assert!(status.success(), "{errors}");
        let spans = Spans::of_dir(dir.path());
        assert_eq!(spans.iter().map(|span| &*span.name).collect::<Vec<_>>(), names);
    }
}

#[test]
fn the_level_changes_at_run_time_for_later_requests_only() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(1));
        let early = Generate::begun("early");
        stagetrace::set_level(3);
        assert_eq!(stagetrace::level(), 3);
        dispatch(&early, || forward(&early));
        let late = Generate::begun("late");
        stagetrace::set_level(1);
        dispatch(&late, || forward(&late));
        dispatch(&early, || decode(&early));
        drop(span!("without a request"));
        early.finish(Outcome::Ok);
        late.finish(Outcome::Ok);
        drop(late);
        serve("last", 2);
        stagetrace::set_level(9);
        assert_eq!(stagetrace::level(), 3);
    })
    .run()
    .spans();
    let expected = "\
generate stagetrace.request.id=early
  scheduler_dispatch
    gpu_forward
  scheduler_dispatch
generate stagetrace.request.id=late
  scheduler_dispatch
    gpu_forward
      denoise_step
      denoise_step
generate stagetrace.request.id=last
  scheduler_dispatch
    gpu_forward
";
    assert_eq!(spans.tree(&["stagetrace.request.id"]), expected);
}

#[test]
fn level_0_stops_at_once_and_open_spans_still_end() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3));
        let request = Generate::begun("a");
        let outer = span!("outer");
        dispatch(&request, || {
            stagetrace::set_level(0);
            forward(&request);
            denoise_step(7);
            assert!(!span!("never").is_recorded());
            serve("b", 1);
        });
        outer.in_scope(|| drop(span!("neither")));
        drop(outer);
        request.finish(Outcome::Ok);
        std::thread::sleep(Duration::from_millis(20));
        stagetrace::set_level(2);
        drop(span!("on again"));
    })
    .run()
    .spans();
    let expected = "generate\n  scheduler_dispatch\nouter\non again\n";
    assert_eq!(spans.tree(&[]), expected);
}

#[test]
fn a_request_keeps_its_level_through_a_pause() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3));
        let request = Generate::begun("a");
        stagetrace::set_level(0);
        forward(&request);
        stagetrace::set_level(1);
        // The gate may open for it a moment later.
        let opened = stagetrace_tests::until(Duration::from_secs(5), || {
            let before = stagetrace_tests::flushed().begun;
            forward(&request);
            stagetrace_tests::flushed().begun - before == 3
        });
        assert!(opened, "the request's own level is forgotten");
        request.finish(Outcome::Ok);
    })
    .run()
    .spans();
    assert!(!spans.all("denoise_step").is_empty());
}

/// A request that comes by headers where nothing is recorded: it passes them on.
fn goes_on_as_it_came() {
    let headers = [("traceparent", TRACEPARENT), ("tracestate", "vendor=a")];
    let mut request = Generate::new("c", 1);
    request.begin(Parent::from_headers(headers));
    assert_eq!(sent(&request), json!({ "traceparent": TRACEPARENT, "tracestate": "vendor=a" }));
    request.finish(Outcome::Ok);
}

#[test]
fn at_level_0_nothing_is_recorded_whatever_a_request_brings() {
    let spans = alone(|| {
        let _trace = start();
        stagetrace::set_level(0);
        let carrier = json!({ "traceparent": TRACEPARENT, "level": 3, "stage": "router" });
        let mut request = received(carrier.clone());
        request.begin(None);
        dispatch(&request, || forward(&request));
        assert_eq!(sent(&request), carrier);
        request.finish(Outcome::Ok);
        let mut fresh = Generate::new("b", 1);
        fresh.begin(None);
        assert!(fresh.trace.is_null());
        goes_on_as_it_came();
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "");
}

#[test]
fn a_request_brings_its_level_above_that_of_the_process() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(1));
        for level in [4, 2, 1] {
            let mut request = received(json!({ "traceparent": TRACEPARENT, "level": level }));
            request.begin(None);
            dispatch(&request, || {
                forward(&request);
                decode(&request);
            });
            assert_eq!(sent(&request)["level"], level);
            request.finish(Outcome::Ok);
        }
        drop(span!("of the process"));
    })
    .run()
    .spans();
    let expected = "\
generate
  scheduler_dispatch
    gpu_forward
      denoise_step
    decode
generate
  scheduler_dispatch
    gpu_forward
    decode
generate
  scheduler_dispatch
    gpu_forward
";
    assert_eq!(spans.tree(&[]), expected);
}

#[test]
fn the_gate_closes_when_the_last_request_of_a_greater_level_is_gone() {
    alone(|| {
        let _trace = start_with(|config| config.level(1));
        let mut request = received(json!({ "traceparent": TRACEPARENT, "level": 3 }));
        request.begin(None);
        request.finish(Outcome::Ok);
        drop(request);
        stagetrace_tests::flushed();
        let before = counters().begun;
        serve("b", 5);
        assert_eq!(counters().begun - before, 3);
    })
    .run();
}

#[test]
fn a_parent_that_is_not_sampled_records_nothing_and_says_so_further_on() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3));
        let parent = TRACEPARENT.replace("-01", "-00");
        let mut request = Generate::new("a", 2);
        request.begin(Parent::from_headers([("traceparent", &*parent)]));
        dispatch(&request, || {
            forward(&request);
            // A function that knows nothing of the request is part of it all the same.
            denoise_step(7);
            drop(span!("inside"));
            let header = stagetrace::current().context().unwrap().to_string();
            assert!(header.starts_with(&parent[..35]) && header.ends_with("-00"), "{header}");
        });
        let carrier = sent(&request)["traceparent"].as_str().unwrap().to_owned();
        assert!(carrier.starts_with(&parent[..35]) && carrier.ends_with("-00"), "{carrier}");
        request.finish(Outcome::Ok);
        assert_eq!(stagetrace_tests::flushed().begun, 0);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "");
}

#[test]
fn what_is_sent_on_says_what_the_sampler_said_and_not_what_the_sender_did() {
    for (sampler, other, flags) in [("always_on", "00", "-01"), ("always_off", "01", "-00")] {
        let ran = alone(|| {
            let variable = |name| std::env::var(name).unwrap();
            let _trace = start();
            let parent = format!("{}{}", &TRACEPARENT[..53], variable("TEST_SENDER"));
            let mut request = received(json!({ "traceparent": parent }));
            let from_headers = stagetrace::extract([("traceparent", &parent)]);
            let says =
                |header: String| assert!(header.ends_with(&variable("TEST_SAYS")), "{header}");
            request.begin(None);
            says(sent(&request)["traceparent"].as_str().unwrap().to_owned());
            dispatch(&request, || says(stagetrace::current().context().unwrap().to_string()));
            says(from_headers.context().unwrap().to_string());
            request.finish(Outcome::Ok);
        });
        let ran = ran.env("OTEL_TRACES_SAMPLER", sampler).env("TEST_SENDER", other);
        let spans = ran.env("TEST_SAYS", flags).run().spans();
        assert_eq!(spans.len(), if sampler == "always_on" { 2 } else { 0 });
    }
}

#[test]
fn a_share_of_the_traces_is_sampled_whole_or_not_at_all() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3).sampler(Sampler::Ratio(0.25)));
        for request in 0..400 {
            serve(&request.to_string(), 1);
        }
        // Without a request a span begins a trace, which is sampled just so.
        for _ in 0..400 {
            let outer = span!("outer");
            outer.in_scope(|| drop(span!("inner")));
        }
    })
    .run()
    .spans();
    let roots = spans.all("generate").len();
    assert!((50..150).contains(&roots), "{roots} of 400");
    for stage in ["scheduler_dispatch", "gpu_forward", "denoise_step", "decode"] {
        assert_eq!(spans.all(stage).len(), roots, "{stage}");
    }
    let outer = spans.all("outer").len();
    assert!((50..150).contains(&outer), "{outer} of 400");
    assert_eq!(spans.all("inner").len(), outer);
    assert!(spans.all("inner").iter().all(|span| spans.parent(span).is_some()));
}

#[test]
fn a_sampler_of_the_environment_holds() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = stagetrace_tests::command(env!("CARGO_BIN_EXE_serve"), dir.path());
    command.env("OTEL_TRACES_SAMPLER", "always_off").arg("5");
    let (status, ..) = stagetrace_tests::finish(command.spawn().unwrap());
    assert!(status.success());
    assert_eq!(Spans::of_dir(dir.path()).len(), 0);
}

#[test]
fn the_switch_of_opentelemetry_switches_everything_off() {
    let ran = alone(|| {
        let trace = start_with(|config| config.level(3));
        assert_eq!(trace.run_dir(), None);
        assert!(stagetrace::stats().is_none() && !stagetrace::status().running);
        assert_eq!(stagetrace::level(), 0);
        stagetrace::set_level(3);
        assert_eq!(stagetrace::level(), 0);
        serve("a", 3);
        let span = span!("never");
        assert!(!span.is_recorded() && stagetrace::current().is_null());
        assert!(stagetrace::flush(Duration::from_secs(1)).is_err());
        goes_on_as_it_came();
    })
    .env("OTEL_SDK_DISABLED", "true")
    .run();
    assert_eq!(std::fs::read_dir(ran.dir()).unwrap().count(), 0);
    assert_eq!(ran.complaints(), Vec::<&str>::new());
}

#[test]
fn what_the_program_says_beats_the_environment() {
    let spans = alone(|| {
        let config = TraceConfig::from_env().unwrap().level(3);
        let _trace = stagetrace::init(config).unwrap();
        serve("a", 1);
    })
    .env("STAGETRACE_LEVEL", "1")
    .env("OTEL_SERVICE_NAME", "painter")
    .env("OTEL_RESOURCE_ATTRIBUTES", "rack=7")
    .run()
    .spans();
    assert_eq!(spans.all("denoise_step").len(), 1);
    assert_eq!(spans[0].resource.service_name(), Some("painter"));
    assert_eq!(spans[0].resource.attribute("rack"), Some(&"7".into()));
}

#[test]
fn values_of_a_filtered_stage_are_not_computed() {
    #[stage("detail_with_attribute", attrs("costly" = costly(counter)))]
    fn normal(counter: &std::cell::Cell<u32>) {
        let _ = counter;
    }
    fn costly(counter: &std::cell::Cell<u32>) -> i64 {
        counter.set(counter.get() + 1);
        1
    }
    alone(|| {
        let _trace = start_with(|config| config.level(1));
        let counter = std::cell::Cell::new(0);
        normal(&counter);
        drop(span!("filtered", level = 2, "costly" = costly(&counter)));
        assert_eq!(counter.get(), 0);
        stagetrace::set_level(2);
        normal(&counter);
        assert_eq!(counter.get(), 1);
    })
    .run();
}
