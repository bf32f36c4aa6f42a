//! Spans and requests across threads, and guards in any order.

use stagetrace::{Carrier, Outcome, Position, Traced, attach, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode, dispatch, forward};
use stagetrace_tests::{Spans, alone, flushed, start};
use stagetrace_wire::span::Value;
use std::cell::RefCell;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

#[stage("work")]
fn work() {}

#[test]
fn a_span_begins_on_one_thread_and_ends_on_another() {
    let spans = alone(|| {
        let _trace = start();
        let span = span!("handed on", "n" = 1);
        thread::spawn(move || {
            span.in_scope(work);
            span.set_attribute("late", true);
            span.add_event("moved", &[]);
        })
        .join()
        .unwrap();
        work();
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&["n", "late"]), "handed on n=1 late=true\n  work\nwork\n");
    assert_eq!(spans.one("handed on").events.len(), 1);
}

#[test]
fn a_request_goes_from_thread_to_thread() {
    let spans = alone(|| {
        let _trace = start();
        let (to_forward, requests) = mpsc::channel::<Generate>();
        let (to_decode, pictures) = mpsc::channel::<Generate>();
        let forwarding = thread::spawn(move || {
            for request in requests {
                forward(&request);
                to_decode.send(request).unwrap();
            }
        });
        let decoding = thread::spawn(move || {
            for request in pictures {
                decode(&request);
                request.finish(Outcome::Ok);
            }
        });
        for request in 0..50 {
            let request = Generate::begun(&request.to_string());
            dispatch(&request, || ());
            to_forward.send(request).unwrap();
        }
        drop(to_forward);
        forwarding.join().unwrap();
        decoding.join().unwrap();
    })
    .run()
    .spans();
    let one = "generate\n  scheduler_dispatch\n  gpu_forward\n  decode\n";
    assert_eq!(spans.tree(&[]), one.repeat(50));
    for root in spans.all("generate") {
        for stage in ["scheduler_dispatch", "gpu_forward", "decode"] {
            let count = root.attribute(&format!("stagetrace.stage.{stage}.count"));
            assert_eq!(count, Some(&Value::I64(1)), "{stage} of {root:?}");
        }
    }
}

