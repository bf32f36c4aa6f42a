//! Cases in bursts: so many spans are timed on the hot thread, then all has to leave, and the process's CPU time over both
//! is what they cost in total.

use super::Size;
use super::case::Case;
use super::sample::Samples;
use crate::measure::{Allocations, Work, count, floor, process_cpu};
use crate::peers::Peer;
use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Children below each root where the case does not say.
const CHILDREN: usize = 100;
/// Work between spans takes long, so a burst of it has fewer.
const WORKED: usize = 5_000;
/// Each async span is a message in fastrace's queue of 10 240, and so is each poll of one that yields.
const READY: usize = 5_000;
const YIELDING: usize = 1_000;
/// Requests that are open at once, on their way through a channel.
const REQUESTS: usize = 500;

/// One burst.
struct Burst {
    /// What its time is divided by.
    units: usize,
    /// Spans that must leave.
    spans: usize,
}

/// Measures a case that comes in bursts.
pub(super) fn measure<P: Peer>(case: Case, size: Size) -> Samples {
    match case {
        Case::Span(children) => in_roots::<P>(size, children, Leaving::All, P::child),
        Case::Consecutive(children) => consecutive::<P>(size, children),
        Case::Off => in_roots::<P>(size, CHILDREN, Leaving::Nothing, P::child),
        Case::NotSampled => not_sampled::<P>(size),
        Case::AboveLevel => in_roots::<P>(size, CHILDREN, Leaving::Roots, P::detail),
        Case::Attributes
        | Case::SpanData { has_attributes: true }
        | Case::Otlp { has_attributes: true } => {
            in_roots::<P>(size, CHILDREN, Leaving::All, P::child_with_attributes)
        }
        Case::AsyncReady => in_futures::<P, _>(size.spans.min(READY), size, P::ready),
        Case::AsyncYield => in_futures::<P, _>(size.spans.min(YIELDING), size, P::yielding),
        Case::Threads(threads) => on_threads::<P>(threads, size),
        Case::Channel => across_a_channel::<P>(size),
        Case::Work => around_work::<P>(size),
        _ => in_roots::<P>(size, CHILDREN, Leaving::All, P::child),
    }
}

/// Which spans are recorded, and must leave.
enum Leaving {
    All,
    Roots,
    Nothing,
}

/// Spans in a loop, below roots with so many children each.
fn in_roots<P: Peer>(
    size: Size,
    children: usize,
    leaving: Leaving,
    child: impl Fn(usize),
) -> Samples {
    let roots = roots(size.spans, children);
    let units = roots * (children + 1);
    let spans = match leaving {
        Leaving::All => units,
        Leaving::Roots => roots,
        Leaving::Nothing => 0,
    };
    bursts::<P>(size, Burst { units, spans }, || {
        timed(|| (0..roots).for_each(|_| P::in_root(|| (0..children).for_each(&child))))
    })
}

/// Spans that follow each other, below roots with so many children each.
fn consecutive<P: Peer>(size: Size, children: usize) -> Samples {
    let roots = roots(size.spans, children);
    let units = roots * (children + 1);
    bursts::<P>(size, Burst { units, spans: units }, || {
        timed(|| (0..roots).for_each(|_| P::in_root(|| P::consecutive(children))))
    })
}

fn not_sampled<P: Peer>(size: Size) -> Samples {
    let roots = roots(size.spans, CHILDREN);
    bursts::<P>(size, Burst { units: roots * (CHILDREN + 1), spans: 0 }, || {
        timed(|| {
            (0..roots).for_each(|_| P::in_unsampled_root(|| (0..CHILDREN).for_each(P::child)));
        })
    })
}

/// Roots with so many children each that make about so many spans.
fn roots(spans: usize, children: usize) -> usize {
    (spans / (children + 1)).max(1)
}

/// Does the bursts. `burst` gives the time on the hot thread.
fn bursts<P: Peer>(size: Size, each: Burst, mut burst: impl FnMut() -> Duration) -> Samples {
    let mut samples = Samples::default();
    let mut expected = 0;
    let per_unit = |time: Duration| time.as_nanos() as f64 / each.units as f64;
    for i in 0..size.warm_up + size.bursts {
        let floor = floor();
        let cpu = process_cpu();
        let hot = burst();
        P::flush();
        let cpu = process_cpu() - cpu;
        expected += each.spans;
        if i >= size.warm_up {
            samples.floor.push(floor);
            samples.hot.push(per_unit(hot));
            samples.total.push(per_unit(cpu));
        }
    }
    count(true);
    let before = Allocations::now();
    burst();
    let here = Allocations::since(before).here;
    P::flush();
    let everywhere = Allocations::since(before).everywhere;
    count(false);
    expected += each.spans;
    samples.note("allocs", here as f64 / each.units as f64);
    samples.note("allocs_total", everywhere as f64 / each.units as f64);
    note_exported::<P>(&mut samples, expected);
    samples
}

