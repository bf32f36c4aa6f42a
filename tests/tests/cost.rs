//! After warm-up no span, whatever it has, allocates on the caller's thread.

use stagetrace::{InSpan, Outcome, Traced, attach, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode, dispatch, forward};
use stagetrace_tests::{alone, start_with};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

/// Counts what each thread allocates.
struct Counting;

/// Bytes that are allocated now, by all threads.
static LIVE: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    LIVE.fetch_add(bytes, Ordering::Relaxed);
    // At the very end of a thread nobody asks any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What this thread allocates in `times` calls of `f`, after it was called often enough to warm up.
/// Every few calls the collector gets the time to look, so that nothing is dropped.
fn allocations(times: u32, mut f: impl FnMut()) -> u64 {
    let mut counted = 0;
    for round in 0..4 {
        counted = 0;
        for call in 0..times {
            if call % 500 == 0 {
                std::thread::sleep(Duration::from_millis(if round == 0 { 20 } else { 10 }));
            }
            let before = ALLOCATIONS.get();
            f();
            counted += ALLOCATIONS.get() - before;
        }
    }
    counted
}

/// Runs a future that is ready whenever it is polled; without allocation.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[stage("plain")]
fn plain() {}

#[stage(
    "with_attributes",
    attrs("text" = text, "n" = n, "x" = 0.5, "yes" = true, "texts" = ["a", "b"])
)]
fn with_attributes(text: &str, n: u32) {
    let _ = (text, n);
}

#[stage("fallible")]
fn fallible(fails: bool) -> Result<(), std::fmt::Error> {
    if fails { Err(std::fmt::Error) } else { Ok(()) }
}

#[stage("ready")]
async fn ready() {}

#[stage("pending_once", attrs("n" = n))]
async fn pending_once(n: u32) {
    let _ = n;
    let mut polled = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut polled, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[stage(Pipeline::GpuForward, request)]
async fn forward_later(request: &Generate) {
    decode(request);
}

#[test]
fn nothing_that_records_a_span_allocates_after_warm_up() {
    alone(|| {
        let trace = start_with(|config| config.level(3));
        let span = span!("long");
        let position = span.position();
        let request = std::cell::RefCell::new(Generate::new("a request of middling length", 2));
        let kinds: [(&str, &mut dyn FnMut()); 14] = [
            ("a stage", &mut plain),
            ("a stage with attributes", &mut || with_attributes("some text", 7)),
            ("stages within stages", &mut || span.in_scope(plain)),
            ("a success", &mut || fallible(false).unwrap()),
            ("a failure", &mut || fallible(true).unwrap_err().clone_from(&std::fmt::Error)),
            ("a ready future", &mut || run(ready())),
            ("a pending future with an attribute", &mut || run(pending_once(7))),
            ("a span", &mut || drop(span!("span", "n" = 7, "text" = "some text"))),
            ("a future in a span", &mut || run(ready().in_span(span!("around")))),
            ("an attached position", &mut || {
                let _attached = attach(position);
                plain();
                let _ = current();
            }),
            ("an event", &mut || span.in_scope(|| event!("event", "text" = "some text", "n" = 7))),
            ("a late attribute", &mut || span!("s").set_attribute("late", "some text")),
            ("a request with stages", &mut || {
                let mut request = request.borrow_mut();
                request.begin(None);
                dispatch(&request, || {
                    forward(&request);
                    run(forward_later(&request));
                });
                request.finish(Outcome::Ok);
                request.trace = stagetrace::TraceState::null();
            }),
            ("a clone of a request's trace", &mut || {
                let mut request = request.borrow_mut();
                request.begin(None);
                drop(request.trace.clone());
                request.trace = stagetrace::TraceState::null();
            }),
        ];
        for (what, f) in kinds {
            assert_eq!(allocations(1000, f), 0, "{what}");
        }
        drop(span);
        let stats = trace.shutdown(Duration::from_secs(20)).unwrap();
        assert_eq!(stats.dropped_spans(), 0);
    })
    .run();
}

#[stage("nested")]
fn nested(left: u32) {
    if left > 0 {
        nested(left - 1);
    }
}

/// Records when its thread is torn down.
struct AtTheEnd;

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        nested(40);
        let span = span!("span");
        span.in_scope(|| drop(Generate::begun("at the end")));
    }
}

thread_local! {
    static AT_THE_END: AtTheEnd = const { AtTheEnd };
}

#[test]
fn threads_that_come_and_go_leave_nothing_allocated() {
    alone(|| {
        let trace = start_with(|config| config);
        // What the collector keeps of its batches comes and goes, what is lost stays: so the lowest
        // count of each half tells.
        let mut lowest = [i64::MAX; 2];
        let mut live = Vec::new();
        for number in 0..10_000 {
            std::thread::spawn(move || {
                // The destructor runs after the recorder's own, or before it.
                if number % 2 == 0 {
                    AT_THE_END.with(|_| ());
                }
                with_attributes("first words", 1);
                AT_THE_END.with(|_| ());
            })
            .join()
            .unwrap();
            // What 50 threads record has room in the first step of memory, however late the collector comes.
            if number % 50 == 49 {
                stagetrace_tests::flushed();
            }
            if number >= 2000 && number % 500 == 499 {
                live.push(LIVE.load(Ordering::Relaxed));
                let half = &mut lowest[usize::from(number >= 6000)];
                *half = live[live.len() - 1].min(*half);
            }
        }
        let grown = lowest[1] - lowest[0];
        assert!(grown < 64 * 4000, "{grown} bytes by 4000 threads: {live:?}");
        assert_eq!(trace.shutdown(Duration::from_secs(20)).unwrap().dropped_spans(), 0);
    })
    .run();
}

#[test]
fn the_counter_sees_an_allocation() {
    assert_eq!(allocations(10, || drop(std::hint::black_box(Box::new(1)))), 10);
}
