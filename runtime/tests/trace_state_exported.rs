//! The `tracestate` that a request brings: which spans are exported with it, and how much of it.
#![cfg(not(stagetrace_off))]

use stagetrace::testing::capture;
use stagetrace::{Outcome, Parent, TraceState, Traced, stage};

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[derive(Default, Traced)]
#[traced(name = "generate")]
struct Request {
    #[traced(state)]
    trace: TraceState,
}

#[stage("forward", _request)]
fn forward(_request: &Request) {}

fn with(tracestate: &str) -> TraceState {
    TraceState::from_headers([("traceparent", TRACEPARENT), ("tracestate", tracestate)])
}

/// Names and trace states of the spans of a request that brings this and is served, by name.
fn exported(trace: TraceState, parent: Parent) -> Vec<(String, String)> {
    let captured = capture(|| {
        let mut request = Request { trace };
        request.begin(parent);
        forward(&request);
        request.finish(Outcome::Ok);
    });
    let spans = captured.spans.into_iter().filter(|span| span.name != "elsewhere");
    let mut spans: Vec<_> = spans.map(|span| (span.name, span.trace_state)).collect();
    spans.sort();
    spans
}

/// The trace state of such a request's root.
fn of_root(tracestate: &str) -> String {
    let spans = exported(with(tracestate), Parent::Carried);
    assert_eq!(spans[1].0, "generate");
    spans[1].1.clone()
}

fn named(states: [(&str, &str); 2]) -> Vec<(String, String)> {
    states.map(|(name, state)| (name.to_owned(), state.to_owned())).into()
}

#[test]
fn the_root_has_the_trace_state_that_came_and_spans_below_it_have_none() {
    let expected = named([("forward", ""), ("generate", "vendor=a,other=1")]);
    assert_eq!(exported(with("vendor=a, other=1"), Parent::Carried), expected);
    let headers = Parent::Headers(with("vendor=a,other=1"));
    assert_eq!(exported(TraceState::null(), headers), expected);
}

#[test]
fn a_request_that_brings_none_has_none() {
    let expected = named([("forward", ""), ("generate", "")]);
    assert_eq!(exported(TraceState::null(), Parent::Carried), expected);
    let carrier = TraceState::from_headers([("traceparent", TRACEPARENT)]);
    assert_eq!(exported(carrier, Parent::Carried), expected);
    assert_eq!(of_root("no member"), "", "an unreadable one is left out");
}

#[test]
fn what_came_of_another_trace_is_not_exported() {
    let captured = capture(|| {
        let outer = stagetrace::span!("outer");
        let mut request = Request { trace: with("vendor=a") };
        request.begin(outer.position());
        request.finish(Outcome::Ok);
    });
    assert_eq!(captured.spans.len(), 2);
    assert!(captured.spans.iter().all(|span| span.trace_state.is_empty()));
}

#[test]
fn of_a_long_trace_state_whole_members_are_left_out() {
    let member = |name: char, value: usize| format!("{name}={}", "v".repeat(value));
    let fits = [member('a', 253), member('b', 254)].join(",");
    assert_eq!(fits.len(), 512);
    assert_eq!(of_root(&fits), fits);
    // Those above 128 characters go first, from the right.
    let too_long =
        [member('a', 200), member('b', 100), member('c', 200), member('d', 100)].join(",");
    let left = [member('a', 200), member('b', 100), member('d', 100)].join(",");
    assert_eq!(of_root(&too_long), left);
    let many: Vec<_> = ('a'..='z').map(|name| member(name, 30)).collect();
    assert_eq!(of_root(&many.join(",")), many[..15].join(","));
}
