//! No room: spans are dropped, counted and reported, and nothing blocks.

use stagetrace::{DropCause, Mapping, Outcome, Stats, Traced, event, span, stage};
use stagetrace_tests::pipeline::{Generate, decode, dispatch};
use stagetrace_tests::{Spans, alone, flushed, start_with};
use stagetrace_wire::span::{Span, Value};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

#[stage("work")]
fn work() {}

#[stage("inner")]
fn inner() {}

#[stage("outer")]
fn outer() {
    inner();
}

/// What `stats()` promises of its numbers.
fn assert_sums(stats: &Stats) {
    assert_eq!(stats.begun, stats.dropped_spans() + stats.open + stats.ended, "{stats:?}");
    assert_eq!(
        stats.ended,
        stats.waiting + stats.discarded + stats.unsampled + stats.handed,
        "{stats:?}"
    );
    for sink in &stats.sinks {
        assert_eq!(
            sink.handed,
            sink.queued + sink.outbox + sink.exported + sink.failed,
            "{sink:?}"
        );
    }
}

/// Spans of ours, and reports of losses by the recorder.
fn split(spans: &Spans) -> (Vec<&Span>, Vec<&Span>) {
    spans.iter().partition(|span| span.name != "stagetrace.loss")
}

/// What the reports of losses say of a cause, all together.
fn reported(losses: &[&Span], cause: DropCause) -> u64 {
    let key = format!("stagetrace.dropped.{}", cause.name());
    let counts = losses.iter().filter_map(|span| span.attribute(&key));
    counts.filter_map(Value::as_i64).sum::<i64>() as u64
}

/// How often this thread has given up the processor because it had to wait.
fn waits() -> i64 {
    // SAFETY: all bits zero is a value of this struct of numbers, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage
    };
    usage.ru_nvcsw
}

#[test]
fn a_burst_beyond_the_memory_is_dropped_counted_and_reported() {
    const THREADS: u64 = 4;
    const SPANS: u64 = 60_000;
    let ran = alone(|| {
        // In plain memory, since a page of a file may be on its way to the disk.
        let trace = start_with(|config| config.memory_limit(1 << 20).mapping(Mapping::Memory));
        let together = Arc::new(Barrier::new(THREADS as usize));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let together = together.clone();
                thread::spawn(move || {
                    together.wait();
                    // What belongs to a thread's first span is another matter.
                    work();
                    let before = waits();
                    (1..SPANS).for_each(|_| work());
                    waits() - before
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 0, "times that a thread waited for something");
        }
        let stats = flushed();
        assert_sums(&stats);
        assert!(stats.memory <= 1 << 20, "{} bytes", stats.memory);
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.begun, stats.open, stats.waiting), (THREADS * SPANS, 0, 0));
        assert!(stats.dropped(DropCause::PoolFull) > 0, "the burst was too small: {stats:?}");
        // The parent of this process needs the numbers.
        println!("\nhanded {} dropped {}", stats.handed, stats.dropped(DropCause::PoolFull));
    })
    .run();
    let numbers = ran.stdout.lines().find_map(|line| line.strip_prefix("handed ")).unwrap();
    let (handed, dropped) = numbers.split_once(" dropped ").unwrap();
    let (handed, dropped): (u64, u64) = (handed.parse().unwrap(), dropped.parse().unwrap());
    let spans = ran.spans();
    let (ours, losses) = split(&spans);
    assert_eq!(handed + dropped, THREADS * SPANS);
    assert_eq!(ours.len() as u64, handed);
    assert_eq!(reported(&losses, DropCause::PoolFull), dropped);
}

