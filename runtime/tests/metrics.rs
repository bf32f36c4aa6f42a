//! Metrics from spans: that they say what the spans say, and that what takes them harms nobody.
#![cfg(all(feature = "metrics", not(stagetrace_off)))]

#[path = "metrics/collected.rs"]
mod collected;
#[path = "metrics/meters.rs"]
mod meters;
#[path = "metrics/pushed.rs"]
mod pushed;
mod support;
#[path = "metrics/work.rs"]
mod work;

use collected::{Collecting, Labels, Series, histogram, sum, units};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use stagetrace::{DropCause, Exporter, Judged, Outcome, Traced, init_with, metrics, span};
use stagetrace_wire::span::{Span, Value};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{LONG, config, flush, problems, scenarios, sink, steps, wait_until, written};
use work::{Generate, attention, failing, work};

const STEPS: [f64; 19] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 20.0, 50.0, 100.0,
];
const DOUBLING: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The text of an attribute.
fn text<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    match span.attributes.iter().find(|(other, _)| other == key) {
        Some((_, Value::Str(text))) => Some(text),
        _ => None,
    }
}

fn seconds(span: &Span) -> f64 {
    (span.end_unix_nano - span.start_unix_nano) as f64 / 1e9
}

/// The attributes under which a span counts.
fn labels(span: &Span, name: &str) -> Labels {
    let ending = ["error.type", "stagetrace.outcome"];
    let ending = ending.iter().filter_map(|key| Some(format!("{key}={}", text(span, key)?)));
    let mut labels: Labels = ending.chain([format!("{name}={}", span.name)]).collect();
    labels.sort();
    labels
}

/// The series that these values make.
fn series(values: impl IntoIterator<Item = (Labels, f64)>) -> BTreeMap<Labels, Series> {
    let mut all = BTreeMap::new();
    for (labels, value) in values {
        let series = all.entry(labels).or_insert_with(|| Series {
            bounds: STEPS.to_vec(),
            buckets: vec![0; STEPS.len() + 1],
            count: 0,
            sum: 0.0,
        });
        series.buckets[STEPS.iter().filter(|bound| **bound < value).count()] += 1;
        series.count += 1;
        series.sum += value;
    }
    all
}

/// That they are the same, but for the order in which sums were added up.
fn assert_same(metrics: &ResourceMetrics, name: &str, expected: &BTreeMap<Labels, Series>) {
    let actual = histogram(metrics, name);
    let names = |all: &BTreeMap<Labels, Series>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&actual), names(expected), "{name}");
    for (labels, expected) in expected {
        let actual = &actual[labels];
        assert!((actual.sum - expected.sum).abs() < 1e-9, "{labels:?}: {actual:?} {expected:?}");
        assert_eq!(actual, &Series { sum: actual.sum, ..expected.clone() }, "{name} {labels:?}");
    }
}

/// Labels in the form in which they are collected.
fn of(labels: &[(&str, &str)]) -> Labels {
    let mut labels: Labels = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.sort();
    labels
}

/// An exporter that lets each batch go.
fn to_nowhere() -> Exporter {
    Exporter::otlp("nowhere", |_: &[u8]| Ok::<(), Infallible>(()))
}

