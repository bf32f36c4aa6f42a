//! How stages and requests end: well, with an error, by a panic, cancelled, dropped.

use futures_util::FutureExt;
use stagetrace::testing::capture;
use stagetrace::{Outcome, Traced, span, stage};
use stagetrace_tests::pipeline::{Generate, Pipeline, dispatch};
use stagetrace_tests::{Spans, alone, start};
use stagetrace_wire::span::{StatusCode, Value};
use std::fmt;
use std::future::pending;
use std::num::ParseIntError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

const ENDS: [&str; 3] = ["stagetrace.outcome", "stagetrace.end", "error.type"];

#[derive(Debug)]
struct ForwardError(ParseIntError);

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot run the model")
    }
}

impl std::error::Error for ForwardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[stage("plain")]
fn plain(text: &str) -> Result<u8, ForwardError> {
    text.parse().map_err(ForwardError)
}

#[stage("with_text", err)]
fn with_text(text: &str) -> Result<u8, ForwardError> {
    Ok(text.parse().map_err(ForwardError)?)
}

#[stage("not_judged", no_err)]
fn not_judged(text: &str) -> Result<u8, ForwardError> {
    text.parse().map_err(ForwardError)
}

#[stage("boxed")]
fn boxed() -> Result<(), Box<dyn std::error::Error>> {
    Err("no name".into())
}

#[stage("lookup")]
fn lookup(found: bool) -> Option<u8> {
    found.then_some(1)
}

#[stage("must_be_there", err)]
fn must_be_there(found: bool) -> Option<u8> {
    found.then_some(1)
}

#[stage("exit_code")]
fn exit_code(code: u8) -> ExitCode {
    ExitCode::from(code)
}

#[stage("panics")]
fn panics(now: bool) {
    assert!(!now, "as expected");
}

#[stage("waits")]
async fn waits() -> Result<(), ForwardError> {
    pending().await
}

#[stage("is_ready")]
async fn is_ready(text: &str) -> Result<u8, ForwardError> {
    text.parse().map_err(ForwardError)
}

#[stage("panics_later")]
async fn panics_later() {
    tokio::task::yield_now().await;
    panic!("as expected");
}

#[stage(Pipeline::GpuForward, request)]
async fn forward_of(request: &Generate, text: &str) -> Result<u8, ForwardError> {
    let _ = request;
    text.parse().map_err(ForwardError)
}

fn recorded(f: impl FnOnce()) -> Spans {
    Spans::from(capture(f).spans)
}

fn ends(f: impl FnOnce()) -> String {
    recorded(f).tree(&ENDS)
}

#[test]
fn a_success_leaves_the_status_unset() {
    let spans = recorded(|| {
        plain("1").unwrap();
        with_text("1").unwrap();
        lookup(false);
        exit_code(0);
        is_ready("1").now_or_never().expect("it is ready").unwrap();
        drop(span!("span"));
    });
    assert_eq!(spans.tree(&ENDS), "plain\nwith_text\nlookup\nexit_code\nis_ready\nspan\n");
    assert!(spans.iter().all(|span| span.status.code == StatusCode::Unset));
    assert!(spans.iter().all(|span| span.status.message.is_empty()));
}

#[test]
fn an_error_is_named_by_its_type_and_told_only_with_err() {
    let spans = recorded(|| {
        plain("x").unwrap_err();
        with_text("x").unwrap_err();
        not_judged("x").unwrap_err();
        boxed().unwrap_err();
    });
    let expected = "\
plain stagetrace.outcome=error error.type=ForwardError
with_text stagetrace.outcome=error error.type=ForwardError
not_judged
boxed stagetrace.outcome=error error.type=_OTHER
";
    assert_eq!(spans.tree(&ENDS), expected);
    let status = |name: &str| (spans.one(name).status.code, &*spans.one(name).status.message);
    assert_eq!(status("plain"), (StatusCode::Error, ""));
    let text = "cannot run the model: invalid digit found in string";
    assert_eq!(status("with_text"), (StatusCode::Error, text));
    assert_eq!(status("not_judged"), (StatusCode::Unset, ""));
}

