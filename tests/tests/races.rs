//! Many threads that do everything at once: nothing is lost, doubled or left open.

use stagetrace::{InSpan, Outcome, Traced, event, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode, dispatch, forward};
use stagetrace_tests::{alone, start, start_with};
use stagetrace_wire::span::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

#[stage(Pipeline::GpuForward, request)]
async fn forward_later(request: &Generate) {
    tokio::task::yield_now().await;
    decode(request);
    event!("halfway");
    tokio::task::yield_now().await;
}

#[test]
fn of_many_handles_that_finish_at_once_one_ends_the_root() {
    const REQUESTS: usize = 500;
    const THREADS: usize = 4;
    let spans = alone(|| {
        let trace = start();
        let together = Arc::new(Barrier::new(THREADS));
        let requests: Vec<_> = (0..REQUESTS).map(|n| Generate::begun(&n.to_string())).collect();
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (requests, together) = (requests.clone(), together.clone());
                thread::spawn(move || {
                    for (number, request) in requests.into_iter().enumerate() {
                        if number % 50 == 0 {
                            together.wait();
                        }
                        // Some only let go, so that the last handle ends the root.
                        if (number + thread) % 3 == 0 {
                            request.finish(Outcome::Ok);
                        }
                    }
                })
            })
            .collect();
        drop(requests);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.begun, stats.open, stats.handed), (500, 0, 500));
        let finishes = (0..REQUESTS).flat_map(|n| (0..THREADS).map(move |t| (n + t) % 3 == 0));
        let finishes = finishes.filter(|finishes| *finishes).count();
        assert_eq!(stats.finished_twice as usize, finishes - REQUESTS);
    })
    .run()
    .spans();
    let ok = |span: &stagetrace_wire::span::Span| {
        span.attribute("stagetrace.outcome") == Some(&Value::from("ok"))
    };
    assert_eq!(spans.all("generate").into_iter().filter(|span| ok(span)).count(), REQUESTS);
}

#[test]
fn the_level_may_change_at_any_time() {
    alone(|| {
        let trace = start_with(|config| config.level(3));
        let done = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                let done = done.clone();
                thread::spawn(move || {
                    let mut number = 0;
                    while !done.load(Ordering::Relaxed) && number < 1_000_000 {
                        number += 1;
                        let request = Generate::begun(&format!("{thread}-{number}"));
                        dispatch(&request, || forward(&request));
                        let span = span!("span");
                        span.in_scope(|| event!("event"));
                        request.finish(Outcome::Ok);
                        assert!(stagetrace::current().is_null());
                        thread::sleep(Duration::from_micros(50));
                    }
                })
            })
            .collect();
        for round in 0..300_u32 {
            stagetrace::set_level((round % 4) as u8);
            thread::sleep(Duration::from_millis(2));
        }
        done.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        stagetrace::set_level(0);
        let before = stagetrace_tests::flushed();
        assert_eq!((before.open, before.dropped_spans()), (0, 0));
        drop(Generate::begun("never"));
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!(stats.begun, before.begun);
    })
    .run();
}

#[test]
fn a_busy_server_of_tasks_and_threads_exports_every_request_whole() {
    const REQUESTS: usize = 800;
    let spans = alone(|| {
        let trace = start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build();
        runtime.unwrap().block_on(async {
            let mut tasks = Vec::new();
            for number in 0..REQUESTS {
                let mut request = Generate::new(&number.to_string(), 0);
                tasks.push(tokio::spawn(async move {
                    request.begin(None);
                    forward_later(&request).await;
                    let background = async { tokio::task::yield_now().await };
                    let background = background.in_span(span!("background"));
                    let clone = request.clone();
                    let helper = tokio::task::spawn_blocking(move || decode(&clone));
                    background.await;
                    helper.await.unwrap();
                    request.finish(Outcome::Ok);
                }));
                if number % 20 == 0 {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            for task in tasks {
                task.await.unwrap();
            }
        });
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0), "{stats:?}");
        assert_eq!(stats.handed as usize, REQUESTS * 5);
    })
    .run()
    .spans();
    let mut of_traces: HashMap<_, Vec<&str>> = HashMap::new();
    for span in spans.iter() {
        of_traces.entry(span.trace_id).or_default().push(&span.name);
        let parent = spans.parent(span).map(|parent| &*parent.name);
        match &*span.name {
            "gpu_forward" => assert_eq!(parent, Some("generate")),
            "decode" => assert!(matches!(parent, Some("generate" | "gpu_forward")), "{parent:?}"),
            _ => assert_eq!(parent, None, "{}", span.name),
        }
    }
    for root in spans.all("generate") {
        let names = &mut of_traces.get_mut(&root.trace_id).unwrap();
        names.sort_unstable();
        assert_eq!(**names, ["decode", "decode", "generate", "gpu_forward"]);
        for (stage, count) in [("decode", 2), ("gpu_forward", 1)] {
            let found = root.attribute(&format!("stagetrace.stage.{stage}.count"));
            assert_eq!(found, Some(&Value::I64(count)), "{stage} of {root:?}");
        }
    }
    let events = spans.all("gpu_forward").iter().filter(|span| span.events.len() == 1).count();
    assert_eq!(events, REQUESTS);
}
