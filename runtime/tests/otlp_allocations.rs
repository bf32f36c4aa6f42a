//! From the program's thread to encoded bytes, nothing is allocated once it has run for a while.
#![cfg(not(stagetrace_off))]

#[path = "support/allocations.rs"]
mod allocations;

use allocations::ALLOCATIONS;
use stagetrace::{Exporter, Outcome, TraceConfig, TraceState, Traced, init_with, stage};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static SENT: AtomicUsize = AtomicUsize::new(0);

#[derive(Traced, Default)]
#[traced(name = "request")]
struct Request {
    #[traced(id)]
    id: u64,
    #[traced(state)]
    trace: TraceState,
}

#[stage("step", request, attrs("number" = number, "text" = "constant"))]
fn step(request: &Request, number: u64) {
    std::hint::black_box((request.id, number));
}

const SPANS: usize = 5_000;

/// Records so many spans, roots included, and waits until as many bytes were sent as by `expected`. Gives how many.
fn burst(expected: Option<usize>) -> usize {
    let before = SENT.load(Ordering::Relaxed);
    // Wide enough for the number to take as many bytes in each.
    for id in 1 << 40..(1 << 40) + SPANS as u64 / 100 {
        let mut request = Request { id, ..Request::default() };
        request.begin(None);
        (1 << 40..(1 << 40) + 99).for_each(|number| step(&request, number));
        request.finish(Outcome::Ok);
        // The collector keeps up, so that nothing need grow.
        if id % 5 == 0 {
            std::thread::sleep(Duration::from_millis(4));
        }
    }
    let sent = || SENT.load(Ordering::Relaxed) - before;
    match expected {
        None => drop(stagetrace::flush(Duration::from_secs(20)).expect("all is sent")),
        Some(expected) => {
            let deadline = Instant::now() + Duration::from_secs(20);
            // Batches are of other sizes each time, and each has a head.
            while sent() < expected - expected / 50 {
                assert!(Instant::now() < deadline, "{} of {expected} bytes were sent", sent());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    sent()
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("otlp_allocations");
    let config = TraceConfig::new().output_dir(dir).service_name("allocations");
    let config = config.batching(|batching| batching.schedule_delay = Duration::from_millis(20));
    let exporter = Exporter::otlp("counting", |request: &[u8]| {
        SENT.fetch_add(request.len(), Ordering::Relaxed);
        Ok::<_, Infallible>(())
    });
    let trace = init_with(config, [exporter]).expect("the configuration is right");
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > 0, "the count counts");
    for _ in 0..4 {
        burst(None);
    }
    let expected = burst(None);

    let flushed = || stagetrace::flush(Duration::from_secs(20)).expect("all is sent");
    let dropped = || flushed().dropped_spans();
    let dropped_before = dropped();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    burst(Some(expected));
    let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
    // What happens once a second, or when more batches wait than ever before, is not of the spans.
    assert!(allocated < SPANS / 50, "{allocated} allocations for {SPANS} spans");
    assert_eq!(dropped(), dropped_before, "what is dropped costs nothing either");
    trace.shutdown(Duration::from_secs(20)).expect("all is sent");
}
