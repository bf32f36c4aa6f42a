//! What is current: guards in any order, nested, forgotten, unwound.

use stagetrace::testing::capture;
use stagetrace::{Outcome, Traced, attach, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode, dispatch, forward};
use stagetrace_tests::{Spans, alone, start};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

fn recorded(f: impl FnOnce()) -> Spans {
    Spans::from(capture(f).spans)
}

#[stage("work")]
fn work() {}

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
