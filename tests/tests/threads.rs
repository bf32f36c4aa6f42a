//! Spans and requests across threads, and guards in any order.

use stagetrace::testing::capture;
use stagetrace::{Outcome, Traced, attach, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode, dispatch, forward};
use stagetrace_tests::{Spans, alone, flushed, start};
use stagetrace_wire::span::Value;
use std::cell::RefCell;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

fn recorded(f: impl FnOnce()) -> Spans {
    Spans::from(capture(f).spans)
}

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
fn guards_that_end_out_of_order_leave_no_ended_span_current() {
    let spans = alone(|| {
        let trace = start();
        let (a, b, c) = (span!("a"), span!("b"), span!("c"));
        let in_a = a.enter();
        let in_b = b.enter();
        let in_c = c.enter();
        work();
        drop(in_a);
        assert!(current().is_null(), "the outer guard ends all above it");
        work();
        drop(in_c);
        drop(in_b);
        assert!(current().is_null());
        let in_a = a.enter();
        let attached = attach(b.position());
        drop(in_a);
        drop(attached);
        assert!(current().is_null());
        drop((a, b, c));
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert!(stats.out_of_order >= 3, "{}", stats.out_of_order);
        assert_eq!(stats.open, 0);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "a\nb\nc\n  work\nwork\n");
}

#[test]
fn a_guard_that_was_popped_does_not_end_one_that_came_after_it() {
    let spans = alone(|| {
        let _trace = start();
        let (a, b, c, d) = (span!("a"), span!("b"), span!("c"), span!("d"));
        let in_a = a.enter();
        let in_b = b.enter();
        drop(in_a);
        // As deep as the two before.
        let in_c = c.enter();
        let in_d = d.enter();
        drop(in_b);
        assert_eq!(current(), d.position());
        work();
        drop(in_d);
        assert_eq!(current(), c.position());
        drop(in_c);
        assert!(current().is_null());
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "a\nb\nc\nd\n  work\n");
}

#[test]
fn stages_nest_as_deep_as_the_stack_allows() {
    #[stage("deeper")]
    fn deeper(left: u32) {
        if left > 0 {
            let here = current();
            deeper(left - 1);
            assert_eq!(current(), here);
        }
    }
    let spans = alone(|| {
        let _trace = start();
        let thread = thread::Builder::new().stack_size(64 << 20);
        thread.spawn(|| deeper(5000)).unwrap().join().unwrap();
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 5001);
    let mut depth = 0;
    let mut innermost = spans.iter().max_by_key(|span| span.start_unix_nano);
    while let Some(span) = innermost {
        depth += 1;
        innermost = spans.parent(span);
    }
    assert_eq!(depth, 5001);
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
fn a_span_may_end_while_it_is_entered_elsewhere() {
    let spans = alone(|| {
        let _trace = start();
        let request = Generate::begun("a");
        dispatch(&request, || {
            request.finish(Outcome::Ok);
            forward(&request);
            event!("late");
        });
        // Stages still attach to the request, which has ended.
        decode(&request);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "generate\n  scheduler_dispatch\n    gpu_forward\n  decode\n");
    assert_eq!(spans.one("scheduler_dispatch").events.len(), 1);
    let (root, decode) = (spans.one("generate"), spans.one("decode"));
    assert!(root.end_unix_nano <= decode.start_unix_nano);
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
fn a_forgotten_span_stays_open_and_stops_nobody_else() {
    let spans = alone(|| {
        let trace = start();
        let outer = span!("outer");
        outer.in_scope(|| {
            forget(span!("forgotten"));
            forget(span!("entered and forgotten").enter_forgotten());
            work();
        });
        drop(outer);
        forget(Generate::begun("lost"));
        for _ in 0..5000 {
            work();
        }
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (3, 0));
    })
    .run()
    .spans();
    assert_eq!(spans.all("work").len(), 5001);
    assert_eq!(spans.all("outer").len(), 1);
    assert_eq!(spans.len(), 5002);
}

/// Enters a span for good.
trait EnterForgotten {
    fn enter_forgotten(self) -> Self;
}

impl EnterForgotten for stagetrace::Span {
    fn enter_forgotten(self) -> Self {
        forget(self.enter());
        self
    }
}

#[test]
fn a_closure_that_panics_leaves_its_span_as_a_panic_and_the_context_as_it_was() {
    let spans = recorded(|| {
        let outer = span!("outer");
        outer.in_scope(|| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let inner = span!("inner");
                inner.in_scope(|| panic!("as expected"));
            }));
            assert!(panicked.is_err());
            assert_eq!(current(), outer.position());
            work();
        });
        assert!(current().is_null());
    });
    let tree = spans.tree(&["error.type"]);
    assert_eq!(tree, "outer\n  inner error.type=panic\n  work\n");
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

#[test]
fn a_stage_outside_the_stage_it_declares_is_marked_and_counted() {
    #[stage(Pipeline::DenoiseStep)]
    fn lost_step() {}
    let spans = alone(|| {
        let trace = stagetrace_tests::start_with(|config| config.level(3));
        let request = Generate::begun("a");
        dispatch(&request, || {
            lost_step();
            forward(&request);
        });
        request.finish(Outcome::Ok);
        assert_eq!(trace.shutdown(Duration::from_secs(10)).unwrap().misplaced, 1);
    })
    .run()
    .spans();
    let expected = "\
generate
  scheduler_dispatch
    denoise_step stagetrace.misplaced=true
    gpu_forward
      denoise_step
      denoise_step
";
    assert_eq!(spans.tree(&["stagetrace.misplaced"]), expected);
}
