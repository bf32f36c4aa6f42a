//! Crowds of threads: many at once, and many one after the other. None loses a span as long as there is memory.

use stagetrace::{Mapping, Outcome, Traced, event, span, stage};
use stagetrace_tests::pipeline::{Generate, decode};
use stagetrace_tests::{alone, flushed, resident_bytes, start, start_with};
use std::cell::RefCell;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

#[stage("work")]
fn work() {}

#[stage("outer")]
fn outer(inner: usize) {
    (0..inner).for_each(|_| work());
}

/// So many threads, each with a stack that a thousand of them can have.
fn threads(count: usize, body: impl Fn(usize) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let started: Vec<_> = (0..count)
        .map(|number| {
            let body = body.clone();
            let thread = thread::Builder::new().stack_size(256 * 1024);
            thread.spawn(move || body(number)).unwrap()
        })
        .collect();
    started.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_thousand_threads_that_begin_in_one_instant_find_room() {
    let spans = alone(|| {
        let trace = start();
        let together = Arc::new(Barrier::new(1000));
        threads(1000, move |_| {
            together.wait();
            outer(4);
        });
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.begun, stats.handed), (5000, 5000), "{stats:?}");
        assert!(stats.memory <= 32 << 20, "{} bytes", stats.memory);
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), format!("outer\n{}", "  work\n".repeat(4)).repeat(1000));
}

#[test]
fn a_thousand_threads_that_stay_do_not_fill_the_pool_with_chunks_of_their_own() {
    // What each of them takes before the next flush is provided ahead of need.
    const GROUP: usize = 10;
    alone(|| {
        let trace = start_with(|config| config.mapping(Mapping::Memory));
        let groups: Arc<Vec<_>> =
            Arc::new((0..1000 / GROUP).map(|_| Barrier::new(GROUP + 1)).collect());
        let end = Arc::new(Barrier::new(1001));
        let (their_groups, their_end) = (groups.clone(), end.clone());
        let crowd = thread::spawn(move || {
            threads(1000, move |number| {
                let group = &their_groups[number / GROUP];
                group.wait();
                // Fills its first chunk and needs more.
                outer(150);
                group.wait();
                their_end.wait();
            });
        });
        for group in groups.iter() {
            group.wait();
            group.wait();
            flushed();
        }
        // All of them are there, and keep what they have.
        let stats = flushed();
        assert_eq!((stats.begun, stats.handed), (151_000, 151_000), "{stats:?}");
        // And there is room for others.
        let mut requests = Vec::new();
        for _ in 0..20 {
            requests.extend((0..100).map(|_| Generate::begun("later")));
            threads(10, |_| outer(10));
            flushed();
        }
        assert_eq!(requests.iter().filter(|request| request.trace.is_null()).count(), 0);
        drop(requests);
        end.wait();
        crowd.join().unwrap();
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.dropped_spans(), stats.open), (0, 0), "{stats:?}");
    })
    .run();
}

#[test]
fn threads_of_one_span_each_share_chunks_one_after_the_other() {
    let spans = alone(|| {
        let trace = start_with(|config| config.memory_limit(1 << 20));
        for _ in 0..5000 {
            thread::spawn(work).join().unwrap();
        }
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!(
            (stats.begun, stats.handed, stats.dropped_spans()),
            (5000, 5000, 0),
            "{stats:?}"
        );
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "work\n".repeat(5000));
}

thread_local! {
    static FIRST: RefCell<Option<Late>> = const { RefCell::new(None) };
    static SECOND: RefCell<Option<Late>> = const { RefCell::new(None) };
    static THIRD: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Traces when its thread is torn down, and has another such destructor registered meanwhile, up to two times.
struct Late(u32);

impl Drop for Late {
    fn drop(&mut self) {
        let span = span!("late", "left" = self.0);
        span.in_scope(|| {
            work();
            event!("late");
            let request = Generate::begun("late");
            decode(&request);
            request.finish(Outcome::Ok);
        });
        if let Some(left) = self.0.checked_sub(1) {
            let next = Late(left);
            // Not where one of them is being torn down.
            if left == 1 { SECOND.set(Some(next)) } else { THIRD.set(Some(next)) }
        }
    }
}

/// One way in which a thread comes to trace at its end: its destructors stand before, behind or on both sides of the
/// recorder's own, or the thread has recorded nothing before them.
fn end_of_thread(number: usize) {
    let places = [&FIRST, &SECOND, &THIRD];
    let (first, second) = (places[number % 3], places[(number + 1) % 3]);
    match number / 3 % 4 {
        0 => first.set(Some(Late(0))),
        1 => {
            first.set(Some(Late(0)));
            work();
            second.set(Some(Late(0)));
        }
        2 => {
            work();
            first.set(Some(Late(0)));
            second.set(Some(Late(0)));
        }
        _ => {
            first.set(Some(Late(0)));
            second.set(Some(Late(0)));
            work();
        }
    }
}

/// The spans "late" of so many threads: one or two each.
fn late_of(threads: usize) -> usize {
    (0..threads).map(|number| if number / 3 % 4 == 0 { 1 } else { 2 }).sum()
}

#[test]
fn destructors_trace_in_every_order() {
    const THREADS: usize = 600;
    let spans = alone(|| {
        let trace = start();
        (0..THREADS / 12).for_each(|_| threads(12, end_of_thread));
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0), "{stats:?}");
    })
    .run()
    .spans();
    let late = spans.all("late");
    assert_eq!(late.len(), late_of(12) * THREADS / 12);
    assert!(late.iter().all(|span| span.events.len() == 1));
    let inside: Vec<_> =
        spans.all("work").into_iter().filter(|s| spans.parent(s).is_some()).collect();
    assert_eq!(inside.len(), late.len());
    assert_eq!(spans.all("decode").len(), late.len());
    assert!(spans.all("decode").iter().all(|span| spans.parent(span).unwrap().name == "generate"));
}