/// Waits until all has left, or no more does, and notes which part that is.
fn note_exported<P: Peer>(samples: &mut Samples, expected: usize) {
    if !P::RECORDS {
        return;
    }
    if expected == 0 {
        assert_eq!(P::exported(), 0, "nothing was to be recorded");
        return;
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    while P::exported() < expected as u64 && Instant::now() < deadline {
        P::flush();
        std::thread::sleep(Duration::from_millis(20));
    }
    samples.note("exported", P::exported() as f64 / expected as f64);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Async roots on an executor of one thread.
fn in_futures<P: Peer, F: Future<Output = ()>>(
    spans: usize,
    size: Size,
    root: impl Fn(usize) -> F,
) -> Samples {
    let roots = roots(spans, CHILDREN);
    let runtime = Builder::new_current_thread().build().expect("it has no drivers that could fail");
    let each = Burst { units: roots * CHILDREN, spans: roots * (CHILDREN + 1) };
    bursts::<P>(size, each, || {
        timed(|| (0..roots).for_each(|_| runtime.block_on(root(black_box(CHILDREN)))))
    })
}

/// The same burst on several threads at once; the time is the mean of theirs.
fn on_threads<P: Peer>(threads: usize, size: Size) -> Samples {
    let roots = roots(size.spans, CHILDREN);
    let spans = roots * (CHILDREN + 1);
    let (begin, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let (time, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let worker = || {
        loop {
            begin.wait();
            if is_done.load(Ordering::Relaxed) {
                return;
            }
            let taken =
                timed(|| (0..roots).for_each(|_| P::in_root(|| (0..CHILDREN).for_each(P::child))));
            time.fetch_add(taken.as_nanos() as u64, Ordering::Relaxed);
            end.wait();
        }
    };
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| _ = scope.spawn(worker));
        // Per span of one thread, in time; all spans for the CPU time.
        let each = Burst { units: spans * threads, spans: spans * threads };
        let samples = bursts::<P>(size, each, || {
            time.store(0, Ordering::Relaxed);
            begin.wait();
            end.wait();
            Duration::from_nanos(time.load(Ordering::Relaxed))
        });
        is_done.store(true, Ordering::Relaxed);
        begin.wait();
        samples
    })
}

/// Requests begin on this thread; when all are on their way, another one serves them. The time is that of both.
fn across_a_channel<P: Peer>(size: Size) -> Samples {
    let (requests, received) = mpsc::channel::<P::Request>();
    let (go, gone) = mpsc::channel::<()>();
    let (done, finished) = mpsc::channel::<Duration>();
    let server = std::thread::spawn(move || {
        for () in gone {
            let taken = timed(|| received.try_iter().for_each(|request| P::serve(request, 10)));
            if done.send(taken).is_err() {
                return;
            }
        }
    });
    let each = Burst { units: REQUESTS, spans: REQUESTS * 12 };
    let samples = bursts::<P>(size, each, || {
        let began = timed(|| {
            for _ in 0..REQUESTS {
                requests.send(P::begin()).expect("the server runs");
            }
        });
        go.send(()).expect("the server runs");
        began + finished.recv().expect("the server runs")
    });
    drop(go);
    server.join().expect("the server does not panic");
    samples
}

/// Spans around work, less the same work without: what is left may be less than nothing, by chance.
fn around_work<P: Peer>(size: Size) -> Samples {
    let roots = (size.spans.min(WORKED) / CHILDREN).max(1);
    let work = RefCell::new(Work::new());
    let each = Burst { units: roots * CHILDREN, spans: roots * (CHILDREN + 1) };
    let run = || work.borrow_mut().run();
    let mut alone = Vec::new();
    let units = each.units as f64;
    let mut samples = bursts::<P>(size, each, || {
        let bare = timed(|| (0..roots * CHILDREN).for_each(|_| run()));
        alone.push(bare.as_nanos() as f64 / units);
        timed(|| {
            (0..roots)
                .for_each(|_| P::in_root(|| (0..CHILDREN).for_each(|_| P::child_around(run))));
        })
    });
    for (hot, alone) in samples.hot.iter_mut().zip(&alone[size.warm_up..]) {
        *hot -= alone;
    }
    // It is mostly the work's.
    samples.total.clear();
    samples
}
