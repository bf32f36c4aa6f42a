//! From the declaration to the file: one request, its stages, and everything that can stand on a
//! span.

use stagetrace::{DropCause, Outcome, Parent, Position, Traced, event, span, stage};
use stagetrace_tests::pipeline::{Generate, decode, dispatch, forward, serve};
use stagetrace_tests::{alone, counters, processor_time, resident_bytes, start, start_with};
use stagetrace_wire::span::{Span, SpanKind, StatusCode, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[stage("load_weights", attrs("bytes" = bytes), kind = client)]
fn load_weights(bytes: u64) -> u64 {
    bytes
}

#[test]
fn one_span_goes_from_the_attribute_to_the_file() {
    let before = unix_now();
    let ran = alone(|| {
        let _trace = start();
        load_weights(975_376);
    })
    .run();
    let spans = ran.spans();
    assert_eq!(spans.tree(&["bytes"]), "load_weights bytes=975376\n");
    let span = spans.one("load_weights");
    assert_eq!((span.kind, span.status.code), (SpanKind::Client, StatusCode::Unset));
    assert_eq!(span.parent_span_id, None);
    assert!(before <= span.start_unix_nano && span.end_unix_nano <= unix_now());
    assert!(span.start_unix_nano <= span.end_unix_nano);
    assert_eq!(text(span, "code.function.name"), "flow::load_weights");
    assert_eq!(span.resource.service_name(), Some("test"));
    assert_eq!(span.scope.name, "stagetrace");
    assert_eq!(ran.complaints(), Vec::<&str>::new());
}

#[test]
fn a_request_goes_through_its_stages_into_one_trace() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3));
        serve("request-7", 2);
    })
    .run()
    .spans();
    let keys =
        ["stagetrace.request.id", "gen_ai.request.model", "diffusion.steps", "diffusion.step"];
    let expected = "\
generate stagetrace.request.id=request-7 gen_ai.request.model=digits diffusion.steps=2
  scheduler_dispatch
    gpu_forward
      denoise_step diffusion.step=0
      denoise_step diffusion.step=1
    decode
";
    assert_eq!(spans.tree(&keys), expected);
    let root = spans.one("generate");
    assert!(spans.iter().all(|span| span.trace_id == root.trace_id));
    assert!(spans.iter().all(|span| span.status.code == StatusCode::Unset));
    assert_eq!(text(root, "stagetrace.outcome"), "ok");
    assert_eq!(root.attribute("diffusion.steps"), Some(&Value::I64(2)));
    let all = format!("{:?}", &*spans);
    assert!(!all.contains("a secret seven"), "recording is opt-in");
}

#[test]
fn children_lie_within_their_parents_and_siblings_do_not_overlap() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3));
        for request in 0..20 {
            serve(&request.to_string(), 20);
            std::thread::sleep(Duration::from_millis(10));
        }
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 20 * (1 + 3 + 20));
    for span in spans.iter() {
        if let Some(parent) = spans.parent(span) {
            assert!(parent.start_unix_nano <= span.start_unix_nano, "{parent:?}\n{span:?}");
            assert!(span.end_unix_nano <= parent.end_unix_nano, "{parent:?}\n{span:?}");
        }
    }
    let steps = spans.all("denoise_step");
    for (one, next) in steps.iter().zip(&steps[1..]) {
        assert!(one.end_unix_nano <= next.start_unix_nano, "{one:?}\n{next:?}");
    }
}

