//! The sums of `stats()`: whatever happens at once, every span that a program begins is in exactly one place.
//!
//! The recorder does not count what begins, since that would cost every span; these tests do.

use stagetrace::{DropCause, Mapping, Outcome, Sampler, Stats, Traced, event, span, stage};
use stagetrace_tests::pipeline::{Generate, dispatch};
use stagetrace_tests::{Spans, alone, flushed, start_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[stage("work", attrs("text" = text))]
fn work(text: &str) {
    let _ = text;
}

/// What a program did, by its own count.
#[derive(Debug, Default)]
struct Did {
    begun: AtomicU64,
    discarded: AtomicU64,
    forgotten: AtomicU64,
    unsampled: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Numbers that look random, from a seed: xorshift64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// One thing that a program may do, chosen by the dice.
fn something(dice: &mut Dice, did: &Did, kept: &mut Vec<stagetrace::Span>) {
    match dice.below(12) {
        0..3 => {
            add(&did.begun, 1);
            work("short");
        }
        3 => {
            add(&did.begun, 40);
            let text = "x".repeat(dice.below(900) as usize);
            (0..40).for_each(|_| work(&text));
        }
        4 => {
            // Dropped or not, it is one that began; only one that was recorded can be discarded.
            add(&did.begun, 1);
            let span = span!("discarded");
            add(&did.discarded, u64::from(span.is_recorded()));
            span.discard();
        }
        5 => {
            add(&did.begun, 1);
            let span = span!("kept");
            span.set_attribute("late", 7);
            kept.push(span);
        }
        6 => {
            let ended = dice.below(kept.len() as u64 + 1) as usize;
            kept.drain(..ended);
        }
        7 => {
            // What it holds are the capture's.
            let captured = stagetrace::testing::capture(|| {
                work("captured");
                drop(span!("captured"));
            });
            assert_eq!(captured.spans.len(), 2);
        }
        8 => {
            // If it finds no room, its stage is in a trace of its own.
            add(&did.begun, 2);
            let request = Generate::begun("request");
            dispatch(&request, || event!("said", "n" = 7));
            if dice.below(2) == 0 {
                request.finish(Outcome::Error);
            }
        }
        9 => {
            // A sampled-out trace that came from elsewhere.
            let mut request = Generate::new("unsampled", 1);
            let header = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00";
            request.begin(stagetrace::Parent::from_headers([("traceparent", header)]));
            dispatch(&request, || work("unsampled"));
            add(&did.unsampled, 1);
        }
        10 => {
            add(&did.begun, 1);
            let span = span!("forgotten");
            add(&did.forgotten, u64::from(span.is_recorded()));
            std::mem::forget(span);
        }
        _ => thread::sleep(Duration::from_micros(dice.below(300))),
    }
}

/// Both sides of each identity of DESIGN, and those against the program's own counts.
fn assert_identities(stats: &Stats, did: &Did, open: u64) {
    let ended = stats.waiting + stats.discarded + stats.unsampled + stats.handed;
    assert_eq!(stats.ended, ended, "{stats:?}");
    assert_eq!(stats.begun, stats.dropped_spans() + stats.open + stats.ended, "{stats:?}");
    assert_eq!(stats.begun, read(&did.begun), "{stats:?}\n{did:?}");
    assert_eq!(stats.discarded, read(&did.discarded), "{stats:?}\n{did:?}");
    assert_eq!(stats.open, open, "{stats:?}\n{did:?}");
    assert_eq!(stats.waiting, 0, "{stats:?}");
    for sink in &stats.sinks {
        assert_eq!(
            sink.handed,
            sink.queued + sink.outbox + sink.exported + sink.failed,
            "{sink:?}"
        );
        let by_cause: u64 = sink.failed_by.iter().map(|(_, count)| count).sum();
        assert!(by_cause <= sink.failed, "{sink:?}");
        assert!(sink.handed >= stats.handed, "it gets the reports of losses as well: {stats:?}");
    }
}

/// Has threads do so many things at random in each round; all numbers must add up at every rest. Gives what was handed
/// and what was lost.
fn mix(seed: u64, rounds: u64, things: u64) -> Stats {
    let did = Arc::new(Did::default());
    let mut kept = Vec::new();
    let mut last = None;
    for round in 0..rounds {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let did = did.clone();
                let mut dice = Dice((seed << 16) | (round << 8) | (thread + 1));
                thread::spawn(move || {
                    let mut kept = Vec::new();
                    for _ in 0..things {
                        something(&mut dice, &did, &mut kept);
                    }
                    kept
                })
            })
            .collect();
        for thread in threads {
            kept.extend(thread.join().unwrap());
        }
        let recorded = kept.iter().filter(|span| span.is_recorded()).count() as u64;
        let stats = flushed();
        assert_identities(&stats, &did, recorded + read(&did.forgotten));
        last = Some(stats);
    }
    drop(kept);
    let stats = flushed();
    assert_identities(&stats, &did, read(&did.forgotten));
    assert!(last.is_some_and(|last| last.handed <= stats.handed));
    assert!(read(&did.unsampled) > 0 && read(&did.discarded) > 0, "{did:?}");
    stats
}

