//! Spans of futures: interleaved on one worker, moved between workers, carried to tasks.

use futures_util::future::join_all;
use stagetrace::testing::capture;
use stagetrace::{InSpan, Outcome, Traced, current, event, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, decode};
use stagetrace_tests::{Spans, alone, start};
use stagetrace_wire::span::Value;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn two_workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[stage("step", attrs("n" = n))]
async fn step(n: u32) {
    yield_now().await;
    event!("in step", "n" = n);
    yield_now().await;
}

#[stage("task", attrs("n" = n))]
async fn task(n: u32) {
    for _ in 0..3 {
        let before = current();
        step(n).await;
        yield_now().await;
        assert_eq!(current(), before, "each poll finds its own span");
    }
    sync_step(n);
}

#[stage("sync_step", attrs("n" = n))]
fn sync_step(n: u32) {
    let _ = n;
}

#[stage(Pipeline::GpuForward, request)]
async fn forward(request: &Generate) {
    yield_now().await;
    decode(request);
    yield_now().await;
}

/// Each task has its own three steps, with its own number and event.
fn assert_eight_tasks(spans: &Spans) {
    assert_eq!(spans.all("task").len(), 8);
    for task in spans.all("task") {
        let n = task.attribute("n").expect("each task has a number");
        let children: Vec<_> =
            spans.iter().filter(|span| span.parent_span_id == Some(task.span_id)).collect();
        assert_eq!(children.len(), 4, "{}", spans.tree(&["n"]));
        assert!(children.iter().all(|child| child.attribute("n") == Some(n)));
        for step in children.iter().filter(|child| child.name == "step") {
            assert_eq!(step.events.len(), 1);
            assert_eq!(step.events[0].attributes, [("n".to_owned(), n.clone())]);
        }
    }
}

#[test]
fn futures_that_interleave_on_one_worker_keep_their_own_parents() {
    let spans = alone(|| {
        let _trace = start();
        one_thread().block_on(join_all((0..8).map(task)));
        assert!(current().is_null());
    })
    .run()
    .spans();
    assert_eight_tasks(&spans);
    assert!(spans.all("task").iter().all(|task| task.parent_span_id.is_none()));
}