#[test]
fn the_root_says_how_long_its_request_spent_in_each_stage() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(3));
        for steps in [3, 0, 5] {
            serve("r", steps);
        }
    })
    .run()
    .spans();
    let roots = spans.all("generate");
    assert_eq!(roots.len(), 3);
    for root in roots {
        let of_request: Vec<&Span> =
            spans.iter().filter(|span| span.trace_id == root.trace_id).collect();
        for stage in ["scheduler_dispatch", "gpu_forward", "denoise_step", "decode"] {
            let executions = of_request.iter().filter(|span| span.name == stage);
            let times: Vec<u64> =
                executions.map(|span| span.end_unix_nano - span.start_unix_nano).collect();
            let count = root.attribute(&format!("stagetrace.stage.{stage}.count"));
            let expected = Some(times.len() as i64).filter(|count| *count > 0);
            assert_eq!(count.and_then(Value::as_i64), expected, "{stage}: {root:?}");
            let seconds = root.attribute(&format!("stagetrace.stage.{stage}.duration"));
            let seconds = seconds.and_then(Value::as_f64).unwrap_or(0.0);
            let sum = times.iter().sum::<u64>() as f64 / 1e9;
            assert!((seconds - sum).abs() < 1e-9, "{stage}: {seconds} is not {sum}");
        }
    }
}

#[test]
fn no_request_loses_its_breakdown_whenever_the_collector_looks() {
    let spans = alone(|| {
        let _trace = start();
        for request in 0..800 {
            let request = Generate::begun(&request.to_string());
            dispatch(&request, || ());
            request.finish(Outcome::Ok);
            // The collector looks now: the root waits for its next look.
            counters();
        }
    })
    .run()
    .spans();
    let roots = spans.all("generate");
    let key = "stagetrace.stage.scheduler_dispatch.count";
    let without = roots.iter().filter(|root| root.attribute(key) != Some(&Value::I64(1))).count();
    assert_eq!((roots.len(), without), (800, 0));
}

#[test]
fn requests_that_follow_each_other_quickly_keep_their_own_breakdowns() {
    let spans = alone(|| {
        let _trace = start();
        for request in 0..500 {
            let request = Generate::begun(&request.to_string());
            dispatch(&request, || {
                decode(&request);
                decode(&request);
            });
            request.finish(Outcome::Ok);
        }
    })
    .run()
    .spans();
    let roots = spans.all("generate");
    let count = |root: &Span, stage: &str| {
        let count = root.attribute(&format!("stagetrace.stage.{stage}.count"));
        count.and_then(Value::as_i64).unwrap_or(0)
    };
    let wrong = roots
        .iter()
        .filter(|root| (count(root, "scheduler_dispatch"), count(root, "decode")) != (1, 2));
    assert_eq!((roots.len(), wrong.count()), (500, 0));
}

#[test]
fn requests_of_one_trace_that_follow_each_other_keep_their_own_breakdowns_and_outcomes() {
    let spans = alone(|| {
        let _trace = start();
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for number in 1..=300_u32 {
            let mut request = Generate::new(&number.to_string(), 0);
            request.begin(Parent::from_headers([("traceparent", traceparent)]));
            for _ in 0..number % 4 {
                decode(&request);
            }
            let background =
                number.is_multiple_of(50).then(|| dispatch(&request, || span!("late")));
            drop(request);
            if let Some(background) = background {
                let next = Generate::begun("next");
                background.end(Outcome::Error);
                drop(next);
            }
        }
    })
    .run()
    .spans();
    for root in spans.all("generate") {
        let Ok(number) = text(root, "stagetrace.request.id").parse::<i64>() else { continue };
        let count = root.attribute("stagetrace.stage.decode.count");
        assert_eq!(count.map_or(Some(0), Value::as_i64), Some(number % 4), "of request {number}");
        let (outcome, number) = (text(root, "stagetrace.end"), number % 50);
        assert_eq!((outcome, root.attribute("error.type")), ("dropped", None), "{number}");
    }
    assert_eq!(spans.all("generate").len(), 306);
}

