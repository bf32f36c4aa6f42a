//! Every header case of Trace Context Level 2 and Baggage.

use std::fs;

use serde_json::{Value, json};
use stagetrace_wire::context::{
    Baggage, TraceContext, TraceFlags, TraceStateList, extract, inject,
};
use stagetrace_wire::id::{SpanId, TraceId};

#[test]
fn every_case_gives_an_expected_result() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/w3c/cases.json");
    let table: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() >= 127, "only {} cases found", cases.len());

    let failures: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

fn failure(case: &Value) -> Option<String> {
    let actual = match case["kind"].as_str().unwrap() {
        "extract" => extracted(case),
        "inject" => injected(&case["context"]),
        "forward" => forwarded(case),
        "tracestate" => {
            let (key, value) = pair(&case["set"]);
            let mut list = trace_state(&case["given"]);
            list.set(key, value).unwrap();
            members(&list)
        }
        "truncate" => {
            let mut list = trace_state(&case["given"]);
            list.truncate(case["limit"].as_u64().unwrap() as usize);
            members(&list)
        }
        other => panic!("a kind of case that this test does not know: {other}"),
    };
    let also = case["also_accepted"].as_array().unwrap();
    let accepted = actual == case["expect"] || also.contains(&actual);
    (!accepted).then(|| format!("{}: {actual}, expected {}", case["id"], case["expect"]))
}

fn extracted(case: &Value) -> Value {
    let found = extract(headers(case));
    let context = found.context.map(|context| {
        json!({
            "trace_id": context.trace_id.to_string(),
            "parent_id": context.span_id.to_string(),
            "flags": format!("{:02x}", context.flags.bits()),
            "sampled": context.flags.is_sampled(),
            "random": context.flags.is_random(),
        })
    });
    let trace_state = members(&found.trace_state);
    let baggage: Vec<Value> = found
        .baggage
        .iter()
        .map(|member| {
            let properties: Vec<&str> = member.properties().collect();
            json!({"key": member.key, "value": member.value, "properties": properties})
        })
        .collect();
    let absent_if_empty = |list: Value| if list == json!([]) { Value::Null } else { list };
    json!({
        "traceparent": context,
        "tracestate": absent_if_empty(trace_state),
        "baggage": absent_if_empty(baggage.into()),
    })
}

fn injected(context: &Value) -> Value {
    let flag = |name: &str, flag: TraceFlags| if context[name] == true { flag.bits() } else { 0 };
    let flags = flag("sampled", TraceFlags::SAMPLED) | flag("random", TraceFlags::RANDOM);
    let mut baggage = Baggage::default();
    for (key, value) in context["baggage"].as_array().unwrap().iter().map(pair) {
        baggage.set(key, value).unwrap();
    }
    let context_sent = TraceContext {
        trace_id: TraceId::from_hex(context["trace_id"].as_str().unwrap()).unwrap(),
        span_id: SpanId::from_hex(context["span_id"].as_str().unwrap()).unwrap(),
        flags: TraceFlags::from_bits(flags),
    };
    let mut sent = json!({"traceparent": null, "tracestate": null, "baggage": null});
    inject(context_sent, &trace_state(&context["tracestate"]), &baggage, |name, value| {
        sent[name] = value.into();
    });
    sent
}

fn forwarded(case: &Value) -> Value {
    let found = extract(headers(case));
    let mut context = found.context.unwrap();
    context.span_id = SpanId::from_hex(case["new_span_id"].as_str().unwrap()).unwrap();
    context.flags = context.flags.with_sampled(case["sampled"] == true);
    let mut sent = json!({});
    inject(context, &found.trace_state, &found.baggage, |name, value| sent[name] = value.into());
    sent
}

fn headers(case: &Value) -> impl Iterator<Item = (&str, &str)> {
    case["headers"].as_array().unwrap().iter().map(pair)
}

fn pair(pair: &Value) -> (&str, &str) {
    (pair[0].as_str().unwrap(), pair[1].as_str().unwrap())
}

/// Built from the right, as each `set` puts its member first.
fn trace_state(given: &Value) -> TraceStateList {
    let mut list = TraceStateList::default();
    for (key, value) in given.as_array().unwrap().iter().rev().map(pair) {
        list.set(key, value).unwrap();
    }
    list
}

fn members(list: &TraceStateList) -> Value {
    list.iter().map(|(key, value)| json!([key, value])).collect()
}