/// Spans of the program in the file, and what the reports of losses say of this cause.
fn exported(spans: &Spans, cause: DropCause) -> (u64, u64) {
    let key = format!("stagetrace.dropped.{}", cause.name());
    let reported = spans.all("stagetrace.loss").into_iter();
    let reported: i64 = reported.filter_map(|span| span.attribute(&key)?.as_i64()).sum();
    let losses = spans.all("stagetrace.loss").len();
    ((spans.len() - losses) as u64, reported as u64)
}

#[test]
fn with_room_nothing_is_lost_and_everything_adds_up() {
    let ran = alone(|| {
        let trace = start_with(|config| config.mapping(Mapping::Memory));
        // A round needs less than is provided ahead of need, however long the collector has to wait for a processor.
        let stats = mix(1, 8, 150);
        assert_eq!(stats.dropped_spans(), 0, "{stats:?}");
        println!("\nhanded {}", stats.handed);
        drop(trace);
    })
    .run();
    let handed = ran.stdout.lines().find_map(|line| line.strip_prefix("handed ")).unwrap();
    let spans = ran.spans();
    assert_eq!(exported(&spans, DropCause::PoolFull), (handed.parse().unwrap(), 0));
    assert_eq!(ran.complaints(), Vec::<&str>::new());
}

#[test]
fn without_room_what_is_lost_is_counted_reported_and_said_once() {
    let ran = alone(|| {
        let trace = start_with(|config| config.memory_limit(1 << 20));
        // Long enough a burst for the smallest pool.
        let did = Did::default();
        let mut kept = Vec::new();
        for _ in 0..40_000 {
            add(&did.begun, 2);
            work("a text of some length, so that the pool is soon full");
            kept.push(span!("kept"));
        }
        let recorded = kept.iter().filter(|span| span.is_recorded()).count() as u64;
        let stats = flushed();
        assert_identities(&stats, &did, recorded);
        drop(kept);
        let stats = flushed();
        assert_identities(&stats, &did, 0);
        assert!(stats.dropped(DropCause::SlabFull) > 0, "{stats:?}");
        let lost = [DropCause::PoolFull, DropCause::SlabFull].map(|cause| stats.dropped(cause));
        println!("\nhanded {} lost {} {}", stats.handed, lost[0], lost[1]);
        drop(trace);
    })
    .run();
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("handed ")).unwrap();
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let spans = ran.spans();
    assert_eq!(exported(&spans, DropCause::PoolFull), (numbers[0], numbers[1]));
    assert_eq!(exported(&spans, DropCause::SlabFull), (numbers[0], numbers[2]));
    let said = |words: &str| ran.complaints().iter().filter(|line| line.contains(words)).count();
    assert_eq!(said("warning: requests are dropped"), 1, "{}", ran.stderr);
    assert!(said("warning: spans are dropped") == usize::from(numbers[1] > 0), "{}", ran.stderr);
    assert!(ran.complaints().len() <= 3, "{}", ran.stderr);
}

#[test]
fn a_mixture_in_too_little_room_adds_up() {
    for seed in [7, 8] {
        alone(|| {
            let seed = std::env::var("TEST_SEED").unwrap().parse().unwrap();
            let trace = start_with(|config| config.memory_limit(1 << 20));
            mix(seed, 3, 500);
            drop(trace);
        })
        .env("TEST_SEED", seed.to_string())
        .run();
    }
}

#[test]
fn what_is_sampled_out_is_nowhere_in_the_sums() {
    let ran = alone(|| {
        let trace = start_with(|config| config.sampler(Sampler::AlwaysOff));
        for _ in 0..1000 {
            let request = Generate::begun("a");
            dispatch(&request, || work("a"));
            drop(span!("by hand"));
            request.finish(Outcome::Ok);
        }
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.begun, stats.open, stats.handed, stats.dropped_spans()), (0, 0, 0, 0));
    })
    .run();
    assert_eq!(ran.spans().len(), 0);
}
