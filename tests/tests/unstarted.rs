//! Without `init`: nothing is recorded, nothing breaks, nothing grows.

use stagetrace::{InSpan, Outcome, Position, Traced, attach, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, decode, serve};
use stagetrace_tests::{alone, resident_bytes};
use std::time::Duration;

#[stage("work", attrs("n" = n))]
fn work(n: u32) -> u32 {
    n
}

#[stage("later")]
async fn later() {
    tokio::task::yield_now().await;
}

#[test]
fn ten_million_spans_without_a_recorder_take_no_memory() {
    alone(|| {
        work(0);
        serve("warm", 1);
        let before = resident_bytes();
        for n in 0..10_000_000 {
            work(n);
        }
        for n in 0..100_000 {
            serve("a", 1);
            let span = span!("span", "n" = n);
            span.in_scope(|| event!("event", "n" = n));
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 1 << 20, "{grown} bytes");
    })
    .run();
}

#[test]
fn everything_can_be_called_and_does_nothing() {
    let ran = alone(|| {
        let span = span!("span");
        assert!(!span.is_recorded() && span.position().is_null());
        span.set_attribute("a", 1);
        span.add_event("e", &[]);
        span.link(Position::NULL);
        span.in_scope(|| assert!(current().is_null()));
        drop(span.enter());
        span.end(Outcome::Error);
        span!("other").discard();
        drop(attach(Position::NULL));
        stagetrace::set_attribute("a", 1);
        stagetrace::link(Position::NULL);
        let mut request = Generate::begun("a");
        request.begin(None);
        assert!(request.trace.is_null());
        decode(&request);
        request.finish(Outcome::Ok);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            later().await;
            later().in_span(span!("span")).await;
            later().in_current_span().await;
        });
        let panicked = std::panic::catch_unwind(|| {
            std::panic::set_hook(Box::new(|_| ()));
            serve("b", 1);
            panic!("as expected");
        });
        assert!(panicked.is_err());
        stagetrace::set_level(3);
        assert_eq!(stagetrace::level(), 0);
        assert!(stagetrace::stats().is_none() && stagetrace::child_env().is_empty());
        assert!(!stagetrace::status().running);
        let error = stagetrace::flush(Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.to_string(), "tracing is not running");
    })
    .run();
    assert_eq!(ran.stderr, "");
    assert_eq!(std::fs::read_dir(ran.dir()).unwrap().count(), 0);
}

#[test]
fn after_shutdown_it_is_as_before_init() {
    let ran = alone(|| {
        let trace = stagetrace_tests::start();
        let (open, request) = (span!("open"), Generate::begun("open"));
        serve("a", 0);
        let stats = trace.shutdown(Duration::from_secs(10)).unwrap();
        assert_eq!((stats.handed, stats.open), (4, 2));
        // What is open may still end; nobody writes it.
        open.in_scope(|| decode(&request));
        drop(open);
        request.finish(Outcome::Ok);
        serve("b", 1);
        for n in 0..100_000 {
            work(n);
            drop(Generate::begun("c"));
        }
        assert!(stagetrace::stats().is_none() && !stagetrace::status().running);
        assert!(stagetrace::flush(Duration::from_secs(1)).is_err());
        stagetrace::set_level(3);
        assert_eq!(stagetrace::level(), 0);
    })
    .run();
    assert_eq!(
        ran.spans().tree(&[]),
        "generate\n  scheduler_dispatch\n    gpu_forward\n    decode\n"
    );
    assert_eq!(ran.stderr, "");
}