#[test]
fn a_request_that_many_threads_share_adds_up_their_stages() {
    let spans = alone(|| {
        let _trace = start();
        let request = Arc::new(Generate::begun("a"));
        let together = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (request, together) = (request.clone(), together.clone());
                thread::spawn(move || {
                    together.wait();
                    for _ in 0..100 {
                        decode(&request);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        request.finish(Outcome::Ok);
    })
    .run()
    .spans();
    let root = spans.one("generate");
    assert_eq!(root.attribute("stagetrace.stage.decode.count"), Some(&Value::I64(400)));
    let decodes = spans.all("decode");
    assert_eq!(decodes.len(), 400);
    assert!(decodes.iter().all(|span| span.parent_span_id == Some(root.span_id)));
}

#[test]
fn each_thread_has_its_own_current_span() {
    let spans = alone(|| {
        let _trace = start();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                thread::spawn(|| {
                    let outer = span!("outer");
                    outer.in_scope(|| (0..50).for_each(|_| work()));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), format!("outer\n{}", "  work\n".repeat(50)).repeat(8));
}

#[test]
fn a_position_is_attached_on_another_thread() {
    let spans = alone(|| {
        let _trace = start();
        let outer = span!("outer");
        let position = outer.position();
        thread::spawn(move || {
            {
                let _attached = attach(position);
                assert_eq!(current(), position);
                work();
                let inner = span!("inner");
                inner.in_scope(work);
            }
            assert!(current().is_null());
        })
        .join()
        .unwrap();
        drop(span!("child", parent = position));
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "outer\n  work\n  inner\n    work\n  child\n");
}

#[test]
fn several_threads_are_inside_one_span_at_once() {
    let spans = alone(|| {
        let _trace = start();
        let span = Arc::new(span!("shared"));
        let together = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (span, together) = (span.clone(), together.clone());
                thread::spawn(move || {
                    span.in_scope(|| {
                        together.wait();
                        (0..100).for_each(|_| work());
                        event!("inside");
                    });
                    span.set_attribute("from", "several threads");
                })
            })
            .collect();
        drop(span);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    })
    .run()
    .spans();
    let shared = spans.one("shared");
    assert_eq!(shared.events.len(), 4);
    assert_eq!(shared.attribute("from"), Some(&"several threads".into()));
    let work = spans.all("work");
    assert_eq!(work.len(), 400);
    assert!(work.iter().all(|span| span.parent_span_id == Some(shared.span_id)));
}

#[test]
fn a_span_outlives_its_request() {
    let spans = alone(|| {
        let trace = start();
        let request = Generate::begun("a");
        let span = dispatch(&request, || span!("background"));
        request.finish(Outcome::Ok);
        drop(request);
        // The request's block goes to others meanwhile.
        for other in 0..100 {
            drop(Generate::begun(&other.to_string()));
        }
        flushed();
        thread::spawn(move || span.in_scope(work)).join().unwrap();
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!(stats.open, 0);
    })
    .run()
    .spans();
    let first = spans.one("background").trace_id;
    let of_first: Vec<_> = spans.iter().filter(|s| s.trace_id == first).cloned().collect();
    let expected = "generate\n  scheduler_dispatch\n    background\n      work\n";
    assert_eq!(Spans::from(of_first).tree(&[]), expected);
    let root = spans.iter().find(|span| span.trace_id == first && span.name == "generate");
    let count = root.unwrap().attribute("stagetrace.stage.scheduler_dispatch.count");
    assert_eq!(count, Some(&Value::I64(1)));
}

#[test]
fn what_outlives_its_request_says_nothing_of_the_next_one() {
    let spans = alone(|| {
        let _trace = start();
        for _ in 0..20 {
            let first = Generate::begun("first");
            let (span, position) = dispatch(&first, || (span!("left over"), first.position()));
            first.finish(Outcome::Ok);
            drop(first);
            // It may well get what the first one had.
            let next = Generate::begun("next");
            span.end(Outcome::Error);
            #[stage(Pipeline::SchedulerDispatch, _of)]
            fn late(_of: Position) {}
            late(position);
            let sent = serde_json::to_value(&next.trace).unwrap();
            assert_eq!(sent.get("stage"), None, "the next request was in no stage yet");
            drop(next);
        }
    })
    .run()
    .spans();
    let next = spans
        .iter()
        .filter(|span| span.attribute("stagetrace.request.id") == Some(&Value::from("next")));
    let ends: Vec<_> = next.filter_map(|span| span.attribute("error.type")).collect();
    assert_eq!(ends, Vec::<&Value>::new(), "the next request did not fail");
}

thread_local! {
    static TRACES_AT_THE_END: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Records when its thread is torn down.
struct AtTheEnd(Option<Generate>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let span = span!("last words");
        span.in_scope(work);
        event!("nobody is there");
        let _ = current();
        if let Some(request) = self.0.take() {
            decode(&request);
            request.finish(Outcome::Ok);
        }
    }
}

/// What a thread does that traces to its very end: with a destructor that was registered before the
/// recorder's own, and so runs after it, or after, or on a thread that has not recorded anything.
fn short_thread(number: u32) {
    TRACES_AT_THE_END.with(|_| ());
    match number % 4 {
        0 => TRACES_AT_THE_END.set(Some(AtTheEnd(None))),
        1 => {
            TRACES_AT_THE_END.set(Some(AtTheEnd(None)));
            work();
        }
        2 => {
            TRACES_AT_THE_END.set(Some(AtTheEnd(None)));
            TRACES_AT_THE_END.set(Some(AtTheEnd(Some(Generate::begun("a")))));
        }
        _ => {
            work();
            TRACES_AT_THE_END.set(Some(AtTheEnd(None)));
        }
    }
}

#[test]
fn a_destructor_of_a_thread_traces() {
    let spans = alone(|| {
        let trace = start();
        for number in 0..200 {
            thread::spawn(move || short_thread(number)).join().unwrap();
        }
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0));
    })
    .run()
    .spans();
    // Of every four threads the third replaces its destructor, which speaks then.
    assert_eq!(spans.all("last words").len(), 250);
    assert_eq!(spans.all("decode").len(), 50);
    assert_eq!(spans.all("work").len(), 250 + 100);
    let inside = spans.all("work");
    let inside = inside.iter().filter_map(|span| spans.parent(span));
    assert_eq!(inside.filter(|parent| parent.name == "last words").count(), 250);
}

#[test]
fn threads_that_come_and_go_leave_neither_memory_nor_gaps() {
    let spans = alone(|| {
        let trace = start();
        let mut memory = Vec::new();
        for round in 0..400 {
            let threads: Vec<_> = (0..8).map(|n| thread::spawn(move || short_thread(n))).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            thread::sleep(Duration::from_millis(2));
            if round % 100 == 0 {
                memory.push(flushed().memory);
            }
        }
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0), "{memory:?} {stats:?}");
        // What a thread keeps for itself goes back to the others.
        let growth = memory[3].saturating_sub(memory[1]);
        assert!(growth <= 2 << 20, "{growth} bytes more after 1600 more threads: {memory:?}");
    })
    .run()
    .spans();
    assert_eq!(spans.all("last words").len(), 4000);
    assert!(spans.all("decode").iter().all(|span| spans.parent(span).is_some()));
    assert_eq!(spans.all("decode").len(), 800);
}

#[test]
fn ids_of_all_threads_are_different() {
    let spans = alone(|| {
        let _trace = start();
        let threads: Vec<_> =
            (0..4).map(|_| thread::spawn(|| (0..2000).for_each(|_| work()))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    })
    .run()
    .spans();
    let mut ids: Vec<_> = spans.iter().map(|span| span.span_id).collect();
    let mut traces: Vec<_> = spans.iter().map(|span| span.trace_id).collect();
    ids.sort();
    ids.dedup();
    traces.sort();
    traces.dedup();
    assert_eq!((spans.len(), ids.len(), traces.len()), (8000, 8000, 8000));
}
