//! The ways that are only taken by a process's own recorder, on the processor's counter: captures take others.

use stagetrace::{Attached, InSpan, attach, current, event, next, set_attribute, span, stage};
use stagetrace_tests::ended::{file, run_dir};
use stagetrace_tests::pipeline::Pipeline;
use stagetrace_tests::{alone, flushed, start};
use stagetrace_wire::recording::read::Recording;
use std::mem::forget;
use std::panic::catch_unwind;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

#[stage("work")]
fn work() {}

/// Fills what a thread does once: its chunk, the numbers of sites.
fn warm_up() {
    (0..3).for_each(|_| span!("warm").in_scope(work));
}

#[stage("leaves")]
fn leaves_behind() -> Attached {
    let attached = attach(span!("other").position());
    work();
    attached
}

#[stage("forgets")]
fn forgets() {
    forget(attach(span!("other").position()));
    forget(attach(span!("another").position()));
    work();
}

#[stage("takes")]
fn takes(attached: Attached) {
    drop(attached);
    work();
}

#[stage("fails")]
fn fails() {
    panic!("as expected");
}

#[test]
fn a_guard_by_hand_that_a_stage_leaves_behind_ends_with_it() {
    let spans = alone(|| {
        let trace = start();
        warm_up();
        let outer = span!("outer");
        outer.in_scope(|| {
            let left = leaves_behind();
            assert_eq!(current(), outer.position());
            drop(left);
            assert_eq!(current(), outer.position());
            forgets();
            assert_eq!(current(), outer.position());
            takes(attach(span!("given").position()));
            assert_eq!(current(), outer.position());
            assert!(catch_unwind(fails).is_err());
            assert_eq!(current(), outer.position());
            work();
        });
        drop(outer);
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert!(stats.out_of_order >= 3, "{}", stats.out_of_order);
        assert_eq!(stats.open, 0);
    })
    .run()
    .spans();
    let outer = spans.one("outer");
    let children = |of: &str| {
        let of = spans.one(of).span_id;
        let names = spans.iter().filter(|span| span.parent_span_id == Some(of));
        names.map(|span| span.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(children("outer"), ["leaves", "forgets", "given", "work", "fails", "work"]);
    assert_eq!(children("given"), ["takes"], "inside, it is current no more");
    assert_eq!((children("leaves"), children("forgets")), (vec!["other"], vec!["other"]));
    let fails = spans.one("fails");
    assert_eq!(fails.attribute("error.type"), Some(&"panic".into()));
    assert!(outer.end_unix_nano >= fails.end_unix_nano);
}

#[test]
fn consecutive_stages_meet_without_a_gap_and_are_siblings() {
    let spans = alone(|| {
        let _trace = start();
        warm_up();
        let outer = span!("outer");
        outer.in_scope(|| {
            let mut now = next(Pipeline::SCHEDULER_DISPATCH);
            for _ in 0..2000 {
                now.next(Pipeline::DECODE);
                set_attribute("late", 1);
                work();
            }
            now.next(Pipeline::SCHEDULER_DISPATCH);
            now.end(&Err::<(), _>(std::io::Error::other("broken")));
            assert_eq!(current(), outer.position());
        });
    })
    .run()
    .spans();
    let outer = spans.one("outer").span_id;
    let mut steps: Vec<_> = spans
        .iter()
        .filter(|span| ["decode", "scheduler_dispatch"].contains(&span.name.as_str()))
        .collect();
    steps.sort_by_key(|span| (span.start_unix_nano, span.end_unix_nano));
    assert_eq!(steps.len(), 2002);
    assert!(steps.iter().all(|step| step.parent_span_id == Some(outer)));
    let gaps = steps.windows(2).filter(|two| two[0].end_unix_nano != two[1].start_unix_nano);
    // Where a chunk ends, the next one is taken first.
    assert!(gaps.count() <= 8);
    assert!(spans.all("decode").iter().all(|step| step.attribute("late").is_some()));
    let failed = steps.last().and_then(|step| step.attribute("error.type"));
    assert!(failed.is_some(), "{:?}", steps.last());
}

#[stage("waits")]
async fn waits() {
    event!("begun");
    let mut polls = 0;
    std::future::poll_fn(move |_| {
        polls += 1;
        if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    work();
}

fn poll(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_future_that_waits_is_one_span_wherever_it_is_polled() {
    let ran = alone(|| {
        let trace = start();
        warm_up();
        let mut ready = pin!(async { waits().await }.in_span(span!("outer")));
        assert!(!poll(ready.as_mut()));
        // In the recording it is open once, though its record has moved.
        let run = trace.run_dir().unwrap().to_owned();
        let recording = Recording::open(file(&run, "recording").unwrap()).unwrap();
        let open = || {
            let snapshot = recording.snapshot();
            snapshot.open().filter(|span| span.name() == "waits").count()
        };
        assert_eq!(open(), 1);
        let stats = flushed();
        assert_eq!(stats.open, 2, "itself and its parent");
        thread::scope(|scope| {
            let other = scope.spawn(|| assert!(!poll(ready.as_mut())));
            other.join().unwrap();
        });
        assert_eq!(open(), 1);
        assert!(poll(ready.as_mut()));
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0), "{stats:?}");
    })
    .run();
    assert!(run_dir(ran.dir()).is_dir());
    let spans = ran.spans();
    assert_eq!(spans.one("waits").events.len(), 1);
    assert_eq!(spans.parent(spans.one("waits")).unwrap().name, "outer");
    let tree = "outer\n  waits\n    work\n";
    assert!(spans.tree(&[]).ends_with(tree), "{}", spans.tree(&[]));
}

#[test]
fn a_future_that_is_dropped_or_panics_in_its_first_poll_says_so() {
    #[stage("panics")]
    async fn panics() {
        panic!("as expected");
    }
    let spans = alone(|| {
        let trace = start();
        warm_up();
        {
            let mut dropped = pin!(waits());
            assert!(!poll(dropped.as_mut()));
        }
        assert!(catch_unwind(|| poll(pin!(panics()))).is_err());
        assert!(current().is_null());
        assert_eq!(trace.shutdown(Duration::from_secs(20)).unwrap().open, 0);
    })
    .run()
    .spans();
    let outcome = |name: &str| spans.one(name).attribute("stagetrace.outcome").cloned();
    assert_eq!(outcome("waits"), Some("cancelled".into()));
    assert_eq!(outcome("panics"), Some("panic".into()));
}
