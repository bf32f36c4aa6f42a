//! The trace state of a request that has begun: what it sends, and who may end it.

use std::num::ParseIntError;
use std::panic::catch_unwind;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stagetrace::testing::capture;
use stagetrace::{Carrier, Outcome, Parent, Stages, TraceState, Traced, stage};

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[derive(Stages, Clone, Copy)]
enum Pipeline {
    #[stage(level = 1)]
    SchedulerDispatch,
    #[stage(within = SchedulerDispatch)]
    GpuForward,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Traced)]
#[traced(name = "generate", stages = Pipeline)]
struct Request {
    steps: u32,
    #[traced(state)]
    #[serde(default)]
    trace: TraceState,
}

#[stage(Pipeline::SchedulerDispatch, _request)]
fn dispatch<R>(_request: &Request, body: impl FnOnce() -> R) -> R {
    body()
}

#[stage(Pipeline::SchedulerDispatch, _request)]
fn dispatch_checked(
    _request: &Request,
    result: Result<u8, ParseIntError>,
) -> Result<u8, ParseIntError> {
    result
}

#[stage(Pipeline::GpuForward)]
fn forward<R>(body: impl FnOnce() -> R) -> R {
    body()
}

fn begun(parent: impl Into<Parent>) -> Request {
    let mut request = Request::default();
    request.begin(parent);
    request
}

fn received(carrier: Value) -> Request {
    serde_json::from_value(json!({"steps": 30, "trace": carrier})).unwrap()
}

/// What the request would send on.
fn sent(request: &Request) -> Value {
    serde_json::to_value(&request.trace).unwrap()
}

/// Trace id, span id and flags of what it would send on.
fn place(request: &Request) -> (String, String, String) {
    let carrier = sent(request);
    let mut fields = carrier["traceparent"].as_str().expect("a traceparent").split('-');
    let mut field = || fields.next().expect("four fields").to_owned();
    assert_eq!(field(), "00");
    (field(), field(), field())
}

#[test]
fn without_recorder_null_stays_null_and_remote_goes_on_as_it_came() {
    let mut request = begun(None);
    assert!(request.trace.is_null());
    request.finish(Outcome::Ok);

    let carrier = json!({"traceparent": TRACEPARENT, "tracestate": "b=2, a=1", "later": [1.5]});
    request = received(carrier.clone());
    request.begin(None);
    assert_eq!(dispatch(&request, || sent(&request)), carrier);
}

#[test]
fn a_root_without_parent_begins_a_sampled_random_trace() {
    capture(|| {
        let request = begun(None);
        let (_, _, flags) = place(&request);
        assert_eq!(flags, "03");
        assert_ne!(place(&request).0, place(&begun(None)).0);
    });
}

#[test]
fn ids_are_fixed_at_begin() {
    capture(|| {
        let mut request = begun(None);
        let before = sent(&request);
        request.begin(None);
        request.begin(begun(None).trace.position());
        request.begin(Parent::from_headers([("traceparent", TRACEPARENT)]));
        assert_eq!(sent(&request), before);
    });
}

#[test]
fn a_root_goes_under_what_came_with_the_request_and_forwards_the_rest() {
    capture(|| {
        let mut request = received(json!({
            "traceparent": TRACEPARENT,
            "tracestate": "vendor=a b, other=1",
            "baggage": "tenant=acme",
            "level": 4,
            "stage": "router",
            "later": {"z": 1, "a": [null]},
        }));
        request.begin(None);
        let (trace, span, flags) = place(&request);
        assert_eq!((&*trace, &*flags), (TRACE, "01"));
        assert_ne!(span, "b7ad6b7169203331");
        let mut carrier = sent(&request);
        carrier["traceparent"].take();
        let forwarded = json!({
            "traceparent": null,
            "tracestate": "vendor=a b, other=1",
            "baggage": "tenant=acme",
            "level": 4,
            "stage": "router",
            "later": {"z": 1, "a": [null]},
        });
        assert_eq!(carrier, forwarded);
    });
}

