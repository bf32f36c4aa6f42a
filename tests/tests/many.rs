//! Many requests at once: all of them open, then all of them exported, in little memory.

use stagetrace::{Outcome, Traced, attach, event};
use stagetrace::{Position, TraceState};
use stagetrace_tests::pipeline::{Generate, decode, dispatch};
use stagetrace_tests::{Spans, alone, flushed, resident_bytes, start};
use std::collections::HashSet;
use std::time::Duration;

const REQUESTS: usize = 10_000;
/// Requests that arrive together; then a millisecond passes.
const BURST: usize = 100;

/// Begins so many requests as they arrive: many, but not all at the same instant.
fn arrive(requests: usize) -> Vec<Generate> {
    let mut all = Vec::with_capacity(requests);
    for number in 0..requests {
        all.push(Generate::begun(&format!("request-{number}")));
        if number % BURST == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    all
}

fn assert_each_once(spans: &Spans, requests: usize) {
    let roots = spans.all("generate");
    let ids: HashSet<_> = roots.iter().map(|root| root.span_id).collect();
    let traces: HashSet<_> = roots.iter().map(|root| root.trace_id).collect();
    let names: HashSet<_> = roots
        .iter()
        .map(|root| root.attribute("stagetrace.request.id").unwrap().as_str())
        .collect();
    let counts = (roots.len(), ids.len(), traces.len(), names.len());
    assert_eq!(counts, (requests, requests, requests, requests));
}

#[test]
fn ten_thousand_requests_are_in_flight_in_a_few_mebibytes() {
    let spans = alone(|| {
        let trace = start();
        let empty = flushed().memory;
        let requests = arrive(REQUESTS);
        let stats = flushed();
        assert_eq!((stats.open, stats.dropped_spans()), (REQUESTS as u64, 0));
        let grown = stats.memory - empty;
        // The slots, and free chunks kept ahead of need.
        assert!(grown <= 3 << 20, "{grown} bytes more than {empty}");
        for request in &requests {
            decode(request);
            request.finish(Outcome::Ok);
            if request.id.ends_with("00") {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.begun, stats.open), (2 * REQUESTS as u64, 0));
        assert_eq!((stats.handed, stats.dropped_spans()), (2 * REQUESTS as u64, 0));
    })
    .run()
    .spans();
    assert_each_once(&spans, REQUESTS);
    assert_eq!(spans.all("decode").len(), REQUESTS);
    let key = "stagetrace.stage.decode.count";
    assert!(spans.all("generate").iter().all(|root| root.attribute(key) == Some(&1_i64.into())));
}

#[test]
fn requests_that_arrive_after_a_quiet_time_are_not_lost() {
    let spans = alone(|| {
        let trace = start();
        drop(Generate::begun("first"));
        // The collector has nothing to do and looks less and less often.
        std::thread::sleep(Duration::from_millis(2500));
        let requests = arrive(REQUESTS);
        drop(requests);
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!(stats.dropped_spans(), 0);
    })
    .run()
    .spans();
    assert_each_once(&spans, REQUESTS + 1);
}

#[test]
fn wave_after_wave_takes_no_more_memory_than_the_first() {
    alone(|| {
        let trace = start();
        let mut memory = Vec::new();
        for _ in 0..7 {
            let requests = arrive(2000);
            for request in &requests {
                dispatch(request, || ());
            }
            drop(requests);
            memory.push((flushed().memory, resident_bytes()));
        }
        let (pool, resident) = (memory[6].0 - memory[2].0, memory[6].1.saturating_sub(memory[2].1));
        assert!(pool <= 1 << 20, "{memory:?}");
        assert!(resident <= 4 << 20, "{memory:?}");
        assert_eq!(trace.shutdown(Duration::from_secs(20)).unwrap().dropped_spans(), 0);
    })
    .run();
}

#[test]
fn what_is_said_about_spans_of_other_processes_is_not_kept() {
    alone(|| {
        let trace = start();
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-";
        let mut warm = 0;
        for number in 1..=120_000_u32 {
            let header = format!("{traceparent}{number:016x}-01");
            let state = TraceState::from_headers([("traceparent", &*header)]);
            let _attached = attach(position(&state));
            event!("nobody here records this span", "number" = number);
            if number % 1000 == 0 {
                stagetrace::stats();
            }
            if number == 20_000 {
                warm = resident_bytes();
            }
        }
        let grown = resident_bytes().saturating_sub(warm);
        assert!(grown < 16 << 20, "{grown} bytes");
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        let counted = stats.without_span + stats.orphaned_details;
        assert_eq!(counted, 120_000, "without span {}", stats.without_span);
    })
    .run();
}

fn position(state: &TraceState) -> Position {
    stagetrace::Carrier::position(state)
}
