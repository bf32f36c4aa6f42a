//! OTLP in protobuf: what is read can be shown and written, and is then read and written alike.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stagetrace_wire::otlp::protobuf::{read_request, write_request};
use stagetrace_wire::span::tree;

fuzz_target!(|input: &[u8]| {
    let Ok(contents) = read_request(input) else { return };
    assert_eq!(tree(&contents.spans, &[]).lines().count(), contents.spans.len());
    let written = write_request(&contents.spans);
    let again = read_request(&written).expect("what we write can be read");
    assert_eq!(again.report.spans, contents.report.spans);
    assert_eq!(again.report.refused_spans, 0);
    assert_eq!(write_request(&again.spans), written);
});
