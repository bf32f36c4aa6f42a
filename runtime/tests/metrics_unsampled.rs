//! With metrics on, what the head sampler leaves out is recorded and measured, and is exported nowhere.
#![cfg(all(feature = "metrics", unix, not(stagetrace_off)))]
#![expect(dead_code, reason = "what the tests share has more than is needed here")]

#[path = "metrics/collected.rs"]
mod collected;
#[path = "metrics/meters.rs"]
mod meters;
mod support;
#[path = "metrics/work.rs"]
mod work;

use collected::{Collecting, Labels, histogram, sum};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use serde_json::json;
use stagetrace::testing::capture;
use stagetrace::{
    Exporter, Mapping, Outcome, Sampler, Stats, TraceConfig, TraceState, Traced, init_with,
    metrics, span, stage,
};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::recording::{read::Recording, recover};
use stagetrace_wire::span::{Span, Value, find};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::{LONG, config, flush, scenarios, sink, steps, wait_until, written};
use work::{Generate, attention, decode, work};

/// How often something happened, by the attributes under which it counts.
type Counts = BTreeMap<Labels, u64>;

fn counts(metrics: &ResourceMetrics, name: &str) -> Counts {
    let series = histogram(metrics, name).into_iter();
    series.map(|(labels, series)| (labels, series.count)).collect()
}

/// How often the spans say that each stage was executed, or each request served.
fn said<'a>(spans: impl IntoIterator<Item = &'a Span>, name: &str) -> Counts {
    let mut counts = Counts::new();
    for span in spans {
        let mut labels = vec![format!("{name}={}", span.name)];
        for key in ["error.type", "stagetrace.outcome"] {
            if let Some(Value::Str(text)) = find(&span.attributes, key) {
                labels.push(format!("{key}={text}"));
            }
        }
        labels.sort();
        *counts.entry(labels).or_default() += 1;
    }
    counts
}

fn is_root(span: &&Span) -> bool {
    find(&span.attributes, "stagetrace.request.id").is_some()
}

/// An exporter that lets each batch go.
fn to_nowhere() -> Exporter {
    Exporter::otlp("nowhere", |_: &[u8]| Ok::<(), Infallible>(()))
}

/// What `stats()` promises of its numbers.
fn assert_sums(stats: &Stats) {
    assert_eq!(stats.begun, stats.dropped_spans() + stats.open + stats.ended, "{stats:?}");
    let ended = stats.waiting + stats.discarded + stats.unsampled + stats.handed;
    assert_eq!(stats.ended, ended, "{stats:?}");
}

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";

/// What a request brings whose sender has decided.
fn sent_by(sampled: bool) -> TraceState {
    let flags = if sampled { "01" } else { "00" };
    serde_json::from_value(json!({ "traceparent": format!("{TRACEPARENT}-{flags}") })).unwrap()
}