#[test]
fn a_root_goes_under_a_position_or_headers_if_told_so() {
    capture(|| {
        let outer = begun(None);
        assert_eq!(place(&begun(outer.trace.position())).0, place(&outer).0);

        let headers = [("traceparent", TRACEPARENT), ("baggage", "k=v")];
        let request = begun(Parent::from_headers(headers));
        assert_eq!(place(&request).0, TRACE);
        assert_eq!(sent(&request)["baggage"], "k=v");
    });
}

#[test]
fn a_request_that_is_not_sampled_sends_that_on() {
    capture(|| {
        let mut request = received(json!({"traceparent": TRACEPARENT.replace("-01", "-00")}));
        request.begin(None);
        let (trace, span, flags) = place(&request);
        assert_eq!((&*trace, &*flags), (TRACE, "00"));
        assert_ne!(span, "0000000000000000");
    });
}

#[test]
fn a_clone_is_another_handle_to_the_same_root() {
    capture(|| {
        let request = begun(None);
        let clone = request.clone();
        let before = sent(&request);
        drop(request);
        assert_eq!(sent(&clone), before);
    });
}

#[test]
fn a_live_request_moves_to_another_thread() {
    capture(|| {
        let request = begun(None);
        let before = sent(&request);
        let moved = std::thread::spawn(move || sent(&request)).join().unwrap();
        assert_eq!(moved, before);
    });
}

#[test]
fn a_finished_request_still_sends_its_trace() {
    capture(|| {
        let request = begun(None);
        let before = sent(&request);
        request.finish(Outcome::HandedOver);
        request.clone().finish(&Err::<(), _>("too late"));
        assert_eq!(sent(&request), before);
    });
}

/// How the roots and stages that `f` records end.
fn ends(f: impl FnOnce()) -> String {
    capture(f).tree(&["stagetrace.outcome", "stagetrace.end", "error.type"])
}

#[test]
fn the_first_finish_of_all_handles_wins() {
    let tree = ends(|| {
        let request = begun(None);
        let clone = request.clone();
        clone.finish(Outcome::HandedOver);
        request.finish(&Err::<(), _>("too late"));
    });
    assert_eq!(tree, "generate stagetrace.outcome=handed_over\n");
}

#[test]
fn a_request_finishes_with_the_value_it_was_answered_with() {
    assert_eq!(ends(|| begun(None).finish(&Ok::<(), ()>(()))), "generate stagetrace.outcome=ok\n");
    assert_eq!(
        ends(|| begun(None).finish(&"x".parse::<u8>())),
        "generate stagetrace.outcome=error error.type=ParseIntError\n"
    );
}

#[test]
fn stages_attach_to_a_finished_root() {
    let tree = ends(|| {
        let request = begun(None);
        request.finish(Outcome::Ok);
        dispatch(&request, || ());
    });
    assert_eq!(tree, "generate stagetrace.outcome=ok\n  scheduler_dispatch\n");
}

#[test]
fn the_drop_of_the_last_handle_ends_the_root() {
    let tree = ends(|| drop(begun(None)));
    assert!(tree.ends_with(" stagetrace.end=dropped\n") && !tree.contains("error"), "{tree}");
    let tree = ends(|| {
        let request = begun(None);
        drop(request.clone());
        std::mem::forget(request);
    });
    assert_eq!(tree, "", "a clone is not the last handle");
}

#[test]
fn a_dropped_root_ends_as_the_worst_of_its_stages_did() {
    let tree = ends(|| {
        let request = begun(None);
        let failed = dispatch_checked(&request, "x".parse());
        assert!(failed.is_err());
        dispatch(&request, || ());
    });
    let (root, stages) = tree.split_once('\n').expect("a root and its stages");
    assert!(root.starts_with("generate stagetrace.outcome=error"), "{tree}");
    assert_eq!(
        stages,
        "  scheduler_dispatch stagetrace.outcome=error error.type=ParseIntError\n  \
         scheduler_dispatch\n"
    );
}