#[test]
fn none_is_a_failure_only_with_err_and_an_exit_code_always() {
    let tree = ends(|| {
        lookup(false);
        must_be_there(false);
        exit_code(3);
    });
    let expected = "\
lookup
must_be_there stagetrace.outcome=error error.type=None
exit_code stagetrace.outcome=error error.type=ExitCode
";
    assert_eq!(tree, expected);
}

#[test]
fn a_panic_ends_every_stage_it_unwinds_and_the_context_is_as_before() {
    let spans = recorded(|| {
        let outer = span!("outer");
        outer.in_scope(|| {
            let request = Generate::begun("a");
            let inside = catch_unwind(AssertUnwindSafe(|| dispatch(&request, || panics(true))));
            assert!(inside.is_err());
            assert_eq!(stagetrace::current(), outer.position());
            panics(false);
        });
    });
    let expected = "\
outer
  panics
generate stagetrace.outcome=panic error.type=panic
  scheduler_dispatch stagetrace.outcome=panic error.type=panic
    panics stagetrace.outcome=panic error.type=panic
";
    assert_eq!(sorted(&spans.tree(&ENDS)), sorted(expected));
    assert_eq!(spans.one("scheduler_dispatch").status.code, StatusCode::Error);
}

#[test]
fn a_panic_of_a_future_ends_its_stage() {
    let tree = ends(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(panics_later())));
        assert!(panicked.is_err());
        assert!(stagetrace::current().is_null());
    });
    assert_eq!(tree, "panics_later stagetrace.outcome=panic error.type=panic\n");
}

#[test]
fn a_future_dropped_before_it_was_ready_is_cancelled_then_and_not_when_it_began() {
    let spans = alone(|| {
        let _trace = start();
        let runtime = runtime();
        runtime.block_on(async {
            let late = tokio::time::timeout(Duration::from_millis(50), waits()).await;
            assert!(late.is_err());
            tokio::select! {
                biased;
                _ = waits() => unreachable!("it waits for ever"),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            // Never polled: it did not begin.
            drop(waits());
            is_ready("1").await.unwrap();
        });
    })
    .run()
    .spans();
    let expected = "\
waits stagetrace.outcome=cancelled error.type=cancelled
waits stagetrace.outcome=cancelled error.type=cancelled
is_ready
";
    assert_eq!(spans.tree(&ENDS), expected);
    assert_eq!(spans[0].status.code, StatusCode::Error);
    let time = spans[0].end_unix_nano - spans[0].start_unix_nano;
    assert!(time >= 50_000_000, "{time} ns");
}

#[test]
fn an_aborted_task_is_cancelled() {
    let spans = alone(|| {
        let _trace = start();
        runtime().block_on(async {
            let task = tokio::spawn(waits());
            tokio::time::sleep(Duration::from_millis(5)).await;
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        });
    })
    .run()
    .spans();
    assert_eq!(spans.tree(&ENDS), "waits stagetrace.outcome=cancelled error.type=cancelled\n");
}

#[test]
fn a_future_that_is_dropped_while_another_one_panics_ends_as_panic() {
    let tree = ends(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let both = async {
            tokio::join!(waits().map(drop), panics_later());
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(both)));
        assert!(panicked.is_err());
    });
    assert!(tree.contains("panics_later stagetrace.outcome=panic error.type=panic\n"), "{tree}");
    assert!(tree.contains("waits stagetrace.outcome="), "{tree}");
}

#[test]
fn a_request_ends_as_its_answer_says() {
    let tree = ends(|| {
        Generate::begun("a").finish(Outcome::Ok);
        Generate::begun("b").finish(Outcome::HandedOver);
        Generate::begun("c").finish(&plain("x"));
        Generate::begun("d").finish(Outcome::Cancelled);
    });
    let roots: Vec<_> = tree.lines().filter(|line| line.starts_with("generate")).collect();
    let expected = [
        "generate stagetrace.outcome=ok",
        "generate stagetrace.outcome=handed_over",
        "generate stagetrace.outcome=error error.type=ForwardError",
        "generate stagetrace.outcome=cancelled error.type=cancelled",
    ];
    assert_eq!(roots, expected);
}