scenarios! {
    fn the_metrics_say_what_the_spans_say() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        work();
        flush(LONG).unwrap();
        let (metrics, spans) = (collecting.collect(), written(&trace));
        let (roots, stages): (Vec<_>, Vec<_>) =
            spans.iter().partition(|span| text(span, "stagetrace.request.id").is_some());
        assert_eq!((roots.len(), stages.len()), (20, 20 * 4 + 501));

        let stages = stages.iter().map(|span| (labels(span, "stagetrace.stage"), seconds(span)));
        let stages = series(stages);
        // Successes of five names; a failed attention, a panicked decode.
        assert_eq!(stages.len(), 7, "{:?}", stages.keys());
        assert_same(&metrics, "stagetrace.stage.duration", &stages);

        let requests =
            roots.iter().map(|span| (labels(span, "stagetrace.request.name"), seconds(span)));
        let requests = series(requests);
        // Ok, error, panic, and dropped with the worst outcome of their stages.
        assert!(requests.len() >= 3, "{:?}", requests.keys());
        assert_same(&metrics, "stagetrace.request.duration", &requests);

        let shares = roots.iter().flat_map(|root| {
            let durations = root.attributes.iter().filter_map(|(key, value)| {
                let stage = key.strip_prefix("stagetrace.stage.")?.strip_suffix(".duration")?;
                let Value::F64(seconds) = *value else { panic!("{key} is {value:?}") };
                let labels =
                    [("stagetrace.request.name", "generate"), ("stagetrace.stage", stage)];
                Some((of(&labels), seconds))
            });
            durations.collect::<Vec<_>>()
        });
        let shares = series(shares);
        assert_eq!(shares.values().map(|series| series.count).collect::<Vec<_>>(), [20; 3]);
        assert_same(&metrics, "stagetrace.request.stage.duration", &shares);
    }

    fn what_ends_is_measured_without_a_flush() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        steps(0, 3);
        wait_until(|| {
            let series = histogram(&collecting.collect(), "stagetrace.stage.duration");
            series.values().map(|series| series.count).eq([3])
        });
        drop(trace);
    }

    fn requests_in_flight_are_counted_until_they_finish() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        let no_request = span!("alone");
        let mut open: Vec<_> = (0..300).map(Generate::new).collect();
        open.iter_mut().for_each(|request| request.begin(None));
        let active = || sum(&collecting.collect(), "stagetrace.request.active");
        let generate = of(&[("stagetrace.request.name", "generate")]);
        assert_eq!(active(), BTreeMap::from([(generate.clone(), 300)]));
        open[7].finish(Outcome::Ok);
        open.truncate(10);
        assert_eq!(active(), BTreeMap::from([(generate.clone(), 9)]));
        drop(open);
        assert_eq!(active(), BTreeMap::from([(generate, 0)]), "it falls to 0 and does not vanish");
        drop((no_request, trace));
    }

    fn requests_to_models_are_measured_as_the_conventions_say() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        let finish = |mut request: Generate, outcome: Judged, at_end: fn(&mut Generate)| {
            request.begin(None);
            std::thread::sleep(Duration::from_millis(20));
            at_end(&mut request);
            request.finish(outcome);
        };
        let streamed = |request: &mut Generate| {
            (request.first_chunk, request.tokens) = (Some(0.0125), 5);
        };
        finish(Generate::chat(0), Judged::OK, streamed);
        finish(Generate::chat(1), Judged::OK, |_| ());
        finish(Generate::chat(2), Judged::error("overloaded"), streamed);
        let one_token = |request: &mut Generate| {
            (request.first_chunk, request.tokens) = (Some(0.0005), 1);
        };
        finish(Generate::chat(3), Judged::OK, one_token);
        let nonsense = |request: &mut Generate| {
            (request.first_chunk, request.tokens) = (Some(1e9), 7);
        };
        finish(Generate::chat(4), Judged::OK, nonsense);
        finish(Generate::new(5), Judged::OK, streamed);
        flush(LONG).unwrap();
        let (metrics, spans) = (collecting.collect(), written(&trace));

        let chat = [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "stagetrace"),
            ("gen_ai.request.model", "tiny"),
        ];
        let failed = [&chat[..], &[("error.type", "overloaded")]].concat();
        let duration = histogram(&metrics, "gen_ai.server.request.duration");
        let counts = duration.iter().map(|(labels, series)| (labels.clone(), series.count));
        let expected = BTreeMap::from([(of(&chat), 4), (of(&failed), 1)]);
        assert_eq!(counts.collect::<BTreeMap<_, _>>(), expected);
        assert!(duration.values().all(|series| series.bounds == DOUBLING));

        let first = histogram(&metrics, "gen_ai.server.time_to_first_token");
        let first = &first[&of(&chat)];
        let bounds = [
            0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
            10.0,
        ];
        assert_eq!(first.bounds, bounds);
        assert_eq!((first.count, first.sum), (2, 0.0125 + 0.0005));
        assert_eq!((first.buckets[0], first.buckets[3]), (1, 1));

        let per_token = histogram(&metrics, "gen_ai.server.time_per_output_token");
        let per_token = &per_token[&of(&chat)];
        let bounds = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];
        assert_eq!(per_token.bounds, bounds);
        let is_streamed = |span: &&Span| text(span, "stagetrace.request.id") == Some("request-0");
        let streamed = spans.iter().find(is_streamed).unwrap();
        let expected = (seconds(streamed) - 0.0125) / 4.0;
        assert_eq!((per_token.count, per_token.sum), (1, expected));
    }

    fn what_differs_per_request_is_no_attribute_of_a_metric() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        for number in 0..5000 {
            let mut request = Generate::chat(number);
            request.begin(None);
            let _ = attention(&request, 1);
            request.finish(Outcome::Ok);
        }
        flush(LONG).unwrap();
        let metrics = collecting.collect();
        for (name, unit) in units(&metrics) {
            if unit == "s" {
                let series = histogram(&metrics, &name);
                assert_eq!(series.len(), 1, "{name}: {:?}", series.keys());
                assert_eq!(series.values().next().unwrap().count, 5000, "{name}");
            }
        }
        drop(trace);
    }

    fn kinds_of_failures_are_told_apart_up_to_a_bound() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        for number in 0..100 {
            failing(Box::leak(format!("kind-{number}").into()));
        }
        flush(LONG).unwrap();
        let series = histogram(&collecting.collect(), "stagetrace.stage.duration");
        assert_eq!(series.len(), 33);
        let others = [
            ("stagetrace.stage", "failing"),
            ("stagetrace.outcome", "error"),
            ("error.type", "_OTHER"),
        ];
        assert_eq!(series[&of(&others)].count, 68);
        drop(trace);
    }

    fn the_recorder_reports_what_stats_report() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        work();
        let open = span!("open");
        let stats = flush(LONG).unwrap();
        let metrics = collecting.collect();
        let count = |name, labels: &[_]| sum(&metrics, name)[&of(labels)] as u64;
        assert_eq!(count("otel.sdk.span.started", &[]), stats.begun);
        assert_eq!((count("otel.sdk.span.live", &[]), stats.open), (1, 1));
        let recorder = [
            ("otel.component.type", "stagetrace.recorder"),
            ("otel.component.name", "stagetrace.recorder/0"),
        ];
        assert_eq!(count("otel.sdk.processor.span.processed", &recorder), stats.handed);
        let dropped = [&recorder[..], &[("error.type", "queue_full")]].concat();
        assert_eq!(count("otel.sdk.processor.span.processed", &dropped), 0);
        assert_eq!(count("otel.sdk.processor.span.queue.size", &recorder), 0);
        for name in ["jsonl", "metrics"] {
            let sink = [("otel.component.type", "stagetrace.sink"), ("otel.component.name", name)];
            assert_eq!(count("otel.sdk.exporter.span.exported", &sink), stats.handed, "{name}");
            assert_eq!(count("otel.sdk.processor.span.queue.size", &sink), 0, "{name}");
        }
        assert_eq!(count("stagetrace.dropped", &[("error.type", "pool_full")]), 0);
        drop(open);

        let last = trace.shutdown(LONG).unwrap();
        let metrics = collecting.collect();
        let started = &sum(&metrics, "otel.sdk.span.started")[&of(&[])];
        assert_eq!(*started as u64, last.begun, "the last numbers stay after the end");
        assert_eq!(sum(&metrics, "otel.sdk.span.live")[&of(&[])], 0);
    }

    fn a_recorder_that_is_stuck_costs_a_collection_one_wait() {
        static IS_STUCK: Mutex<()> = Mutex::new(());
        static REACHED: AtomicBool = AtomicBool::new(false);
        let collecting = Collecting::new();
        let blocking = meters::meter(|_, _| {
            REACHED.store(true, Ordering::Release);
            drop(IS_STUCK.lock());
        });
        let stuck = IS_STUCK.lock();
        let exporters = [collecting.exporter(), metrics::exporter(blocking)];
        let trace = init_with(config(), exporters).unwrap();
        steps(0, 1);
        wait_until(|| REACHED.load(Ordering::Acquire));
        let start = Instant::now();
        collecting.collect();
        assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
        drop(stuck);
        flush(LONG).unwrap();
        wait_until(|| units(&collecting.collect()).contains_key("otel.sdk.span.started"));
        drop(trace);
    }

    fn how_long_exports_take_is_measured_by_what_they_failed_with() {
        let collecting = Collecting::new();
        let mut exports = 0;
        let flaky = Exporter::otlp("flaky", move |_: &[u8]| {
            exports += 1;
            std::thread::sleep(Duration::from_millis(20));
            if exports == 2 { Err("away") } else { Ok(()) }
        });
        let trace = init_with(config(), [collecting.exporter(), flaky]).unwrap();
        for number in 0..3 {
            steps(number, 1);
            assert_eq!(flush(LONG).is_ok(), number != 1);
        }
        let durations = histogram(&collecting.collect(), "otel.sdk.exporter.operation.duration");
        let flaky = [("otel.component.type", "stagetrace.sink"), ("otel.component.name", "flaky")];
        let failed = [&flaky[..], &[("error.type", "export_failed")]].concat();
        assert_eq!(durations.len(), 2, "{durations:?}");
        for (labels, count) in [(of(&flaky), 2), (of(&failed), 1)] {
            let Series { count: counted, sum, bounds, .. } = &durations[&labels];
            assert_eq!((*counted, bounds.first()), (count, Some(&0.005)));
            assert!(*sum >= 0.02 * count as f64 && *sum < 5.0, "{durations:?}");
        }
        drop(trace);
    }

    fn a_queue_that_is_bounded_by_number_tells_its_capacity() {
        let collecting = Collecting::new();
        let config = config().batching(|batching| batching.max_queue_size = Some(700));
        let trace = init_with(config, [collecting.exporter(), to_nowhere()]).unwrap();
        flush(LONG).unwrap();
        let capacity = sum(&collecting.collect(), "otel.sdk.processor.span.queue.capacity");
        let nowhere =
            [("otel.component.type", "stagetrace.sink"), ("otel.component.name", "nowhere")];
        assert_eq!(capacity, BTreeMap::from([(of(&nowhere), 700)]));
        drop(trace);
    }

    fn losses_are_counted_by_cause_and_their_report_is_no_stage() {
        let collecting = Collecting::new();
        let config = config().memory_limit(1 << 20);
        let trace = init_with(config, [collecting.exporter()]).unwrap();
        wait_until(|| {
            steps(0, 50_000);
            stagetrace::stats().is_some_and(|stats| stats.dropped_spans() > 0)
        });
        let stats = trace.shutdown(LONG).unwrap();
        let metrics = collecting.collect();
        let lost = stats.dropped(DropCause::PoolFull);
        let dropped = sum(&metrics, "stagetrace.dropped");
        assert_eq!(dropped[&of(&[("error.type", "pool_full")])] as u64, lost);
        let processed = sum(&metrics, "otel.sdk.processor.span.processed");
        let counts: Vec<_> = processed.into_values().map(|count| count as u64).collect();
        assert_eq!(counts, [lost, stats.handed], "with error.type first");
        let stages = histogram(&metrics, "stagetrace.stage.duration");
        assert_eq!(stages.keys().collect::<Vec<_>>(), [&of(&[("stagetrace.stage", "step")])]);
    }

    fn every_metric_has_the_unit_that_is_documented() {
        let collecting = Collecting::new();
        let config = config().batching(|batching| batching.max_queue_size = Some(700));
        let trace = init_with(config, [collecting.exporter(), to_nowhere()]).unwrap();
        let mut request = Generate::chat(0);
        request.begin(None);
        let _ = attention(&request, 1);
        (request.first_chunk, request.tokens) = (Some(0.0), 9);
        request.finish(Outcome::Ok);
        let mut open = Generate::new(1);
        open.begin(None);
        flush(LONG).unwrap();
        let documented = include_str!("../../docs/metrics.md");
        let rows = documented.lines().filter_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            let unit = cells.next()?.split('`').nth(1)?;
            Some((name.to_owned(), unit.to_owned()))
        });
        assert_eq!(units(&collecting.collect()), rows.collect());
        drop(trace);
    }

    fn a_meter_that_panics_costs_its_metrics_and_nothing_else() {
        let calls = AtomicU64::new(0);
        let meter = meters::meter(move |_, _| {
            assert!(calls.fetch_add(1, Ordering::Relaxed) >= 3, "a bad meter");
        });
        let trace = init_with(config(), [metrics::exporter(meter)]).unwrap();
        let mut flushed = Vec::new();
        for round in 0..5 {
            steps(10 * round, 10);
            flushed.extend(problems(flush(LONG)));
        }
        assert!(!flushed.is_empty() && flushed.iter().all(|(sink, _)| *sink == "metrics"));
        let status = sink("metrics");
        assert_eq!(status.panics, 3);
        assert_eq!(status.failing, None, "it is well again");
        assert_eq!(status.failed_by, [("panic", status.failed)]);
        assert!(status.failed >= 3 && status.exported > 0, "{status:?}");
        assert_eq!(written(&trace).len(), 50 + losses(&written(&trace)));
        let said = stagetrace::status().complaints;
        assert_eq!(said.iter().filter(|line| line.contains("the meter panicked")).count(), 1);
    }

    fn a_meter_that_makes_no_instruments_costs_its_metrics_and_nothing_else() {
        let trace = init_with(config(), [metrics::exporter(meters::without_instruments())]).unwrap();
        steps(0, 10);
        let lost = "lost 10 spans (panic 10); the meter panicked".to_owned();
        assert_eq!(problems(flush(LONG)), [("metrics", lost)]);
        assert_eq!(written(&trace).len(), 10);
    }

    fn values_of_a_request_are_recorded_inside_its_trace() {
        let (meter, noted) = meters::noting();
        let trace = init_with(config(), [metrics::exporter(meter)]).unwrap();
        let mut request = Generate::chat(0);
        request.begin(None);
        let _ = attention(&request, 1);
        request.finish(Outcome::Ok);
        flush(LONG).unwrap();
        let spans = written(&trace);
        let root = spans.iter().find(|span| span.name == "generate").unwrap();
        let noted = noted.lock().unwrap();
        let of_request = noted.iter().filter(|(name, _)| name != "stagetrace.stage.duration");
        let of_request: Vec<_> = of_request.collect();
        let names: Vec<_> = of_request.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "stagetrace.request.duration",
            "stagetrace.request.stage.duration",
            "gen_ai.server.request.duration",
        ];
        assert_eq!(names, expected);
        for (_, span) in of_request {
            assert_eq!(span.trace_id().to_string(), root.trace_id.to_string());
            assert_eq!(span.span_id().to_string(), root.span_id.to_string());
            assert!(span.trace_flags().is_sampled() && !span.is_remote());
        }
    }

    fn what_a_meter_traces_is_not_recorded() {
        let meter = meters::meter(|_, _| steps(0, 1));
        let trace = init_with(config(), [metrics::exporter(meter)]).unwrap();
        steps(0, 10);
        flush(LONG).unwrap();
        assert_eq!(flush(LONG).unwrap().begun, 10);
        assert_eq!(written(&trace).len(), 10);
    }
}

/// How many spans report losses.
fn losses(spans: &[Span]) -> usize {
    spans.iter().filter(|span| span.name == "stagetrace.loss").count()
}