scenarios! {
    fn metrics_say_of_what_is_not_sampled_what_its_spans_would_say() {
        let spans = capture(work).spans;
        let collecting = Collecting::new();
        let config = config().sampler(Sampler::Ratio(0.0));
        let trace = init_with(config, [collecting.exporter(), to_nowhere()]).unwrap();
        work();
        let stats = flush(LONG).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.begun, stats.unsampled, stats.handed), (601, 601, 0));
        assert_eq!(written(&trace), []);
        assert_eq!((sink("metrics").exported, sink("nowhere").handed), (601, 0));

        let metrics = collecting.collect();
        let (roots, stages): (Vec<_>, Vec<_>) = spans.iter().partition(is_root);
        let stages = said(stages, "stagetrace.stage");
        assert_eq!(stages.len(), 7, "failed and panicked ones are among them: {stages:?}");
        assert_eq!(counts(&metrics, "stagetrace.stage.duration"), stages);
        let requests = said(roots, "stagetrace.request.name");
        assert!(requests.len() >= 3, "failed ones are among them: {requests:?}");
        assert_eq!(counts(&metrics, "stagetrace.request.duration"), requests);
        let shares = counts(&metrics, "stagetrace.request.stage.duration");
        assert_eq!(shares.into_values().collect::<Vec<_>>(), [20; 3], "breakdowns are whole");

        let run = trace.run_dir().unwrap().to_owned();
        trace.shutdown(LONG).unwrap();
        let path = only_entry(&run, is_recording);
        let left = Recording::open(&path).map(|recording| recording.snapshot().spans.len());
        assert_eq!(left.unwrap(), 0, "it is closed, and nothing in it waits for a recovery");
    }

    fn of_a_share_of_the_traces_all_are_measured_and_those_exported_whole() {
        let collecting = Collecting::new();
        let config = config().sampler(Sampler::Ratio(0.5));
        let trace = init_with(config, [collecting.exporter(), to_nowhere()]).unwrap();
        for _ in 0..5 {
            work();
        }
        let stats = flush(LONG).unwrap();
        assert_sums(&stats);
        assert_eq!(stats.begun, 5 * 601);
        let spans = written(&trace);
        let roots = spans.iter().filter(is_root).count();
        assert!((20..80).contains(&roots), "{roots} of 100");
        let of_requests = |name| spans.iter().filter(|span| span.name == name).count();
        let (attention, prefill) = (of_requests("attention"), of_requests("prefill"));
        assert_eq!((attention, prefill, of_requests("decode")), (2 * roots, roots, roots));
        assert_eq!(spans.len() as u64, stats.handed);
        assert_eq!((sink("nowhere").exported, sink("jsonl").exported), (stats.handed, stats.handed));
        assert_eq!(sink("metrics").exported, stats.handed + stats.unsampled);

        let metrics = collecting.collect();
        let all = |name| counts(&metrics, name).into_values().sum::<u64>();
        assert_eq!(all("stagetrace.request.duration"), 100);
        assert_eq!(all("stagetrace.stage.duration"), 5 * (601 - 20));
    }

    fn spans_that_are_sampled_and_others_are_told_apart_however_they_alternate() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter(), to_nowhere()]).unwrap();
        let requests = [true, false].map(|sampled| {
            let mut request = Generate::new(7);
            *request.trace_state_mut() = sent_by(sampled);
            request.begin(None);
            request
        });
        for _ in 0..100 {
            requests.iter().for_each(|request| decode(request, false));
        }
        requests.iter().for_each(|request| request.finish(Outcome::Ok));
        let stats = flush(LONG).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.unsampled, stats.handed), (101, 101));
        assert_eq!((written(&trace).len(), sink("nowhere").exported), (101, 101));
        let stages = counts(&collecting.collect(), "stagetrace.stage.duration");
        assert_eq!(stages.into_values().collect::<Vec<_>>(), [200]);
    }

    fn what_is_not_sampled_never_comes_to_tail_sampling() {
        let collecting = Collecting::new();
        let config = config().tail_sampling(|tail| {
            (tail.errors, tail.slowest, tail.per_second) = (false, false, 0.0);
        });
        let trace = init_with(config, [collecting.exporter(), to_nowhere()]).unwrap();
        for sampled in [false, true, false] {
            let mut request = Generate::new(7);
            *request.trace_state_mut() = sent_by(sampled);
            request.begin(None);
            attention(&request, 1).unwrap();
            request.finish(Outcome::Ok);
        }
        let stats = flush(LONG).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.unsampled, stats.handed, stats.sampled_out), (4, 2, 2));
        assert_eq!(written(&trace).len(), 2);
        assert_eq!(sink("nowhere").handed, 0);
    }

    fn a_trace_that_a_sender_left_out_stays_so_over_tasks_and_channels() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        let mut request = Sent { trace: sent_by(false) };
        request.begin(None);
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let sent = runtime.block_on(async {
            let task = tokio::spawn(async move {
                let sent = serve(&request).await;
                request.finish(Outcome::Ok);
                sent
            });
            task.await.unwrap()
        });
        let carrier = serde_json::to_value(&sent.trace).unwrap();
        let traceparent = carrier["traceparent"].as_str().unwrap();
        assert!(traceparent.starts_with(&TRACEPARENT[..35]), "{traceparent}");
        assert!(traceparent.ends_with("-00"), "{traceparent}");
        assert!(carrier.get("level").is_none(), "who measures it does so at a level of its own");

        let receiver = std::thread::spawn(move || {
            let mut request = sent;
            request.begin(None);
            runtime.block_on(serve(&request));
            request.finish(Outcome::Ok);
        });
        receiver.join().unwrap();
        let stats = flush(LONG).unwrap();
        assert_eq!((stats.begun, stats.unsampled), (6, 6));
        assert_eq!(written(&trace), []);
        let stages = counts(&collecting.collect(), "stagetrace.stage.duration");
        assert_eq!(stages.into_iter().collect::<Vec<_>>(), [
            (vec!["stagetrace.stage=serve".to_owned()], 2),
            (vec!["stagetrace.stage=waits".to_owned()], 2),
        ]);
    }

    fn a_forced_request_is_exported_and_measured_like_any_other() {
        let collecting = Collecting::new();
        let config = config().sampler(Sampler::Ratio(0.0));
        let trace = init_with(config, [collecting.exporter(), to_nowhere()]).unwrap();
        for forced in [false, true] {
            let mut request = Generate::new(7);
            if forced {
                request.trace_state_mut().force();
            }
            request.begin(None);
            decode(&request, false);
            // One that is forced below one that is not.
            span!("outer", parent = stagetrace::Carrier::position(&request)).in_scope(|| {
                let mut inner = Generate::new(8);
                inner.trace_state_mut().force();
                inner.begin(stagetrace::current());
                decode(&inner, false);
                inner.finish(Outcome::Ok);
            });
            request.finish(Outcome::Ok);
        }
        let stats = flush(LONG).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.unsampled, stats.handed), (3, 2 + 5));
        assert_eq!((written(&trace).len(), sink("nowhere").exported), (7, 7));
        let requests = counts(&collecting.collect(), "stagetrace.request.duration");
        assert_eq!(requests.into_values().collect::<Vec<_>>(), [4]);
    }

    fn what_is_in_flight_and_what_is_thrown_away_is_counted_whether_sampled_or_not() {
        let collecting = Collecting::new();
        let config = config().sampler(Sampler::Ratio(0.0));
        let trace = init_with(config, [collecting.exporter()]).unwrap();
        let mut open: Vec<_> = (0..3).map(Generate::new).collect();
        open.iter_mut().for_each(|request| request.begin(None));
        span!("thrown away").discard();
        let active = || {
            let all = sum(&collecting.collect(), "stagetrace.request.active");
            all.into_values().collect::<Vec<_>>()
        };
        let stats = flush(LONG).unwrap();
        assert_sums(&stats);
        assert_eq!((stats.open, stats.discarded, stats.unsampled), (3, 1, 0));
        assert_eq!(active(), [3]);
        open.truncate(1);
        let stats = flush(LONG).unwrap();
        assert_eq!((stats.open, stats.discarded, stats.unsampled), (1, 1, 2));
        assert_eq!(active(), [1]);
        drop(trace);
    }

    fn exemplars_are_told_that_a_trace_is_not_sampled() {
        let (meter, noted) = meters::noting();
        let trace = init_with(config(), [metrics::exporter(meter)]).unwrap();
        let mut request = Generate::new(7);
        *request.trace_state_mut() = sent_by(false);
        request.begin(None);
        request.finish(Outcome::Ok);
        flush(LONG).unwrap();
        let noted = noted.lock().unwrap();
        assert!(!noted.is_empty() && noted.iter().all(|(_, span)| !span.trace_flags().is_sampled()));
        drop(trace);
    }

    fn what_is_not_sampled_needs_no_room_while_exporters_hang() {
        let config = config()
            .jsonl(false)
            .memory_limit(1 << 20)
            .batching(|batching| batching.export_timeout = Duration::from_secs(60));
        let hangs = Exporter::otlp("hangs", |_: &[u8]| {
            loop {
                std::thread::park();
            }
            #[expect(unreachable_code)]
            Ok::<(), Infallible>(())
        });
        let collecting = Collecting::new();
        let trace = init_with(config, [hangs, collecting.exporter()]).unwrap();
        steps(0, 1);
        let mut request = Generate::new(7);
        *request.trace_state_mut() = sent_by(false);
        request.begin(None);
        for round in 1..=200 {
            for _ in 0..100 {
                let _ = attention(&request, 2); // with a failure, and each with an event
                attention(&request, 1).unwrap();
            }
            let is_measured = |stats: Stats| stats.unsampled == 200 * round;
            wait_until(|| stagetrace::stats().is_some_and(is_measured));
        }
        let stats = stagetrace::stats().unwrap();
        assert_eq!((stats.dropped_spans(), stats.spool.bytes), (0, 0), "{stats:?}");
        assert_eq!(sink("hangs").exported, 0);
        let _ = trace.shutdown(Duration::ZERO);
    }

    fn a_capture_shows_nothing_of_what_is_not_sampled() {
        let collecting = Collecting::new();
        let trace = init_with(config(), [collecting.exporter()]).unwrap();
        let captured = capture(|| {
            for sampled in [true, false] {
                let mut request = Generate::new(7);
                *request.trace_state_mut() = sent_by(sampled);
                request.begin(None);
                attention(&request, 1).unwrap();
                request.finish(Outcome::Ok);
            }
        });
        assert_eq!(captured.tree(&[]), "generate\n  attention\n");
        drop(trace);
    }
}

