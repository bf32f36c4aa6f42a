//! Captures: a recorder for one closure on one thread, beside other captures and the process's
//! recorder.

use stagetrace::testing::capture;
use stagetrace::{Outcome, Traced, attach, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, decode, dispatch, forward, serve};
use stagetrace_tests::{Spans, alone, flushed, start, start_with};
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};
use std::thread;

#[stage("work", attrs("n" = n))]
fn work(n: u32) {
    let _ = n;
}

/// Something of everything, with `n` in it.
fn everything(n: u32) {
    let outer = span!("outer", "n" = n);
    outer.in_scope(|| {
        work(n);
        event!("event", "n" = n);
        let request = Generate::begun(&n.to_string());
        dispatch(&request, || {
            forward(&request);
            decode(&request);
        });
        request.finish(Outcome::Ok);
    });
}

#[test]
fn the_same_closure_gives_the_same_spans_each_time() {
    let (one, two) = (capture(|| everything(1)), capture(|| everything(1)));
    assert_eq!(one.spans, two.spans);
    assert_eq!(one.spans.len(), 2 + 4 + 2);
}

#[test]
fn captures_on_several_threads_do_not_see_each_other() {
    let together = Arc::new(Barrier::new(8));
    let expected = capture(|| everything(0)).tree(&[]);
    let threads: Vec<_> = (0..8_u32)
        .map(|n| {
            let (together, expected) = (together.clone(), expected.clone());
            thread::spawn(move || {
                for _ in 0..50 {
                    together.wait();
                    let captured = capture(|| everything(n));
                    assert_eq!(captured.tree(&[]), expected);
                    let numbers = captured.spans.iter().filter_map(|span| span.attribute("n"));
                    assert!(
                        numbers.clone().count() == 2
                            && numbers.clone().all(|v| *v == i64::from(n).into())
                    );
                    assert_eq!(captured.spans[0].events[0].attributes[0].1, i64::from(n).into());
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_capture_inside_a_capture_is_apart() {
    let mut inner = String::new();
    let outer = capture(|| {
        let around = span!("around");
        around.in_scope(|| {
            let here = current();
            inner = capture(|| {
                assert!(current().is_null());
                everything(1);
            })
            .tree(&[]);
            assert_eq!(current(), here);
            work(2);
        });
        assert!(current().is_null());
    });
    assert_eq!(outer.tree(&["n"]), "around\n  work n=2\n");
    assert_eq!(inner, capture(|| everything(1)).tree(&[]));
}

#[test]
fn what_other_threads_do_is_not_captured() {
    let captured = capture(|| {
        work(1);
        thread::spawn(|| everything(2)).join().unwrap();
    });
    assert_eq!(captured.tree(&["n"]), "work n=1\n");
}

#[test]
fn a_capture_that_panics_leaves_nothing_behind() {
    let panicked = catch_unwind(|| {
        capture(|| {
            let around = span!("around");
            around.in_scope(|| panic!("as expected"));
        })
    });
    assert!(panicked.is_err());
    assert!(current().is_null() && !span!("never").is_recorded());
    assert_eq!(capture(|| work(1)).tree(&["n"]), "work n=1\n");
}

#[test]
fn a_guard_that_leaves_its_capture_changes_nothing_outside() {
    let position = capture(|| span!("elsewhere").position()).output;
    let outer = capture(|| {
        let around = span!("around");
        around.in_scope(|| {
            let here = current();
            let escaped = capture(|| attach(position)).output;
            assert_eq!(current(), here);
            work(1);
            drop(escaped);
            assert_eq!(current(), here);
            work(2);
        });
    });
    assert_eq!(outer.tree(&["n"]), "around\n  work n=1\n  work n=2\n");
}

#[test]
fn a_capture_inside_a_running_recorder_is_apart() {
    let spans = alone(|| {
        let _trace = start_with(|config| config.level(1));
        let around = span!("around", level = 1);
        around.in_scope(|| {
            let here = current();
            let captured = capture(|| {
                everything(1);
                serve("captured", 3);
            });
            // At every level, whatever the process's.
            assert_eq!(captured.spans.iter().filter(|span| span.name == "denoise_step").count(), 5);
            assert_eq!(current(), here);
            serve("recorded", 3);
        });
        assert!(current().is_null());
    })
    .run()
    .spans();
    let expected =
        "around\ngenerate stagetrace.request.id=recorded\n  scheduler_dispatch\n    gpu_forward\n";
    assert_eq!(spans.tree(&["stagetrace.request.id"]), expected);
}

#[test]
fn a_recorder_goes_on_beside_captures_on_other_threads() {
    let spans = alone(|| {
        let trace = start();
        let capturing = thread::spawn(|| {
            for _ in 0..200 {
                assert_eq!(capture(|| everything(7)).spans.len(), 8);
            }
        });
        let mut recorded = 0;
        while !capturing.is_finished() && recorded < 5000 {
            serve("recorded", 2);
            recorded += 1;
            thread::sleep(std::time::Duration::from_micros(100));
        }
        capturing.join().unwrap();
        let stats = trace.shutdown(std::time::Duration::from_secs(10)).unwrap();
        assert_eq!((stats.begun, stats.dropped_spans()), (recorded * 4, 0));
        assert!(recorded > 0);
    })
    .run()
    .spans();
    let captured = spans.iter().filter(|span| span.attribute("n").is_some());
    assert_eq!(captured.count(), 0);
    assert!(spans.all("denoise_step").is_empty(), "captures open the gate for themselves only");
}

#[test]
fn what_outlives_its_capture_does_not_reach_the_recorder_of_the_process() {
    let spans = alone(|| {
        let trace = start();
        for round in 0..50 {
            let (open, span) = capture(|| (Generate::begun("captured"), span!("captured"))).output;
            span.set_attribute("round", round);
            drop(span);
            open.finish(Outcome::Ok);
            drop(open);
            let span = capture(|| span!("captured")).output;
            thread::spawn(move || drop(span)).join().unwrap();
            serve("recorded", 0);
        }
        let stats = trace.shutdown(std::time::Duration::from_secs(10)).unwrap();
        assert_eq!((stats.begun, stats.open, stats.dropped_spans()), (200, 0, 0));
    })
    .run()
    .spans();
    assert_eq!(spans.all("generate").len(), 50);
    assert_eq!(spans.all("captured").len(), 0);
}

#[test]
fn a_request_of_the_recorder_that_ends_inside_a_capture_is_recorded_by_the_recorder() {
    let spans = alone(|| {
        let trace = start();
        for round in 0..200_u32 {
            let (request, span) = (Generate::begun("recorded"), span!("recorded"));
            let captured = capture(|| {
                drop(span);
                request.finish(Outcome::Ok);
                drop(request);
                // Takes slots of the capture's own.
                let kept: Vec<_> = (0..3).map(|n| span!("kept", "n" = n + round)).collect();
                drop(kept);
            });
            let tree = captured.tree(&["n"]);
            assert_eq!(
                tree,
                format!("kept n={}\nkept n={}\nkept n={}\n", round, round + 1, round + 2)
            );
            if round % 50 == 0 {
                flushed();
            }
        }
        let stats = trace.shutdown(std::time::Duration::from_secs(10)).unwrap();
        assert_eq!((stats.begun, stats.open, stats.dropped_spans()), (400, 0, 0));
    })
    .run()
    .spans();
    let count = |name: &str| spans.all(name).len();
    assert_eq!((count("generate"), count("recorded"), count("kept")), (200, 200, 0));
}

#[test]
fn a_capture_holds_all_of_many_spans() {
    let captured = capture(|| (0..50_000).for_each(work));
    assert_eq!(captured.spans.len(), 50_000);
    assert_eq!(Spans::from(captured.spans).all("work").len(), 50_000);
}
