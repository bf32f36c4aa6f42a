//! Spans with everything that a span can have.

use serde_json::json;
use stagetrace::{Outcome, Position, Stages, TraceState, Traced, event, span, stage};
use stagetrace_wire::context::TraceContext;
use stagetrace_wire::id::{SpanId, TraceId};

#[derive(Stages, Clone, Copy)]
enum Pipeline {
    #[stage(level = 1)]
    Dispatch,
    #[stage(within = Dispatch)]
    Forward,
}

#[derive(Traced)]
#[traced(name = "generate", stages = Pipeline)]
struct Request {
    #[traced(id)]
    id: String,
    #[traced(attr = "gen_ai.request.model")]
    model: String,
    #[traced(attr = "diffusion.steps")]
    steps: u32,
    #[traced(state)]
    trace: TraceState,
}

#[stage(Pipeline::Dispatch, request, kind = server)]
fn dispatch(request: &Request) {
    let _ = forward(request, 3);
    let _ = forward(request, 4);
}

#[stage(Pipeline::Forward, _request, attrs("step" = step), kind = client, err)]
fn forward(_request: &Request, step: u32) -> Result<u32, std::num::ParseIntError> {
    event!("kernel", "name" = "attention", "blocks" = 64, "ratio" = 0.5);
    event!("bare");
    if step == 3 { Ok(step) } else { "four".parse() }
}

#[stage("produce", kind = producer)]
fn produce() {
    consume();
}

#[stage("consume", kind = consumer)]
fn consume() {
    plain("short", None);
}

/// What most spans are, with each kind of attribute that stands beside a span from its begin.
#[stage(
    "plain",
    attrs(
        "text" = text,
        "absent" = absent,
        "a.key.that.is.longer.than.most.keys.are" = -7,
        "long" = "o".repeat(200),
        "int" = 300_000_000_000_i64,
        "double" = 0.25,
        "bool" = true,
        "ints" = [1_i64, -2],
    )
)]
pub(crate) fn plain(text: &str, absent: Option<i64>) {
    let _ = (text, absent);
}

/// Records everything that a span can have.
pub(crate) fn everything() {
    let carrier = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "vendor=a",
    });
    let mut request = Request {
        id: "r-17 é".to_owned(),
        model: "digits".to_owned(),
        steps: 30,
        trace: serde_json::from_value(carrier).expect("a carrier"),
    };
    request.begin(None);
    dispatch(&request);
    request.finish(Outcome::Ok);
    produce();

    drop(span!("alone", "at" = 1.5, "text" = "inline é", "none" = None::<i64>));
    let values = span!("values", "text" = "inline é", "empty" = "", "none" = None::<i64>);
    values.set_attribute("bool", true);
    values.set_attribute("int", i64::MIN);
    values.set_attribute("unsigned", u64::MAX);
    values.set_attribute("double", 0.1);
    values.set_attribute("infinite", f64::INFINITY);
    values.set_attribute("bytes", &b"\x00\xff\x10"[..]);
    values.set_attribute("ints", [1_i64, -2, i64::MAX]);
    values.set_attribute("doubles", [0.5, -1e300]);
    values.set_attribute("bools", [true, false]);
    values.set_attribute("texts", ["stop", "", "é"]);
    values.set_attribute("no texts", Vec::<String>::new());
    values.set_attribute("text", "replaced");
    values.link(request_of_another_process());
    let linked = span!("linked", parent = request_of_another_process(), "at" = 1.5);
    values.link(linked.position());
    linked.end(Outcome::Cancelled);
    drop(values);

    let crowded = span!("crowded");
    for number in 0..20 {
        crowded.set_attribute(&format!("key {number}"), number);
        crowded.add_event("event", &[("a", &1), ("b", &2), ("c", &3)]);
        crowded.link(request_of_another_process());
    }
    drop(crowded);
    let panicked = std::panic::catch_unwind(|| span!("panics").in_scope(|| panic!("on purpose")));
    assert!(panicked.is_err());
}

fn request_of_another_process() -> Position {
    let context = TraceContext {
        trace_id: TraceId::from_u128(0xABC).expect("not 0"),
        span_id: SpanId::from_u64(0xDEF).expect("not 0"),
        flags: stagetrace_wire::context::TraceFlags::SAMPLED,
    };
    Position::remote(context, 2)
}
