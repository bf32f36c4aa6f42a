//! What of a request is exported is decided when it is finished: which traces come out, whole, and what becomes of the
//! others.

use crate::sent::{Sent, collecting};
use crate::support::{LONG, config, flush, scenarios, sink, wait_until, written};
use stagetrace::testing::tree;
use stagetrace::{
    Outcome, Stats, TailSampling, TraceGuard, TraceState, Traced, current, init_with, span, stage,
};
use stagetrace_wire::recording::recover::{Remove, recover};
use stagetrace_wire::span::Span;
use std::time::Duration;

#[derive(Traced, Default)]
#[traced(name = "generate")]
struct Generate {
    #[traced(id)]
    id: u64,
    #[traced(state)]
    trace: TraceState,
}

impl Generate {
    fn begun(id: u64) -> Generate {
        let mut request = Generate { id, ..Generate::default() };
        request.begin(None);
        request
    }

    /// One below it.
    fn below(&self, id: u64) -> Generate {
        let mut request = Generate { id, ..Generate::default() };
        within(self, || request.begin(current()));
        request
    }
}

#[stage("forward", request)]
fn forward(request: &Generate) {
    step(request.id);
}

#[stage("within", _request)]
fn within(_request: &Generate, f: impl FnOnce()) {
    f();
}

#[stage("step", attrs("id" = id))]
fn step(id: u64) {
    let _ = id;
}

#[stage("fallible", request)]
fn fallible(request: &Generate, fails: bool) -> Result<(), std::fmt::Error> {
    let _ = request;
    if fails { Err(std::fmt::Error) } else { Ok(()) }
}

/// Starts with rules that want nothing, changed.
fn start(change: impl FnOnce(&mut TailSampling)) -> (TraceGuard, Sent) {
    let (exporter, sent) = collecting("memory");
    let config = config().tail_sampling(|tail| {
        (tail.errors, tail.slowest, tail.per_second) = (false, false, 0.0);
        change(tail);
    });
    (init_with(config, [exporter]).unwrap(), sent)
}

/// The ids of the requests whose roots were exported.
fn ids(spans: &[Span]) -> Vec<i64> {
    let id = |span: &Span| {
        span.attribute("stagetrace.request.id").and_then(|id| id.as_str()?.parse().ok())
    };
    let mut ids: Vec<i64> = spans.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids
}

/// Flushes, and checks that each span is accounted for.
fn balanced() -> Stats {
    let stats = flush(LONG).unwrap();
    assert_eq!(stats.ended, stats.waiting + stats.discarded + stats.handed, "{stats:?}");
    let (file, behind) = (&stats.sinks[0], &stats.sinks[1]);
    assert_eq!(file.handed, stats.handed, "{stats:?}");
    assert_eq!(behind.handed, stats.handed - stats.undecided - stats.sampled_out, "{stats:?}");
    stats
}

