//! OTLP in protobuf: what is read is written, and read alike.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stagetrace_wire::otlp::json::MAX_VALUE_DEPTH;
use stagetrace_wire::otlp::protobuf::{read_request, write_request};
use stagetrace_wire::span::{Attributes, Value, tree};

fuzz_target!(|input: &[u8]| {
    let Ok(contents) = read_request(input) else { return };
    assert_eq!(tree(&contents.spans, &[]).lines().count(), contents.spans.len());
    // The writer cuts what other readers would refuse.
    if contents.spans.iter().any(|span| depth(&span.attributes) > MAX_VALUE_DEPTH) {
        return;
    }
    let again = read_request(&write_request(&contents.spans)).expect("what we write can be read");
    assert_eq!(again.report.spans, contents.report.spans);
});

fn depth(attributes: &Attributes) -> usize {
    attributes.iter().map(|(_, value)| depth_of(value)).max().unwrap_or(0)
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth_of).max().unwrap_or(0),
        Value::Map(map) => 1 + depth(map),
        _ => 0,
    }
}
