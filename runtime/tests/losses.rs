//! What is lost is told to every exporter: before the collector to all, behind it to the one whose loss it was.
#![cfg(all(feature = "otel", not(stagetrace_off)))]

use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use stagetrace::{DropCause, TraceConfig, stage};
use stagetrace::{init_with, otel};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Keeps what it is given; refuses it while told so.
#[derive(Clone, Debug, Default)]
struct Keeping {
    refuses: Arc<AtomicBool>,
    spans: Arc<Mutex<Vec<SpanData>>>,
}

impl SpanExporter for Keeping {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(OTelSdkError::InternalFailure("told to refuse".into()));
        }
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

impl Keeping {
    /// How many spans of the program it has.
    fn steps(&self) -> u64 {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.iter().filter(|span| span.name == "step").count() as u64
    }

    /// What the reports of losses that it has say of this, all together.
    fn reported(&self, key: &str) -> u64 {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let losses = spans.iter().filter(|span| span.name == "stagetrace.loss");
        let counts = losses.flat_map(|span| &span.attributes).filter(|a| a.key.as_str() == key);
        counts.filter_map(|count| count.value.as_str().parse::<u64>().ok()).sum()
    }
}

#[stage("step")]
fn step() {}

fn wait_until(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !what() {
        assert!(Instant::now() < deadline, "it does not come to pass");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn exporters_are_told_of_every_loss() {
    let (good, bad) = (Keeping::default(), Keeping::default());
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("losses");
    let config = TraceConfig::new().output_dir(dir).memory_limit(1 << 20).batching(|batching| {
        batching.schedule_delay = Duration::from_millis(20);
    });
    let exporters = [otel::exporter("good", good.clone()), otel::exporter("bad", bad.clone())];
    let trace = init_with(config, exporters).unwrap();

    // Of one sink: what it refuses is its loss alone. It is told when it is well again.
    bad.refuses.store(true, Ordering::SeqCst);
    (0..100).for_each(|_| step());
    let failed = || {
        let stats = stagetrace::stats();
        let sinks = stats.map(|stats| stats.sinks).unwrap_or_default();
        sinks.iter().find(|sink| sink.name == "bad").map_or(0, |sink| sink.failed)
    };
    wait_until(|| failed() >= 100);
    bad.refuses.store(false, Ordering::SeqCst);
    step();
    wait_until(|| bad.steps() >= 1);
    // Reports come at most once a second.
    wait_until(|| {
        step();
        bad.reported("stagetrace.failed") >= 100
    });
    assert_eq!(bad.reported("stagetrace.failed"), failed());
    assert_eq!(good.reported("stagetrace.failed"), 0);

    // A flush says what was lost since the one before.
    let error = stagetrace::flush(Duration::from_secs(20)).expect_err("an exporter lost spans");
    assert!(error.to_string().starts_with("bad: lost 100 spans"), "{error}");

    // Of the pool: all are told.
    wait_until(|| {
        (0..50_000).for_each(|_| step());
        stagetrace::stats().is_some_and(|stats| stats.dropped(DropCause::PoolFull) > 0)
    });
    let stats = trace.shutdown(Duration::from_secs(20)).unwrap_or_else(|error| panic!("{error}"));
    let lost = stats.dropped(DropCause::PoolFull);
    for exporter in [&good, &bad] {
        assert_eq!(exporter.reported("stagetrace.dropped.pool_full"), lost);
    }
    assert_eq!(good.steps(), stats.handed);
    assert_eq!(stats.begun, stats.handed + lost);
    for sink in &stats.sinks {
        assert_eq!(
            sink.handed,
            sink.queued + sink.outbox + sink.exported + sink.failed,
            "{sink:?}"
        );
    }
}