#[derive(Traced)]
struct Sent {
    #[traced(state)]
    trace: TraceState,
}

/// Serves a request, and makes another one of the same trace out of what is sent meanwhile.
#[stage("serve", request)]
async fn serve(request: &Sent) -> Sent {
    let text = serde_json::to_string(&request.trace).unwrap();
    let here = stagetrace::current();
    assert!(here.context().is_some_and(|context| !context.flags.is_sampled()), "{here:?}");
    waits().await;
    Sent { trace: serde_json::from_str(&text).unwrap() }
}

/// Is polled again, on whatever thread.
#[stage("waits")]
async fn waits() {
    tokio::task::yield_now().await;
}

const DIR: &str = "STAGETRACE_TEST_KILLED_IN";

#[test]
fn a_kill_brings_nothing_back_that_is_not_sampled() {
    if let Some(dir) = std::env::var_os(DIR) {
        return die_with_spans(Path::new(&dir));
    }
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("killed").join(unique());
    let test = "a_kill_brings_nothing_back_that_is_not_sampled";
    let killed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DIR, &dir)
        .output()
        .unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");

    let run = only_entry(&dir, |_| true);
    let path = only_entry(&run, is_recording);
    let snapshot = Recording::open(&path).unwrap().snapshot();
    let unsampled = snapshot.spans.iter().filter(|span| !span.is_sampled());
    let open = unsampled.clone().filter(|span| span.is_open()).count();
    assert_eq!(open, 1, "whoever looks at the recording sees them");
    assert!(unsampled.clone().all(|span| span.flags() & 1 == 0));

    let recovered = recover::recover(&path, &run, recover::Remove::Yes).unwrap();
    // The collector may have come to write.
    assert_eq!((recovered.ended + recovered.known, recovered.open), (2, 1), "{recovered:?}");
    assert_eq!(recovered.unsampled, 3, "{recovered:?}");
    let lines = std::fs::read(recovered.file.unwrap()).unwrap();
    let spans = read_lines(&lines, &ReadOptions::default()).spans;
    let traces: BTreeSet<_> = spans.iter().map(|span| span.trace_id.to_string()).collect();
    assert_eq!(traces.into_iter().collect::<Vec<_>>(), ["11".repeat(16)]);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Leaves two requests of which one is sampled, each with a root that is open and a root and a stage that have ended.
fn die_with_spans(dir: &Path) {
    let config = TraceConfig::new().output_dir(dir).mapping(Mapping::RunDir);
    let _trace = init_with(config, [Collecting::new().exporter()]).unwrap();
    let of_trace = |trace: &str, sampled| {
        let text = format!("00-{}-b7ad6b7169203331-0{sampled}", trace.repeat(16));
        let mut requests = [0, 1].map(|number| {
            let mut request = Generate::new(number);
            *request.trace_state_mut() = TraceState::from_headers([("traceparent", &text)]);
            request.begin(None);
            request
        });
        attention(&requests[0], 1).unwrap();
        requests[0].finish(Outcome::Ok);
        std::mem::forget(std::mem::replace(&mut requests[1], Generate::new(2)));
    };
    of_trace("11", 1);
    of_trace("22", 0);
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
}

fn unique() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{}-{}", std::process::id(), now.as_nanos())
}

fn only_entry(dir: &Path, is_it: impl Fn(&Path) -> bool) -> PathBuf {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| is_it(path)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn is_recording(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "recording")
}
