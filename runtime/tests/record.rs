//! What is recorded, and where it goes: each test is a capture, shown as an indented tree.

use stagetrace::testing::capture;
use stagetrace::{
    InSpan, Outcome, Position, Stages, TraceState, Traced, attach, current, event, span, stage,
};
use std::future::{pending, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[derive(Stages, Clone, Copy)]
enum Pipeline {
    #[stage(level = 1)]
    Dispatch,
    #[stage(level = 1, within = Dispatch)]
    Forward,
    #[stage(level = 3, within = Forward)]
    Step,
}

#[derive(Traced, Default)]
#[traced(name = "generate", stages = Pipeline)]
struct Request {
    #[traced(id)]
    id: String,
    #[traced(attr = "steps")]
    steps: u32,
    #[traced(state)]
    trace: TraceState,
}

fn request() -> Request {
    Request { id: "r-1".into(), steps: 20, ..Request::default() }
}

#[stage(Pipeline::Dispatch, request)]
fn dispatch(request: &Request) -> u32 {
    forward(request)
}

#[stage(Pipeline::Forward, request)]
fn forward(request: &Request) -> u32 {
    (0..request.steps).map(step).sum()
}

#[stage(Pipeline::Step, attrs("step" = n))]
fn step(n: u32) -> u32 {
    n
}

#[stage(Pipeline::Dispatch)]
fn fallible(fail: bool) -> Result<u32, std::num::ParseIntError> {
    if fail { "x".parse() } else { Ok(1) }
}

#[stage(Pipeline::Dispatch, request)]
async fn asynchronous(request: &Request) -> u32 {
    ready(request).await;
    step(1)
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_request_holds_its_stages_and_their_times() {
    let captured = capture(|| {
        let mut request = Request { steps: 2, ..request() };
        request.begin(None);
        dispatch(&request);
        request.finish(Outcome::Ok);
    });
    let tree = captured.tree(&["stagetrace.request.id", "steps", "step", "stagetrace.outcome"]);
    assert_eq!(
        tree,
        "generate stagetrace.request.id=r-1 steps=2 stagetrace.outcome=ok\n  dispatch\n    forward\n      \
         step step=0\n      step step=1\n"
    );
    let root = &captured.spans[0];
    assert_eq!(root.attribute("stagetrace.stage.step.count").and_then(|v| v.as_i64()), Some(2));
    let forward = captured.spans.iter().find(|span| span.name == "forward").unwrap();
    let seconds = root.attribute("stagetrace.stage.forward.duration").unwrap().as_f64();
    assert_eq!(seconds, Some(forward.duration_nano().unwrap() as f64 / 1e9));
}

#[test]
fn captures_are_the_same_in_every_run() {
    let once = || capture(|| drop(span!("a", "n" = 1))).spans;
    assert_eq!(once(), once());
}

#[test]
fn an_error_is_a_failure_and_success_says_nothing() {
    let captured = capture(|| (fallible(false), fallible(true)));
    let [ok, failed] = &captured.spans[..] else { panic!("{:?}", captured.spans) };
    assert_eq!((ok.status.code as u8, ok.attribute("stagetrace.outcome")), (0, None));
    assert_eq!(failed.status.code as u8, 2);
    assert_eq!(failed.attribute("error.type").unwrap().as_str(), Some("ParseIntError"));
    assert_eq!(failed.attribute("stagetrace.outcome").unwrap().as_str(), Some("error"));
}

#[test]
fn a_panic_ends_the_stages_it_passes() {
    #[stage(Pipeline::Forward)]
    fn fails() {
        panic!("no");
    }
    let captured = capture(|| {
        let outer = span!("outer");
        let caught = std::panic::catch_unwind(|| outer.in_scope(fails));
        assert!(caught.is_err());
        assert_eq!(current(), Position::NULL);
    });
    assert_eq!(
        captured.tree(&["stagetrace.outcome", "error.type"]),
        "outer\n  forward stagetrace.outcome=panic error.type=panic\n"
    );
}

#[test]
fn a_future_dropped_before_it_is_ready_is_cancelled() {
    #[stage(Pipeline::Forward)]
    async fn never() {
        pending::<()>().await;
    }
    let captured = capture(|| assert!(poll_once(never()).is_pending()));
    assert_eq!(captured.tree(&["error.type"]), "forward error.type=cancelled\n");
}

#[test]
fn a_future_that_is_never_polled_is_no_span() {
    let captured = capture(|| drop(asynchronous(&Request::default())));
    assert_eq!(captured.tree(&[]), "");
}

#[test]
fn an_async_stage_is_current_only_while_it_is_polled() {
    let captured = capture(|| {
        let mut request = request();
        request.begin(None);
        let first = asynchronous(&request);
        assert_eq!(current(), Position::NULL);
        assert!(poll_once(first).is_ready());
        assert_eq!(current(), Position::NULL);
    });
    assert_eq!(
        captured.tree(&["stagetrace.end"]),
        "generate stagetrace.end=dropped\n  dispatch\n    step\n"
    );
}

#[test]
fn a_request_that_is_dropped_takes_the_worst_outcome_of_its_stages() {
    #[stage(Pipeline::Dispatch, request)]
    fn fails(request: &Request) -> Result<(), std::fmt::Error> {
        let _ = request;
        Err(std::fmt::Error)
    }
    let captured = capture(|| {
        let mut request = request();
        request.begin(None);
        let _ = fails(&request);
    });
    assert_eq!(
        captured.tree(&["stagetrace.outcome", "error.type", "stagetrace.end"]),
        "generate stagetrace.outcome=error error.type=_OTHER\n  dispatch stagetrace.outcome=error error.type=fmt::Error\n"
    );
}

#[test]
fn a_misplaced_stage_is_marked_and_kept() {
    let captured = capture(|| {
        let request = request();
        #[stage(Pipeline::Dispatch)]
        fn outer() -> u32 {
            step(0)
        }
        outer();
        forward(&request);
    });
    assert_eq!(
        captured.tree(&["stagetrace.misplaced"]).lines().take(2).collect::<Vec<_>>(),
        ["dispatch", "  step stagetrace.misplaced=true"]
    );
}

#[test]
fn late_attributes_events_and_links_arrive_with_their_span() {
    let captured = capture(|| {
        let other = span!("other");
        let span = span!("span", "early" = 1, "both" = "first");
        span.set_attribute("late", "text");
        span.set_attribute("both", "second");
        span.link(other.position());
        span.in_scope(|| event!("happened", "n" = 3));
        other.position()
    });
    let span = captured.spans.iter().find(|span| span.name == "span").unwrap();
    let keys: Vec<&str> = span.attributes.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["early", "late", "both", "code.function.name"]);
    assert_eq!(span.attribute("both").unwrap().as_str(), Some("second"));
    assert_eq!(span.events[0].name, "happened");
    assert_eq!(span.events[0].attributes[0].1.as_i64(), Some(3));
    assert_eq!(Some(span.links[0].span_id), captured.output.span_id());
}

#[test]
fn a_text_that_is_too_long_is_cut_and_its_length_noted() {
    let long = "ü".repeat(3 << 20);
    let captured = capture(|| drop(span!("span", "text" = long.as_str(), "n" = 7)));
    let span = &captured.spans[0];
    let kept = span.attribute("text").unwrap().as_str().unwrap();
    assert!(kept.len() <= 32 * 1024 && kept.chars().all(|c| c == 'ü'), "{}", kept.len());
    let noted = span.attribute("stagetrace.cut.text").unwrap().as_i64();
    assert_eq!(noted, Some(long.len() as i64));
    assert_eq!(span.attribute("n").unwrap().as_i64(), Some(7));
}

#[test]
fn an_attribute_above_the_inline_room_is_whole() {
    let text = "x".repeat(5_000);
    let captured = capture(|| {
        #[stage("wide", attrs("text" = text))]
        fn wide(text: &str) {
            let _ = text;
        }
        wide(&text);
    });
    assert_eq!(captured.spans[0].attribute("text").unwrap().as_str(), Some(text.as_str()));
}

#[test]
fn guards_that_end_out_of_order_leave_no_span_current() {
    let captured = capture(|| {
        let (a, b) = (span!("a"), span!("b"));
        let outer = a.enter();
        let inner = b.enter();
        drop(outer);
        assert_eq!(current(), Position::NULL);
        drop(inner);
        assert_eq!(current(), Position::NULL);
        drop(span!("after"));
    });
    assert_eq!(captured.tree(&[]).lines().last(), Some("after"));
}

#[test]
fn an_attached_position_is_the_parent() {
    let captured = capture(|| {
        let parent = span!("parent");
        let _attached = attach(parent.position());
        step(1);
    });
    assert_eq!(captured.tree(&[]), "parent\n  step\n");
}

#[test]
fn a_stage_that_no_function_encloses_is_a_span_by_hand() {
    let captured = capture(|| {
        let dispatch = span!(stage = Pipeline::Dispatch);
        let forward = span!(stage = Pipeline::Forward, parent = dispatch.position(), "n" = 1);
        forward.in_scope(|| step(1));
    });
    assert_eq!(
        captured.tree(&["n", "stagetrace.misplaced"]),
        "dispatch\n  forward n=1\n    step\n"
    );
}

#[test]
fn a_future_in_a_span_ends_it_when_done() {
    let captured = capture(|| {
        let outer = span!("outer");
        let _ = poll_once(async { step(1) }.in_span(outer));
    });
    assert_eq!(captured.tree(&[]), "outer\n  step\n");
}

#[test]
fn a_discarded_span_is_not_exported_and_its_children_are() {
    let captured = capture(|| {
        let outer = span!("outer");
        outer.in_scope(|| step(1));
        outer.discard();
    });
    assert_eq!(captured.tree(&[]), "step\n");
}

#[test]
fn a_clone_is_a_handle_to_the_same_root() {
    let captured = capture(|| {
        let mut request = request();
        request.begin(None);
        let clone = request.trace.clone();
        request.finish(Outcome::Ok);
        drop(request);
        #[stage(Pipeline::Dispatch, state)]
        fn later(state: &TraceState) {
            let _ = state;
        }
        later(&clone);
    });
    assert_eq!(captured.tree(&[]), "generate\n  dispatch\n");
}

#[test]
fn a_request_that_began_twice_has_one_root() {
    let captured = capture(|| {
        let mut request = request();
        request.begin(None);
        request.begin(None);
        request.finish(Outcome::Ok);
        request.finish(Outcome::Error);
    });
    assert_eq!(captured.tree(&["stagetrace.outcome"]), "generate stagetrace.outcome=ok\n");
}

#[test]
fn a_remote_parent_is_marked_and_its_trace_goes_on() {
    let headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    let captured = capture(|| {
        let mut request = Request { trace: TraceState::from_headers(headers), ..request() };
        request.begin(None);
        dispatch(&Request { steps: 0, trace: request.trace.clone(), ..Request::default() });
    });
    let root = &captured.spans[0];
    assert_eq!(root.trace_id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(root.parent_span_id.unwrap().to_string(), "b7ad6b7169203331");
    assert_eq!(root.flags & 0x300, 0x300, "the parent is remote, and that is known");
    assert_eq!(captured.spans[1].flags & 0x300, 0x100);
}

#[test]
fn an_unsampled_parent_records_nothing_and_is_passed_on() {
    let headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")];
    let captured = capture(|| {
        let mut request = Request { trace: TraceState::from_headers(headers), ..request() };
        request.begin(None);
        dispatch(&request);
        serde_json::to_value(&request.trace).unwrap()
    });
    assert_eq!(captured.tree(&[]), "");
    let traceparent = captured.output["traceparent"].as_str().unwrap();
    assert!(traceparent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{traceparent}");
    assert!(traceparent.ends_with("-00"), "{traceparent}");
}

/// A result that cannot be judged.
struct Unjudgeable;

impl stagetrace::StageOutcome for Unjudgeable {
    type Error = std::convert::Infallible;
    fn failure(&self, _: bool) -> Option<stagetrace::Failure<'_, Self::Error>> {
        panic!("no verdict")
    }
}

#[test]
fn a_panic_in_the_judge_ends_the_stage_as_a_panic() {
    #[stage(Pipeline::Dispatch)]
    fn unjudgeable() -> Unjudgeable {
        Unjudgeable
    }
    let captured = capture(|| {
        assert!(std::panic::catch_unwind(unjudgeable).is_err());
        let by_hand = span!("by hand");
        let end = std::panic::AssertUnwindSafe(|| by_hand.end(&Unjudgeable));
        assert!(std::panic::catch_unwind(end).is_err());
        assert_eq!(current(), Position::NULL);
    });
    let tree = captured.tree(&["error.type"]);
    assert_eq!(tree, "dispatch error.type=panic\nby hand error.type=panic\n");
}

#[test]
fn a_guard_that_is_dropped_inside_a_poll_leaves_nothing_current() {
    let captured = capture(|| {
        let parent = span!("parent");
        let attached = attach(parent.position());
        let future = async move { drop(attached) };
        assert!(poll_once(future.in_span(span!("outer"))).is_ready());
        assert_eq!(current(), Position::NULL);
    });
    assert_eq!(captured.tree(&[]), "parent\n  outer\n");
}

#[test]
fn what_is_said_of_a_span_that_has_ended_does_not_show_in_the_next_capture() {
    let late = || {
        let position = span!("first").position();
        let _attached = attach(position);
        event!("too late");
    };
    assert_eq!(capture(late).tree(&[]), "first\n");
    for _ in 0..20 {
        assert_eq!(capture(|| drop(span!("second"))).tree(&[]), "second\n");
    }
}