#[test]
fn a_root_that_is_dropped_while_unwinding_ends_as_a_panic() {
    let tree = ends(|| {
        let panicked = catch_unwind(|| {
            let _request = begun(None);
            panic!("as expected");
        });
        assert!(panicked.is_err());
    });
    assert!(tree.starts_with("generate stagetrace.outcome=panic"), "{tree}");
}

#[test]
fn a_forgotten_handle_leaves_the_root_open() {
    assert_eq!(ends(|| std::mem::forget(begun(None))), "");
}

#[test]
fn inside_a_stage_that_stage_is_sent_and_outside_the_root() {
    capture(|| {
        let request = begun(None);
        let (trace, root, _) = place(&request);
        assert_eq!(sent(&request).get("stage"), None);
        dispatch(&request, || {
            let dispatch = place(&request);
            assert_eq!((&dispatch.0, dispatch.1 == root), (&trace, false));
            assert_eq!(sent(&request)["stage"], "scheduler_dispatch");
            forward(|| {
                let forward = place(&request);
                assert_eq!(forward.0, trace);
                assert!(forward.1 != root && forward.1 != dispatch.1);
                assert_eq!(sent(&request)["stage"], "gpu_forward");
            });
            assert_eq!(place(&request), dispatch);
        });
        assert_eq!(place(&request).1, root);
        assert_eq!(sent(&request)["stage"], "scheduler_dispatch");
    });
}

#[test]
fn inside_a_stage_of_another_request_the_root_is_sent() {
    capture(|| {
        let (request, other) = (begun(None), begun(None));
        let before = place(&request);
        assert_eq!(dispatch(&other, || place(&request)), before);
    });
}

#[test]
fn a_remote_request_sends_the_stage_it_is_in_and_then_what_came_again() {
    capture(|| {
        let carrier = json!({"traceparent": TRACEPARENT, "tracestate": "a=1", "level": 3, "x": 1});
        let request = received(carrier.clone());
        let ((trace, span, _), inside) = dispatch(&request, || (place(&request), sent(&request)));
        assert_eq!((&*trace, span == "b7ad6b7169203331"), (TRACE, false));
        assert_eq!(inside["stage"], "scheduler_dispatch");
        assert_eq!((&inside["tracestate"], &inside["x"]), (&json!("a=1"), &json!(1)));
        assert_eq!(sent(&request), carrier);
    });
}

#[test]
fn the_receiver_of_a_live_request_reads_a_remote_of_the_same_place() {
    capture(|| {
        let request = begun(None);
        let carrier = sent(&request);
        let config = bincode::config::standard();
        let mut cbor = Vec::new();
        ciborium::into_writer(&request, &mut cbor).unwrap();
        let arrays = rmp_serde::to_vec(&request).unwrap();
        let maps = rmp_serde::to_vec_named(&request).unwrap();
        let binary = bincode::serde::encode_to_vec(&request, config).unwrap();
        let copies: [Request; 6] = [
            serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap(),
            rmp_serde::from_slice(&arrays).unwrap(),
            rmp_serde::from_slice(&maps).unwrap(),
            ciborium::from_reader(&cbor[..]).unwrap(),
            bincode::serde::decode_from_slice(&binary, config).unwrap().0,
            postcard::from_bytes(&postcard::to_stdvec(&request).unwrap()).unwrap(),
        ];
        for mut copy in copies {
            assert_eq!(sent(&copy), carrier);
            // Not another handle: it may begin a root of its own under the sender's.
            copy.begin(None);
            assert_eq!(place(&copy).0, place(&request).0);
            assert_ne!(place(&copy).1, place(&request).1);
        }
    });
}

#[test]
fn debug_names_the_trace_of_a_live_request() {
    capture(|| {
        let request = begun(Parent::from_headers([("traceparent", TRACEPARENT)]));
        assert_eq!(format!("{:?}", request.trace), format!("TraceState(live {TRACE})"));
    });
}
