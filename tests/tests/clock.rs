//! Time stamps: a child's are never before its parent's, and they are those of the system's clocks.

use stagetrace::{InSpan, Outcome, Traced, attach, current, monotonic_ns, span, stage};
use stagetrace_tests::pipeline::{Generate, decode, dispatch, forward};
use stagetrace_tests::{Spans, alone, spin_until, start_with};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn no_child_is_before_its_parent(spans: &Spans) -> usize {
    let mut pairs = 0;
    for child in spans.iter() {
        assert!(child.start_unix_nano <= child.end_unix_nano, "{child:?}");
        if let Some(parent) = spans.parent(child) {
            pairs += 1;
            let early = parent.start_unix_nano.saturating_sub(child.start_unix_nano);
            assert_eq!(early, 0, "{} is {early} ns before its {}", child.name, parent.name);
        }
    }
    pairs
}

#[stage("parent")]
fn parent(hand_over: impl FnOnce(stagetrace::Position)) {
    hand_over(current());
}

#[stage("child")]
fn child() {}

#[test]
fn a_child_on_a_thread_that_waits_for_it_is_never_before_its_parent() {
    // Fewer where the machine is so busy that each takes milliseconds.
    const TIMES: u64 = 4_000;
    const LONG: Duration = Duration::from_secs(10);
    let ran = alone(|| {
        let trace = start_with(|config| config);
        let (sent, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        let handed = Mutex::new(stagetrace::Position::NULL);
        let end = Instant::now() + LONG;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=TIMES {
                    spin_until(|| sent.load(Ordering::Acquire) >= number);
                    if sent.load(Ordering::Acquire) == u64::MAX {
                        break;
                    }
                    let position = *handed.lock().unwrap();
                    match number % 3 {
                        0 => {
                            let _attached = attach(position);
                            child();
                        }
                        1 => drop(span!("by hand", parent = position)),
                        _ => span!("around", parent = position).in_scope(child),
                    }
                    taken.store(number, Ordering::Release);
                }
            });
            for number in 1..=TIMES {
                parent(|position| *handed.lock().unwrap() = position);
                sent.store(number, Ordering::Release);
                spin_until(|| taken.load(Ordering::Acquire) >= number);
                if Instant::now() > end {
                    sent.store(u64::MAX, Ordering::Release);
                    break;
                }
            }
        });
        trace.shutdown(Duration::from_secs(20)).unwrap();
    })
    .run();
    let spans = ran.spans();
    let (parents, pairs) = (spans.all("parent").len(), no_child_is_before_its_parent(&spans));
    assert!(parents >= 10 && pairs >= parents, "{pairs} children of {parents}");
}

#[test]
fn children_in_requests_futures_and_channels_are_never_before_their_parents() {
    let ran = alone(|| {
        let trace = start_with(|config| config.level(3));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build();
        let runtime = runtime.expect("threads can be started");
        let (send, receive) = mpsc::channel::<Generate>();
        let worker = std::thread::spawn(move || {
            for request in receive {
                dispatch(&request, || {
                    forward(&request);
                    decode(&request);
                });
                request.finish(Outcome::Ok);
            }
        });
        for number in 0..300 {
            send.send(Generate::begun(&number.to_string())).unwrap();
            runtime.block_on(async {
                let inner = async {
                    tokio::task::yield_now().await;
                    child();
                };
                let outer = tokio::spawn(inner.in_span(span!("task"))).in_span(span!("spawner"));
                outer.await.unwrap();
            });
        }
        drop(send);
        worker.join().unwrap();
        trace.shutdown(Duration::from_secs(20)).unwrap();
    })
    .run();
    let pairs = no_child_is_before_its_parent(&ran.spans());
    assert!(pairs >= 4 * 300, "{pairs} children");
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_spans_times_lie_between_the_systems_before_and_after_it() {
    let ran = alone(|| {
        let trace = start_with(|config| config);
        let wall = |mono: u64| i128::from(unix_ns()) - i128::from(mono);
        let offset = wall(monotonic_ns());
        let end = monotonic_ns() + 300_000_000;
        while monotonic_ns() < end {
            // The names carry what the system's clock said around the span.
            let before = monotonic_ns();
            let measured = span!("measured");
            std::thread::sleep(Duration::from_micros(300));
            measured.set_attribute("before", before as i64);
            let span = measured;
            let after = monotonic_ns();
            span.set_attribute("after", after as i64);
            drop(span);
        }
        let status = stagetrace::status();
        let clock = status.clock.expect("it runs");
        assert!(["tsc", "clock_gettime"].contains(&clock.name), "{clock}");
        let stats = status.stats.expect("it answers").clock;
        assert!(stats.error > 0 && stats.counter_jumps == 0, "{stats:?}");
        let moved = (wall(monotonic_ns()) - offset).unsigned_abs();
        println!("offset {offset} error {} moved {moved}", stats.error);
        trace.shutdown(Duration::from_secs(20)).unwrap();
    })
    .run();
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    let number = |name: &str| -> i128 {
        let at = words.iter().position(|word| *word == name).expect(name);
        words[at + 1].parse().expect(name)
    };
    // The first anchors are young: ten times the error that is stated later. Whatever the wall clock did in this
    // test, the recorder's offset was fixed at its start.
    let bound = 10 * number("error") + number("moved") + 1_000_000;
    let spans = ran.spans();
    let measured = spans.all("measured");
    assert!(measured.len() > 10, "{} spans", measured.len());
    for span in measured {
        let at = |key| match span.attribute(key) {
            Some(stagetrace_wire::span::Value::I64(ns)) => i128::from(*ns) + number("offset"),
            other => panic!("{key} is {other:?}"),
        };
        let (start, end) = (i128::from(span.start_unix_nano), i128::from(span.end_unix_nano));
        assert!(start >= at("before") - bound, "it began {} ns too early", at("before") - start);
        assert!(start <= at("after") + bound, "it began {} ns too late", start - at("after"));
        assert!(end >= at("after") - bound, "it ended {} ns too early", at("after") - end);
    }
}
