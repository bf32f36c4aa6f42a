//! A plain span becomes metrics without an allocation.
#![cfg(all(feature = "metrics", not(stagetrace_off)))]
#![expect(dead_code, reason = "of the meters one is used")]

#[path = "support/allocations.rs"]
mod allocations;
#[path = "metrics/meters.rs"]
mod meters;

use allocations::ALLOCATIONS;
use stagetrace::{TraceConfig, init_with, metrics, span, stage};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static RECORDED: AtomicUsize = AtomicUsize::new(0);

#[stage("step", attrs("number" = _number))]
fn step(_number: usize) {}

const SPANS: usize = 5_000;

/// Records so many spans below one, and waits until a value was recorded for each.
fn burst() {
    let expected = RECORDED.load(Ordering::Relaxed) + SPANS + 1;
    span!("root").in_scope(|| {
        for number in 0..SPANS {
            step(number);
            // The collector keeps up, so that nothing need grow.
            if number % 500 == 0 {
                std::thread::sleep(Duration::from_millis(4));
            }
        }
    });
    let deadline = Instant::now() + Duration::from_secs(20);
    while RECORDED.load(Ordering::Relaxed) < expected {
        assert!(Instant::now() < deadline, "the spans are not recorded");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("metrics_allocations");
    let config = TraceConfig::new().output_dir(dir).jsonl(false);
    let meter = meters::meter(|_, _| {
        RECORDED.fetch_add(1, Ordering::Relaxed);
    });
    let trace = init_with(config, [metrics::exporter(meter)]).unwrap();
    burst();
    burst();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    burst();
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(allocations < SPANS / 100, "{allocations} allocations for {SPANS} spans");
    drop(trace);
}