#[test]
fn a_request_that_is_dropped_says_so_without_being_a_failure() {
    let spans = recorded(|| drop(Generate::begun("a")));
    assert_eq!(spans.tree(&["stagetrace.end", "error.type"]), "generate stagetrace.end=dropped\n");
    assert_eq!(spans[0].status.code, StatusCode::Unset);
}

#[test]
fn a_dropped_request_ends_as_the_worst_of_its_stages() {
    let tree = ends(|| {
        let request = Generate::begun("a");
        forward_of(&request, "x").now_or_never().unwrap().unwrap_err();
        forward_of(&request, "1").now_or_never().unwrap().unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| dispatch(&request, || panic!("so"))));
        assert!(panicked.is_err());
        forward_of(&request, "x").now_or_never().unwrap().unwrap_err();
    });
    let expected = "\
generate stagetrace.outcome=panic error.type=panic
  gpu_forward stagetrace.outcome=error error.type=ForwardError
  gpu_forward
  scheduler_dispatch stagetrace.outcome=panic error.type=panic
  gpu_forward stagetrace.outcome=error error.type=ForwardError
";
    assert_eq!(tree, expected);
}

#[test]
fn a_cancelled_stage_makes_its_dropped_request_cancelled() {
    #[stage(Pipeline::GpuForward, request)]
    async fn endless(request: &Generate) {
        let _ = request;
        pending::<()>().await;
    }
    let tree = ends(|| {
        let request = Generate::begun("a");
        assert!(endless(&request).now_or_never().is_none());
    });
    let expected = "\
generate stagetrace.outcome=cancelled error.type=cancelled
  gpu_forward stagetrace.outcome=cancelled error.type=cancelled
";
    assert_eq!(tree, expected);
}

#[test]
fn a_span_ends_as_it_is_told() {
    let tree = ends(|| {
        span!("a").end(Outcome::Ok);
        span!("b").end(Outcome::Error);
        let failed: Result<(), ForwardError> = "x".parse::<u8>().map(drop).map_err(ForwardError);
        span!("c").end(&failed);
        span!("d").end(&Ok::<(), ForwardError>(()));
        span!("e").end(Outcome::Cancelled);
        let panicked = catch_unwind(|| {
            let _span = span!("f");
            panic!("as expected");
        });
        assert!(panicked.is_err());
    });
    let expected = "\
a
b stagetrace.outcome=error error.type=_OTHER
c stagetrace.outcome=error error.type=ForwardError
d
e stagetrace.outcome=cancelled error.type=cancelled
f stagetrace.outcome=panic error.type=panic
";
    // Roots of traces of their own are in the order in which they ended.
    assert_eq!(sorted(&tree), sorted(expected));
}

#[test]
fn the_first_answer_counts_and_later_ones_are_counted() {
    let spans = alone(|| {
        let trace = start();
        let mut request = Generate::begun("a");
        let clone = request.clone();
        clone.finish(Outcome::Ok);
        request.finish(&plain("x"));
        request.begin(None);
        drop(request);
        drop(clone);
        let stats = trace.shutdown(Duration::from_secs(10)).expect("the file can be written");
        assert_eq!((stats.finished_twice, stats.begun_twice), (1, 1));
    })
    .run()
    .spans();
    let root = spans.one("generate");
    assert_eq!(root.attribute("stagetrace.outcome"), Some(&Value::from("ok")));
}

#[test]
fn a_stage_that_consumes_its_request_ends_the_root_inside_itself() {
    #[stage(Pipeline::Decode, request)]
    fn consume(request: Generate) {
        drop(request);
    }
    let spans = recorded(|| consume(Generate::begun("a")));
    let tree = spans.tree(&["stagetrace.end", "error.type"]);
    assert_eq!(tree, "generate stagetrace.end=dropped\n  decode\n");
    assert!(spans.one("generate").end_unix_nano < spans.one("decode").end_unix_nano);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// The trees of a text in a fixed order.
fn sorted(tree: &str) -> Vec<String> {
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