#[test]
fn a_destructor_that_registers_another_is_followed_to_the_end() {
    let spans = alone(|| {
        let trace = start();
        for number in 0..20 {
            thread::spawn(move || {
                if number % 2 == 0 {
                    work();
                }
                FIRST.set(Some(Late(2)));
            })
            .join()
            .unwrap();
        }
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0), "{stats:?}");
    })
    .run()
    .spans();
    let mut left: Vec<_> =
        spans.all("late").iter().filter_map(|span| span.attribute("left")?.as_i64()).collect();
    left.sort_unstable();
    let expected: Vec<_> = (0..=2).flat_map(|left| [left; 20]).collect();
    assert_eq!(left, expected);
}

#[test]
fn a_thread_that_starts_threads_at_its_end_loses_none_of_theirs() {
    struct Starts;
    impl Drop for Starts {
        fn drop(&mut self) {
            span!("late").in_scope(|| {
                let here = stagetrace::current();
                let inner = thread::spawn(move || {
                    let _attached = stagetrace::attach(here);
                    work();
                });
                inner.join().unwrap();
            });
        }
    }
    thread_local!(static STARTS: RefCell<Option<Starts>> = const { RefCell::new(None) });
    let spans = alone(|| {
        let trace = start();
        for number in 0..50 {
            let thread = thread::spawn(move || {
                STARTS.set(Some(Starts));
                if number % 2 == 0 {
                    event!("so that the recorder's destructor comes first");
                    work();
                }
            });
            thread.join().unwrap();
        }
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.open, stats.dropped_spans()), (0, 0), "{stats:?}");
    })
    .run()
    .spans();
    assert_eq!(
        spans.tree_by_name(),
        format!("{}{}", "late\n  work\n".repeat(50), "work\n".repeat(25))
    );
}

/// With `STAGETRACE_MANY=1` a million, else as many as a shared machine can start in seconds.
#[test]
fn a_crowd_that_comes_and_goes_leaves_no_memory_and_no_gap() {
    let many = std::env::var_os("STAGETRACE_MANY").is_some();
    let total = if many { 1_000_000 } else { 30_000 };
    let ran = alone(|| {
        let total: usize = std::env::var("TEST_THREADS").unwrap().parse().unwrap();
        let trace = start_with(|config| config.jsonl_max_bytes(64 << 20));
        let mut memory = Vec::new();
        let mut started = 0;
        while started < total {
            // Batches of every size up to a hundred at once.
            let batch = (started % 100 + 1).min(total - started);
            threads(batch, |_| outer(1));
            started += batch;
            if memory.len() < started * 10 / total {
                memory.push((flushed().memory, resident_bytes()));
            }
        }
        let stats = trace.shutdown(Duration::from_secs(60)).unwrap();
        let total = 2 * total as u64;
        assert_eq!(
            (stats.begun, stats.handed, stats.open),
            (total, total, 0),
            "{memory:?} {stats:?}"
        );
        let (pool, resident) = (memory[9].0 - memory[1].0, memory[9].1.saturating_sub(memory[1].1));
        assert!(pool <= 1 << 20, "{memory:?}");
        assert!(resident <= 8 << 20, "{memory:?}");
        println!("\n{} threads: {memory:?}", total / 2);
    })
    .env("TEST_THREADS", total.to_string())
    .within(Duration::from_secs(60 + total as u64 / 500))
    .run();
    let spans = ran.spans();
    assert_eq!((spans.all("outer").len(), spans.all("work").len()), (total, total));
    assert!(spans.all("work").iter().all(|span| spans.parent(span).is_some()));
}