#[test]
fn events_and_links_stand_on_their_span_in_order() {
    let ran = alone(|| {
        let _trace = start();
        let before = span!("before");
        let request = Generate::begun("a");
        dispatch(&request, || {
            event!("cache miss", "key" = "weights", "bytes" = 4096);
            forward(&request);
            event!("first picture");
            stagetrace::link(before.position());
            stagetrace::link(Position::NULL);
        });
        event!("nobody is there");
    })
    .run();
    let spans = ran.spans();
    let span = spans.one("scheduler_dispatch");
    let events: Vec<_> = span.events.iter().map(|event| &*event.name).collect();
    assert_eq!(events, ["cache miss", "first picture"]);
    let expected = [("key".to_owned(), "weights".into()), ("bytes".to_owned(), Value::I64(4096))];
    assert_eq!(span.events[0].attributes, expected);
    let (first, second) = (span.events[0].time_unix_nano, span.events[1].time_unix_nano);
    let forward = spans.one("gpu_forward");
    assert!(span.start_unix_nano <= first && first <= forward.start_unix_nano);
    assert!(forward.end_unix_nano <= second && second <= span.end_unix_nano);
    let links: Vec<_> = span.links.iter().map(|link| (link.trace_id, link.span_id)).collect();
    assert_eq!(links, [spans.one("before").identity()]);
    assert!(forward.events.is_empty() && forward.links.is_empty());
}

#[test]
fn a_span_with_many_events_keeps_128_counts_the_rest_and_stays_a_success() {
    let events = 100_000_u32;
    let ran = alone(move || {
        let trace = start();
        let span = span!("talkative");
        span.in_scope(|| {
            for number in 0..events {
                event!("said", "number" = number);
                // Gives the collector the time to look, so that none is dropped for want of room.
                if number % 1000 == 0 {
                    counters();
                }
            }
        });
        drop(span);
        drop(span!("after"));
        let stats = trace.shutdown(Duration::from_secs(20)).expect("the file can be written");
        assert_eq!(stats.dropped(DropCause::DetailFull), 0);
        let (memory, busy) = (resident_bytes(), processor_time());
        assert!(memory < 64 << 20, "{memory} bytes");
        assert!(busy < Duration::from_secs(5), "{busy:?}");
    })
    .run();
    let spans = ran.spans();
    let span = spans.one("talkative");
    assert_eq!((span.events.len(), span.dropped_events), (128, events - 128));
    assert_eq!(span.status.code, StatusCode::Unset);
    assert_eq!((span.attribute("error.type"), span.attribute("stagetrace.outcome")), (None, None));
    spans.one("after");
}

#[test]
fn a_discarded_span_is_counted_and_its_children_stay() {
    let ran = alone(|| {
        let trace = start();
        let outer = span!("outer");
        outer.in_scope(|| {
            let discarded = span!("discarded");
            discarded.in_scope(|| drop(span!("inner")));
            discarded.discard();
        });
        drop(outer);
        let stats = trace.shutdown(Duration::from_secs(10)).expect("the file can be written");
        assert_eq!((stats.begun, stats.discarded, stats.handed), (3, 1, 2));
    })
    .run();
    let names: Vec<_> = ran.spans().iter().map(|span| span.name.clone()).collect();
    assert_eq!(names, ["outer", "inner"]);
}

#[test]
fn a_clean_end_leaves_the_lines_and_a_small_closed_recording() {
    let ran = alone(|| {
        let trace = start();
        serve("a", 1);
        let dir = trace.run_dir().expect("the directory can be made").to_owned();
        let status = stagetrace::status();
        assert_eq!(status.run_dir.as_deref(), Some(&*dir));
        assert!(status.recording.expect("it is mapped").exists());
    })
    .run();
    let mut files = Vec::new();
    for run in std::fs::read_dir(ran.dir()).unwrap() {
        for file in std::fs::read_dir(run.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    let extensions: Vec<_> = files.iter().map(|path| path.extension().unwrap()).collect();
    assert_eq!(extensions, ["jsonl", "recording"], "{files:?}");
    let stem = |at: usize| files[at].file_stem().unwrap().to_owned();
    assert_eq!(stem(0), stem(1));
    assert!(stem(0).to_str().unwrap().starts_with("test-"));
    let recording = std::fs::metadata(&files[1]).unwrap().len();
    assert!(recording <= 256 * 1024, "{recording} bytes");
    use std::os::unix::fs::MetadataExt;
    for file in &files {
        assert_eq!(std::fs::metadata(file).unwrap().mode() & 0o777, 0o600, "{}", file.display());
    }
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    span.attribute(key).and_then(Value::as_str).unwrap_or_default()
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}