#[test]
fn requests_beyond_the_memory_are_dropped_and_go_on_without_a_trace() {
    let ran = alone(|| {
        let trace = start_with(|config| config.memory_limit(1 << 20));
        let requests: Vec<_> =
            (0..10_000).map(|number| Generate::begun(&number.to_string())).collect();
        let (recorded, dropped): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| !request.trace.is_null());
        let stats = flushed();
        assert_sums(&stats);
        assert_eq!(stats.open, recorded.len() as u64);
        assert_eq!(stats.dropped(DropCause::SlabFull), dropped.len() as u64);
        assert!(!dropped.is_empty() && recorded.len() > 1000, "{}", recorded.len());
        drop(requests);
        let stats = flushed();
        assert_sums(&stats);
        assert_eq!((stats.open, stats.waiting), (0, 0), "what ended in its slot is exported too");
        // There is room again.
        let mut request = Generate::new("later", 1);
        request.begin(None);
        dispatch(&request, || decode(&request));
        request.finish(Outcome::Ok);
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!(stats.begun, 10_000 + 3);
        println!("\nrecorded {}", stats.handed - 3);
    })
    .run();
    let recorded = ran.stdout.lines().find_map(|line| line.strip_prefix("recorded ")).unwrap();
    let spans = ran.spans();
    let (ours, losses) = split(&spans);
    assert_eq!(ours.len(), recorded.parse::<usize>().unwrap() + 3);
    assert_eq!(spans.all("scheduler_dispatch").len(), 1);
    assert!(reported(&losses, DropCause::SlabFull) > 0);
    let long_gone = spans.iter().filter(|span| span.name == "generate");
    let ended = long_gone.filter(|span| span.attribute("stagetrace.request.id").is_some());
    assert_eq!(ended.count(), recorded.parse::<usize>().unwrap() + 1);
}

#[test]
fn a_dropped_span_leaves_the_context_as_it_was() {
    let ran = alone(|| {
        let _trace = start_with(|config| config.memory_limit(1 << 20));
        let root = span!("root");
        root.in_scope(|| {
            let here = stagetrace::current();
            let mut dropped = 0;
            for _ in 0..60_000 {
                outer();
                assert_eq!(stagetrace::current(), here);
            }
            while dropped == 0 {
                let kept: Vec<_> = (0..10_000).map(|_| span!("kept")).collect();
                dropped = kept.iter().filter(|span| !span.is_recorded()).count();
                assert_eq!(stagetrace::current(), here);
            }
        });
    })
    .run();
    let spans = ran.spans();
    let root = spans.one("root");
    let (ours, _) = split(&spans);
    for span in ours.iter().filter(|span| span.name != "root") {
        assert_eq!(span.trace_id, root.trace_id);
        let parent = spans.parent(span).map(|parent| &*parent.name);
        let expected: &[_] = if span.name == "inner" { &["root", "outer"] } else { &["root"] };
        assert!(parent.is_some_and(|parent| expected.contains(&parent)), "{parent:?} of {span:?}");
    }
    assert!(spans.all("inner").len() > 100);
}

#[test]
fn details_that_find_no_room_are_counted_and_their_span_is_exported() {
    let spans = alone(|| {
        let trace = start_with(|config| config.memory_limit(1 << 20));
        let span = span!("talkative");
        span.in_scope(|| {
            let text = "x".repeat(2000);
            for _ in 0..60_000 {
                event!("said", "text" = &*text);
            }
            event!(
                "too large",
                "a" = "x".repeat(32_000),
                "b" = "x".repeat(32_000),
                "c" = "x".repeat(32_000)
            );
        });
        drop(span);
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_sums(&stats);
        assert!(stats.dropped(DropCause::DetailFull) > 0, "{stats:?}");
        assert_eq!(stats.dropped(DropCause::DetailTooLarge), 1);
        assert_eq!((stats.begun, stats.open, stats.dropped_spans()), (1, 0, 0));
    })
    .run()
    .spans();
    let (ours, losses) = split(&spans);
    assert_eq!(ours.len(), 1);
    assert!(reported(&losses, DropCause::DetailFull) > 0);
    assert_eq!(reported(&losses, DropCause::DetailTooLarge), 1);
}

#[test]
fn the_numbers_add_up_whenever_they_are_asked_for() {
    let spans = alone(|| {
        let trace = start_with(|config| config.memory_limit(1 << 20).mapping(Mapping::Memory));
        let worker = thread::spawn(|| {
            for number in 0..20_000 {
                let request = Generate::begun("a");
                dispatch(&request, work);
                if number % 3 == 0 {
                    span!("discarded").discard();
                }
            }
        });
        let mut asked = 0;
        while (asked < 20 || !worker.is_finished()) && asked < 100_000 {
            // On a loaded machine no answer may come in time.
            if let Some(stats) = stagetrace::stats() {
                assert_sums(&stats);
                asked += 1;
            }
        }
        worker.join().unwrap();
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_sums(&stats);
        assert_eq!(stats.open + stats.waiting, 0);
        println!("\nhanded {}", stats.handed);
    })
    .run();
    let handed = spans.stdout.lines().find_map(|line| line.strip_prefix("handed ")).unwrap();
    let read = spans.spans();
    assert_eq!(split(&read).0.len(), handed.parse::<usize>().unwrap());
}