#[test]
fn tasks_on_one_worker_keep_their_own_parents() {
    let spans = alone(|| {
        let _trace = start();
        one_thread().block_on(async {
            let tasks: Vec<_> = (0..8).map(|n| tokio::spawn(task(n))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    })
    .run()
    .spans();
    assert_eight_tasks(&spans);
}

#[test]
fn tasks_that_move_between_workers_keep_their_own_parents() {
    let spans = alone(|| {
        let _trace = start();
        two_workers().block_on(async {
            let tasks: Vec<_> = (0..8).map(|n| tokio::spawn(task(n))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    })
    .run()
    .spans();
    assert_eight_tasks(&spans);
}

#[test]
fn a_future_knows_its_parent_from_where_it_was_made() {
    let spans = alone(|| {
        let _trace = start();
        two_workers().block_on(async {
            let outer = span!("outer");
            let made = outer.in_scope(|| task(1));
            let spawned = tokio::spawn(made);
            spawned.await.unwrap();
            // Made outside, polled inside: it belongs to where it was made.
            let made = task(2);
            made.in_span(span!("around")).await;
        });
    })
    .run()
    .spans();
    let steps = "    step\n    step\n    step\n    sync_step\n";
    let alone = steps.replace("    ", "  ");
    let expected = format!("outer\n  task\n{steps}around\ntask\n{alone}");
    let tree = spans.tree(&[]);
    assert_eq!(sorted_trees(&tree), sorted_trees(&expected));
}

#[test]
fn the_stages_of_a_request_find_their_request_in_every_task() {
    let spans = alone(|| {
        let _trace = start();
        two_workers().block_on(async {
            let tasks = (0..8).map(|n| {
                let request = Generate::begun(&n.to_string());
                tokio::spawn(async move {
                    forward(&request).await;
                    request.finish(Outcome::Ok);
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
        });
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "generate\n  gpu_forward\n    decode\n".repeat(8));
    for root in spans.all("generate") {
        let count = root.attribute("stagetrace.stage.decode.count");
        assert_eq!(count, Some(&Value::I64(1)));
    }
}

#[test]
fn a_spawned_task_is_a_child_of_the_span_that_was_current() {
    let spans = alone(|| {
        let _trace = start();
        two_workers().block_on(async {
            let outer = span!("outer");
            let tasks: Vec<_> = outer.in_scope(|| {
                let inside = || async {
                    yield_now().await;
                    sync_step(1);
                    yield_now().await;
                };
                vec![
                    tokio::spawn(inside().in_current_span()),
                    tokio::spawn(inside().at_position(current())),
                    tokio::spawn(inside().in_span(span!("own"))),
                    tokio::spawn(inside()),
                ]
            });
            for task in tasks {
                task.await.unwrap();
            }
        });
    })
    .run()
    .spans();
    let tree = spans.tree_by_name();
    assert_eq!(tree, "outer\n  own\n    sync_step\n  sync_step\n  sync_step\nsync_step\n");
}

#[test]
fn a_span_of_a_future_ends_with_it() {
    let spans = alone(|| {
        let _trace = start();
        one_thread().block_on(async {
            let sleep = tokio::time::sleep(Duration::from_millis(30));
            sleep.in_span(span!("sleeps")).await;
            tokio::time::sleep(Duration::from_millis(30)).await;
            let forever = std::future::pending::<()>().in_span(span!("cut off"));
            assert!(tokio::time::timeout(Duration::from_millis(5), forever).await.is_err());
        });
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&[]), "sleeps\ncut off\n");
    let time = |name: &str| spans.one(name).duration_nano().unwrap();
    assert!((30_000_000..5_000_000_000).contains(&time("sleeps")), "{}", time("sleeps"));
    assert!(time("cut off") >= 5_000_000, "{}", time("cut off"));
}

#[test]
fn time_begins_at_the_first_poll() {
    let spans = alone(|| {
        let _trace = start();
        let made = task(1);
        std::thread::sleep(Duration::from_millis(30));
        drop(span!("before"));
        one_thread().block_on(made);
    })
    .run()
    .spans();
    assert!(spans.one("before").end_unix_nano <= spans.one("task").start_unix_nano);
}

#[test]
fn a_future_that_leaves_a_guard_behind_does_not_leak_it_into_the_next() {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let captured = capture(|| {
        let waker = Waker::from(Arc::new(Nobody));
        let mut poll = Context::from_waker(&waker);
        let kept = span!("kept");
        // The compiler refuses a guard across an await only where the future must be `Send`.
        #[expect(clippy::await_holding_invalid_type, reason = "this is what the test is about")]
        let leaks = async {
            let _entered = kept.enter();
            yield_now().await;
        };
        let mut leaks = Box::pin(leaks.in_span(span!("leaks")));
        assert_eq!(leaks.as_mut().poll(&mut poll), Poll::Pending);
        assert!(current().is_null(), "nothing of the future is left");
        sync_step(1);
        let mut other = Box::pin(async { sync_step(2) }.in_span(span!("other")));
        assert_eq!(other.as_mut().poll(&mut poll), Poll::Ready(()));
        assert_eq!(leaks.as_mut().poll(&mut poll), Poll::Ready(()));
        assert!(current().is_null());
    });
    let spans = Spans::from(captured.spans);
    let tree = spans.tree(&["n"]);
    for expected in ["\nsync_step n=1\n", "other\n  sync_step n=2\n"] {
        assert!(format!("\n{tree}").contains(expected), "{tree}");
    }
}

#[test]
fn deep_recursion_of_boxed_futures_fits_a_small_stack() {
    #[stage("deep")]
    fn deep(left: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            yield_now().await;
            if left == 0 { 0 } else { 1 + deep(left - 1).await }
        })
    }
    let spans = alone(|| {
        let _trace = start();
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let thread = thread.spawn(|| one_thread().block_on(deep(500))).unwrap();
        assert_eq!(thread.join().unwrap(), 500);
    })
    .run()
    .spans();
    assert_eq!(spans.len(), 501);
    assert_eq!(spans.iter().filter(|span| spans.parent(span).is_none()).count(), 1);
}

#[test]
fn a_flush_returns_inside_every_kind_of_runtime() {
    let spans = alone(|| {
        let _trace = start();
        let flush = async {
            step(1).await;
            let stats = stagetrace::flush(Duration::from_secs(2)).expect("well within 2 s");
            assert_eq!((stats.waiting, stats.sinks[0].queued), (0, 0));
        };
        one_thread().block_on(flush);
        let one_worker = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        one_worker.block_on(async {
            let task = tokio::spawn(async {
                step(2).await;
                stagetrace::flush(Duration::from_secs(2)).expect("well within 2 s");
            });
            task.await.unwrap();
        });
        std::panic::set_hook(Box::new(|_| {
            stagetrace::flush(Duration::from_secs(2)).expect("well within 2 s");
        }));
        assert!(std::panic::catch_unwind(|| panic!("as expected")).is_err());
        let _ = std::panic::take_hook();
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&["n"]), "step n=1\nstep n=2\n");
}

#[test]
fn a_staged_future_is_hardly_larger_than_the_bare_one() {
    async fn bare(bytes: [u8; 256]) -> u8 {
        yield_now().await;
        bytes[0]
    }
    #[stage("staged")]
    async fn staged(bytes: [u8; 256]) -> u8 {
        yield_now().await;
        bytes[0]
    }
    let (bare, staged) = (size_of_val(&bare([0; 256])), size_of_val(&staged([0; 256])));
    assert!(staged <= bare + 64, "{staged} bytes instead of {bare}");
}

/// The trees of a text, sorted.
fn sorted_trees(tree: &str) -> Vec<String> {
    let mut trees: Vec<String> = Vec::new();
    for line in tree.lines() {
        match trees.last_mut() {
            Some(last) if line.starts_with(' ') => *last += &format!("\n{line}"),
            _ => trees.push(line.to_owned()),
        }
    }
    trees.sort();
    trees
}