scenarios! {
    fn of_a_request_that_fails_all_is_exported_and_of_others_nothing() {
        let (trace, sent) = start(|tail| tail.errors = true);
        for id in 0..100 {
            let request = Generate::begun(id);
            forward(&request);
            let _ = fallible(&request, id == 17);
            let outcome = if id == 42 { Outcome::Cancelled } else { Outcome::Ok };
            request.finish(outcome);
        }
        let stats = balanced();
        assert_eq!((stats.undecided, stats.sampled_out, stats.decided_early), (0, 98 * 4, 0));
        let mut spans = sent.spans();
        assert_eq!(ids(&spans), [17, 42]);
        spans.sort_by_key(|span| span.start_unix_nano);
        let whole = "generate\n  forward\n    step\n  fallible\n";
        assert_eq!(tree(&spans, &[]), whole.repeat(2));
        // The file has all, as if nothing were sampled.
        assert_eq!((written(&trace).len(), ids(&written(&trace)).len()), (400, 100));
    }

    fn what_ends_after_its_request_follows_what_was_decided() {
        let (_trace, sent) = start(|tail| tail.errors = true);
        for (id, outcome) in [(1, Outcome::Ok), (2, Outcome::Error)] {
            let request = Generate::begun(id);
            request.finish(outcome);
            balanced();
            forward(&request);
        }
        let stats = balanced();
        assert_eq!((stats.undecided, stats.sampled_out), (0, 3));
        assert_eq!(tree(&sent.spans(), &[]), "generate\n  forward\n    step\n");
        assert_eq!(ids(&sent.spans()), [2]);
    }

    fn requests_below_a_request_are_decided_with_it() {
        let (_trace, sent) = start(|tail| tail.errors = true);
        for (id, outcome) in [(10, Outcome::Ok), (20, Outcome::Error)] {
            let request = Generate::begun(id);
            let below = request.below(id + 1);
            forward(&below);
            below.finish(Outcome::Ok);
            let late = request.below(id + 2);
            request.finish(outcome);
            balanced();
            // It ends when it is known already whether its trace is wanted.
            late.finish(Outcome::Ok);
        }
        let stats = balanced();
        assert_eq!((stats.undecided, stats.sampled_out, stats.decided_early), (0, 7, 0));
        assert_eq!(ids(&sent.spans()), [20, 21, 22]);
    }

    fn requests_that_come_with_one_trace_are_decided_each() {
        let (_trace, sent) = start(|tail| tail.errors = true);
        let arrived = |id| {
            let carrier = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
            let mut request = Generate { id, trace: TraceState::from_headers(carrier) };
            request.begin(None);
            request
        };
        let requests: Vec<Generate> = (0..4).map(arrived).collect();
        requests.iter().for_each(forward);
        requests[0].finish(Outcome::Ok);
        assert_eq!((balanced().undecided, balanced().sampled_out), (6, 3));
        requests[1].finish(Outcome::Ok);
        // With it the whole trace is wanted, as far as it is still there.
        requests[2].finish(Outcome::Error);
        assert_eq!((balanced().undecided, balanced().sampled_out), (0, 6));
        requests[3].finish(Outcome::Ok);
        assert_eq!(balanced().sampled_out, 6);
        assert_eq!(ids(&sent.spans()), [2, 3]);
        assert_eq!(sent.spans().len(), 6);
    }

    fn a_request_that_is_stuck_is_seen_after_the_longest_wait() {
        let (_trace, sent) = start(|tail| {
            tail.max_age = Duration::from_secs(3);
            tail.slower_than = Some(Duration::from_secs(2));
        });
        let quick = Generate::begun(1);
        forward(&quick);
        quick.finish(Outcome::Ok);
        let stuck = Generate::begun(2);
        forward(&stuck);
        wait_until(|| sent.spans().len() == 2);
        assert_eq!(balanced().decided_early, 1);
        stuck.finish(Outcome::Ok);
        balanced();
        assert_eq!(ids(&sent.spans()), [2]);
    }

    fn beyond_their_room_the_oldest_are_decided_as_they_stand() {
        let (_trace, sent) = start(|tail| {
            tail.errors = true;
            tail.max_bytes = 64 * 1024;
        });
        let requests: Vec<Generate> = (0..1000).map(Generate::begun).collect();
        for request in &requests {
            let _ = fallible(request, request.id % 100 == 0);
            forward(request);
            if request.id % 100 == 99 {
                balanced();
            }
        }
        let stats = balanced();
        assert!((500..1000).contains(&stats.decided_early), "{stats:?}");
        assert!(stats.undecided < 3 * 500, "{stats:?}");
        requests.iter().for_each(|request| request.finish(Outcome::Ok));
        let stats = balanced();
        // Each of those that failed, whole.
        assert_eq!(ids(&sent.spans()), (0..10).map(|n| n * 100).collect::<Vec<_>>());
        assert_eq!((sent.spans().len(), stats.undecided), (4 * 10, 0));
    }

    fn what_belongs_to_no_request_is_decided_by_the_span_that_began_it() {
        let (_trace, sent) = start(|tail| tail.fraction = 1.0);
        let outer = span!("outer");
        outer.in_scope(|| step(1));
        assert_eq!((balanced().undecided, sent.spans().len()), (1, 0));
        drop(outer);
        balanced();
        assert_eq!(tree(&sent.spans(), &["id"]), "outer\n  step id=1\n");
    }

    fn the_file_gets_only_what_is_exported_if_it_shall() {
        let (trace, sent) = start(|tail| (tail.errors, tail.jsonl) = (true, true));
        for id in 0..100 {
            let request = Generate::begun(id);
            forward(&request);
            let outcome = if id == 42 { Outcome::Error } else { Outcome::Ok };
            request.finish(outcome);
        }
        let open = Generate::begun(1000);
        forward(&open);
        let stats = flush(LONG).unwrap();
        assert_eq!((stats.handed, stats.undecided, stats.sampled_out), (302, 2, 99 * 3));
        assert!(stats.sinks.iter().all(|sink| sink.handed == 3), "{stats:?}");
        assert_eq!((ids(&sent.spans()), ids(&written(&trace))), (vec![42], vec![42]));
        drop(open);
    }

    fn what_nobody_wanted_is_not_recovered_from_what_a_process_leaves() {
        let (trace, _sent) = start(|tail| tail.jsonl = true);
        for id in 0..10 {
            let request = Generate::begun(id);
            forward(&request);
            request.finish(Outcome::Ok);
        }
        let run = trace.run_dir().unwrap().to_owned();
        trace.shutdown(LONG).unwrap();
        let files = std::fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path());
        let mut recordings = files.filter(|path| path.extension().is_some_and(|e| e == "recording"));
        let recovered = recover(recordings.next().unwrap(), &run, Remove::No).unwrap();
        assert_eq!((recovered.ended, recovered.open, recovered.file), (0, 0, None));
    }

    fn at_the_end_nothing_is_left_undecided() {
        let (trace, sent) = start(|tail| tail.slower_than = Some(Duration::ZERO));
        let open = Generate::begun(1);
        forward(&open);
        assert_eq!((balanced().undecided, sink("memory").handed), (2, 0));
        let stats = trace.shutdown(LONG).unwrap();
        assert_eq!((stats.undecided, stats.decided_early, stats.sinks[1].exported), (0, 1, 2));
        assert_eq!(sent.spans().len(), 2);
    }
}
