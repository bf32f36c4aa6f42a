//! Memory: what open requests take, what a warm recorder touches, and where the pool ends.
#![cfg(target_os = "linux")]

use stagetrace::{Mapping, Outcome, Stats, Traced, event, span, stage};
use stagetrace_tests::pipeline::{Generate, decode, dispatch};
use stagetrace_tests::{alone, counters, flushed, start, start_with};
use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

/// Counts the bytes that are allocated now.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[stage("work")]
fn work() {}

/// What recording takes now, in bytes: of the pool and of the heap.
fn taken() -> (Stats, i64) {
    // What belongs to the start, and to the collector's answer, comes and goes.
    let mut heap = Vec::new();
    while heap.len() < 100 && !heap.ends_with(&[LIVE.load(Ordering::Relaxed); 4]) {
        flushed();
        thread::sleep(Duration::from_millis(10));
        heap.push(LIVE.load(Ordering::Relaxed));
    }
    let stats = flushed();
    let bytes = stats.memory as i64 + LIVE.load(Ordering::Relaxed);
    (stats, bytes)
}

/// Begins so many requests, a hundred at a time, into memory that is there already.
fn begin_all(requests: &mut [Generate]) {
    for (number, request) in requests.iter_mut().enumerate() {
        request.begin(None);
        if number % 100 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn unbegun(count: usize) -> Vec<Generate> {
    (0..count).map(|number| Generate::new(&format!("request-{number}"), 2)).collect()
}

#[test]
fn ten_thousand_open_requests_take_less_than_three_mebibytes() {
    alone(|| {
        let trace = start_with(|config| config.mapping(Mapping::Memory));
        let mut requests = unbegun(10_000);
        work();
        let (_, before) = taken();
        begin_all(&mut requests);
        let (stats, after) = taken();
        assert_eq!((stats.open, stats.dropped_spans()), (10_000, 0));
        println!("\ntaken {}", after - before);
        assert!(after - before <= 3 << 20, "{} bytes", after - before);
        requests.iter().for_each(|request| request.finish(Outcome::Ok));
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!((stats.handed, stats.open, stats.dropped_spans()), (10_001, 0, 0));
    })
    .run();
}

#[test]
fn of_a_hundred_thousand_open_requests_all_are_recorded_or_counted() {
    const REQUESTS: u64 = 100_000;
    alone(|| {
        let trace = start_with(|config| config.mapping(Mapping::Memory));
        let mut requests = unbegun(REQUESTS as usize);
        begin_all(&mut requests);
        let stats = flushed();
        let recorded = requests.iter().filter(|request| !request.trace.is_null()).count() as u64;
        assert_eq!((stats.open, stats.dropped_spans()), (recorded, REQUESTS - recorded));
        assert!(stats.memory <= 32 << 20, "{} bytes", stats.memory);
        println!("\n{recorded} of {REQUESTS} recorded in {} bytes", stats.memory);
        assert!(recorded > 80_000, "{recorded}");
        // Stages go on being recorded, and the memory of those that end is there for others.
        for request in requests.drain(..50_000) {
            decode(&request);
            request.finish(Outcome::Ok);
        }
        flushed();
        let dropped = counters().dropped_spans();
        let mut more = unbegun(20_000);
        begin_all(&mut more);
        assert_eq!(flushed().dropped_spans(), dropped);
        drop((requests, more));
        let stats = trace.shutdown(Duration::from_secs(30)).unwrap();
        assert_eq!((stats.open, stats.waiting), (0, 0));
        let roots_and_stages = REQUESTS + 20_000 + 50_000;
        assert!(stats.begun <= roots_and_stages, "{stats:?}");
        assert_eq!(stats.handed + stats.dropped_spans(), stats.begun);
    })
    .run();
}

#[test]
fn threads_that_only_capture_keep_nothing_of_the_process() {
    alone(|| {
        let mut live = Vec::new();
        for number in 0..600 {
            let captures = || {
                let captured = stagetrace::testing::capture(|| decode(&Generate::begun("a")));
                assert_eq!(captured.tree(&[]), "generate\n  decode\n");
            };
            thread::spawn(captures).join().unwrap();
            if number % 200 == 199 {
                live.push(LIVE.load(Ordering::Relaxed));
            }
        }
        let grown = live[2] - live[1];
        assert!(grown < 64 << 10, "{grown} bytes by 200 threads: {live:?}");
    })
    .run();
}

/// Faults of this thread so far that gave it a page: it touched one for the first time.
fn first_touches() -> i64 {
    // SAFETY: all bits zero is a value of this struct of numbers, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage
    };
    usage.ru_minflt + usage.ru_majflt
}

/// Something of everything.
fn everything(request: &mut Generate) {
    request.begin(None);
    dispatch(request, || {
        decode(request);
        event!("event", "text" = "some text", "n" = 7);
        let span = span!("by hand", "n" = 7);
        span.in_scope(work);
    });
    request.finish(Outcome::Ok);
    request.trace = stagetrace::TraceState::null();
}

#[test]
fn a_warm_recorder_touches_no_page_for_the_first_time() {
    for mapping in ["shm", "memory"] {
        alone(|| {
            let trace = start();
            let mut request = Generate::new("a request of middling length", 2);
            let mut touched = Vec::new();
            // The system may move a page at any time, which costs a fault as well: one round without any will do.
            while touched.len() < 60 && touched.last() != Some(&0) {
                let before = first_touches();
                (0..500).for_each(|_| everything(&mut request));
                touched.push(first_touches() - before);
                // What was written is given back.
                flushed();
            }
            assert_eq!(touched.last(), Some(&0), "{touched:?}");
            let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
            assert_eq!(stats.dropped_spans(), 0);
            // More was written than the pool ever had: it was memory that had been used before.
            assert!(stats.memory < 24 << 20, "{} bytes", stats.memory);
        })
        .env("STAGETRACE_MAPPING", mapping)
        .run();
    }
}

#[test]
fn the_configured_limit_is_kept_and_all_of_it_is_used() {
    for mebibytes in [1_usize, 2, 5] {
        alone(|| {
            let limit = std::env::var("TEST_LIMIT").unwrap().parse::<usize>().unwrap() << 20;
            let trace = start_with(|config| config.memory_limit(limit).mapping(Mapping::Memory));
            // Held, so that the pool must grow.
            let held: Vec<_> = (0..100_000).map(|_| span!("held")).collect();
            flushed();
            drop(held);
            let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
            assert_eq!(stats.memory, limit as u64);
            assert_eq!((stats.begun, stats.open), (100_000, 0));
        })
        .env("TEST_LIMIT", mebibytes.to_string())
        .run();
    }
}

#[test]
fn a_pool_takes_a_quarter_of_what_its_file_system_has_free() {
    let may = Command::new("unshare").args(["-m", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        println!("skipped: no right to mount");
        return;
    }
    for (mebibytes, filled) in [(64_u64, 0), (16, 0), (16, 8), (6, 0)] {
        // Only the process sees the mount, so nothing is left of it.
        let setup = format!(
            "mount -t tmpfs -o size={mebibytes}m tmpfs \"$1\"
             head -c {filled}M /dev/zero > \"$1/filler\""
        );
        let script = format!("{setup}\nshift; exec \"$@\"").replace('\'', r"'\''");
        alone(|| {
            let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap() << 20;
            let quarter = (number("TEST_SIZE") - number("TEST_FILLED")) / 4;
            // No .jsonl, which takes room as well.
            let trace = start_with(|config| config.jsonl(false).mapping(Mapping::RunDir));
            let recording = stagetrace::status().recording;
            // Held, so that the pool must grow: 20 MiB of them.
            let held: Vec<_> = (0..100_000).map(|_| span!("held")).collect();
            flushed();
            drop(held);
            let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
            if quarter >= 2 << 20 {
                assert!(recording.is_some(), "it is mapped");
                assert!(stats.memory <= quarter, "{} bytes, not {quarter}", stats.memory);
            }
            assert_eq!(stats.begun, 100_000);
        })
        .env("TEST_SIZE", mebibytes.to_string())
        .env("TEST_FILLED", filled.to_string())
        .after_shell(&format!("exec unshare -m sh -euc '{script}' sh \"$@\""))
        .run();
    }
}
