//! How the recorder itself is, under the names that OpenTelemetry gives to an SDK's own metrics. The same numbers as
//! [`stats`](crate::stats) gives, read when somebody collects.

use crate::collect::ERROR_TYPE;
use crate::export::{REQUEST, on_each_export};
use crate::init;
use crate::stats::{SinkStatus, Stats};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One collection asks several times; the recorder is asked once.
const FRESH: Duration = Duration::from_millis(50);

const COMPONENT: &str = "otel.component.name";
const COMPONENT_TYPE: &str = "otel.component.type";
/// What the specification calls a span that found no room.
const QUEUE_FULL: &str = "queue_full";

/// Sinks that take at once what comes to them.
const WITHOUT_QUEUE: [&str; 2] = ["jsonl", super::NAME];

/// Makes the instruments. What is observed goes on being so after tracing was stopped.
pub(super) fn observe(meter: &Meter) {
    let counters = Arc::new(Counters::default());
    counter(meter, &counters, "otel.sdk.span.started", "{span}", "Spans begun.", |stats, it| {
        it.observe(stats.begun, &[]);
    });
    level(meter, &counters, "otel.sdk.span.live", "Spans begun and not ended.", |stats, it| {
        it.observe(stats.open as i64, &[]);
    });
    counter(
        meter,
        &counters,
        "otel.sdk.processor.span.processed",
        "{span}",
        "Spans handed to the exporters, or dropped before.",
        |stats, it| {
            let [kind, name] = recorder();
            it.observe(stats.handed, &[kind.clone(), name.clone()]);
            let dropped = stats.dropped_spans();
            it.observe(dropped, &[kind, name, KeyValue::new(ERROR_TYPE, QUEUE_FULL)]);
        },
    );
    level(
        meter,
        &counters,
        "otel.sdk.processor.span.queue.size",
        "Spans that wait to be exported.",
        |stats, it| {
            it.observe(stats.waiting as i64, &recorder());
            stats
                .sinks
                .iter()
                .for_each(|sink| it.observe(sink.queued as i64, &component(sink.name)));
        },
    );
    level(
        meter,
        &counters,
        "otel.sdk.processor.span.queue.capacity",
        "Spans that may wait for an exporter at most, where they are bounded by number.",
        |stats, it| {
            let Some(capacity) = init::queue_capacity() else { return };
            let queues = stats.sinks.iter().filter(|sink| !WITHOUT_QUEUE.contains(&sink.name));
            queues.for_each(|sink| it.observe(capacity as i64, &component(sink.name)));
        },
    );
    counter(
        meter,
        &counters,
        "otel.sdk.exporter.span.exported",
        "{span}",
        "Spans whose export has finished, well or not.",
        |stats, it| stats.sinks.iter().for_each(|sink| exported(sink, it)),
    );
    counter(
        meter,
        &counters,
        "stagetrace.dropped",
        "{record}",
        "Spans, events, links and late attributes that found no room, by cause.",
        |stats, it| {
            for (cause, count) in &stats.dropped {
                it.observe(*count, &[KeyValue::new(ERROR_TYPE, cause.name())]);
            }
        },
    );
    level(
        meter,
        &counters,
        "stagetrace.outbox.size",
        "Spans that wait on disk until an endpoint takes them.",
        |stats, it| {
            let queues = stats.sinks.iter().filter(|sink| !WITHOUT_QUEUE.contains(&sink.name));
            queues.for_each(|sink| it.observe(sink.outbox as i64, &component(sink.name)));
        },
    );
    requests(meter);
    operations(meter);
}

/// How long exports take.
fn operations(meter: &Meter) {
    // Those that HTTP's conventions advise for requests.
    const BOUNDS: [f64; 14] =
        [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
    let duration = meter.f64_histogram("otel.sdk.exporter.operation.duration");
    let duration = duration.with_description("How long the export of a batch takes.");
    let duration = duration.with_unit("s").with_boundaries(BOUNDS.to_vec()).build();
    on_each_export(move |operation| {
        let [kind, name] = component(operation.sink);
        let seconds = operation.took.as_secs_f64();
        match operation.error {
            Some(error) => {
                duration.record(seconds, &[kind, name, KeyValue::new(ERROR_TYPE, error)])
            }
            None => duration.record(seconds, &[kind, name]),
        }
    });
}

/// What became of a sink's spans, by cause.
fn exported(sink: &SinkStatus, it: &dyn AsyncInstrument<u64>) {
    let [kind, name] = component(sink.name);
    it.observe(sink.exported, &[kind.clone(), name.clone()]);
    let named: u64 = sink.failed_by.iter().map(|(_, count)| count).sum();
    let unnamed = ("_OTHER", sink.failed.saturating_sub(named));
    for (cause, count) in sink.failed_by.iter().copied().chain([unnamed]) {
        if count > 0 {
            it.observe(count, &[kind.clone(), name.clone(), KeyValue::new(ERROR_TYPE, cause)]);
        }
    }
}

fn recorder() -> [KeyValue; 2] {
    [
        KeyValue::new(COMPONENT_TYPE, "stagetrace.recorder"),
        KeyValue::new(COMPONENT, "stagetrace.recorder/0"),
    ]
}

fn component(sink: &'static str) -> [KeyValue; 2] {
    [KeyValue::new(COMPONENT_TYPE, "stagetrace.sink"), KeyValue::new(COMPONENT, sink)]
}

/// Requests in flight. A name that was seen once is 0 later, not absent.
fn requests(meter: &Meter) {
    let seen = Mutex::new(BTreeSet::new());
    let active = meter.i64_observable_up_down_counter("stagetrace.request.active");
    let active = active.with_description("Requests begun and not finished.").with_unit("{request}");
    let active = active.with_callback(move |it| {
        let open = init::open_requests();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(open.iter().map(|(name, _)| *name));
        for name in &*seen {
            let count = open.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count);
            it.observe(count as i64, &[KeyValue::new(REQUEST, *name)]);
        }
    });
    active.build();
}

type Observe<T> = fn(&Stats, &dyn AsyncInstrument<T>);

/// A number that only grows.
fn counter(
    meter: &Meter,
    counters: &Arc<Counters>,
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    observe: Observe<u64>,
) {
    let counters = Arc::clone(counters);
    let counter = meter.u64_observable_counter(name).with_description(what).with_unit(unit);
    counter.with_callback(move |it| counters.with(|stats| observe(stats, it))).build();
}

/// A number of spans that rises and falls.
fn level(
    meter: &Meter,
    counters: &Arc<Counters>,
    name: &'static str,
    what: &'static str,
    observe: Observe<i64>,
) {
    let counters = Arc::clone(counters);
    let level = meter.i64_observable_up_down_counter(name);
    let level = level.with_description(what).with_unit("{span}");
    level.with_callback(move |it| counters.with(|stats| observe(stats, it))).build();
}

/// The recorder's counters as they were a moment ago, or at the end.
#[derive(Default)]
struct Counters(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// When the recorder was asked, whether or not it answered: one that is stuck costs a collection one wait.
    asked: Option<Instant>,
    stats: Option<Stats>,
}

impl Counters {
    /// Nothing before the first answer; the one before if none comes.
    fn with(&self, observe: impl FnOnce(&Stats)) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = init::last_stats() {
            known.stats = Some(last);
        } else if known.asked.is_none_or(|at| at.elapsed() >= FRESH) {
            let answer = init::stats();
            known.stats = answer.or(known.stats.take());
            known.asked = Some(Instant::now());
        }
        if let Some(stats) = &known.stats {
            observe(stats);
        }
    }
}
