//! The OpenTelemetry Python SDK delivers, in every form, the spans that it says it made.

mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use stagetrace_collector::span::{self, Attributes, Link, Span, Value};
use stagetrace_collector::{Collector, Protocol};
use support::LONG;

/// The SDK's Python, if `.ci/peers/install` has put it there.
fn python() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let python = target.join("peers/opentelemetry-python/bin/python");
    if !python.exists() {
        println!("skipped: no OpenTelemetry Python SDK; .ci/peers/install installs one");
        return None;
    }
    Some(python)
}

/// Runs the program that makes spans. What it says it made, one for each span, as they ended.
fn make_spans(
    python: &Path,
    collector: &Collector,
    form: &str,
    compression: Option<&str>,
) -> Vec<Json> {
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/spans.py")).arg(form);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_lowercase();
        if text.starts_with("otel_") || text.ends_with("_proxy") {
            command.env_remove(name);
        }
    }
    if let Some(compression) = compression {
        command.env("OTEL_EXPORTER_OTLP_COMPRESSION", compression);
    }
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())
        // It gives up then, and so it ends.
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "20")
        .stdin(Stdio::null());
    let output = command.output().expect("Python can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn delivers(form: &str, protocol: Protocol) {
    let Some(python) = python() else { return };
    for compression in [None, Some("gzip")] {
        let collector = Collector::start_blocking().unwrap();
        let made = make_spans(&python, &collector, form, compression);
        assert_eq!(made.len(), 6);
        let arrived = collector.wait_for_blocking(|spans| spans.len() >= made.len(), LONG).unwrap();
        // They come by scope.
        for span in &arrived {
            let identity = json!(identity(span.trace_id, span.span_id));
            let made = made.iter().find(|made| made["context"] == identity);
            assert_eq!(Some(&described(span)), made, "{form}, {compression:?}");
        }
        assert_eq!(arrived.len(), made.len(), "{arrived}");

        let [request] = &collector.requests()[..] else { panic!("one request") };
        assert_eq!((request.protocol, &request.error), (Some(protocol), &None));
        assert_eq!(request.compression, compression);
        assert!(request.header("user-agent").unwrap().contains("OTel-OTLP-"), "{request:?}");
    }
}

#[test]
fn the_python_sdk_delivers_all_it_made_over_grpc() {
    delivers("grpc", Protocol::Grpc);
}

#[test]
fn the_python_sdk_delivers_all_it_made_as_protobuf_over_http() {
    delivers("http/protobuf", Protocol::HttpProtobuf);
}

#[test]
fn the_python_sdk_delivers_all_it_made_as_json_over_http() {
    delivers("http/json", Protocol::HttpJson);
}

/// A span as the program describes it.
fn described(span: &Span) -> Json {
    // This SDK says nothing of the W3C flags.
    assert_eq!(span.flags & !span::flags::IS_REMOTE, span::flags::HAS_IS_REMOTE);
    json!({
        "context": identity(span.trace_id, span.span_id),
        "trace state": span.trace_state,
        "parent": span.parent_span_id.map(|parent| identity(span.trace_id, parent)),
        "parent is remote": is_remote(span.flags),
        "name": span.name,
        "kind": span.kind.name(),
        "time": [span.start_unix_nano, span.end_unix_nano],
        "attributes": pairs(&span.attributes),
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
        "links": span.links.iter().map(link).collect::<Vec<_>>(),
        "dropped": [span.dropped_attributes, span.dropped_events, span.dropped_links],
        "status": [span.status.code.name(), span.status.message],
        "resource": [pairs(&span.resource.attributes), span.resource.schema_url],
        "scope": [
            span.scope.name,
            span.scope.version,
            pairs(&span.scope.attributes),
            span.scope.schema_url,
        ],
    })
}

fn event(event: &span::Event) -> Json {
    json!([event.time_unix_nano, event.name, pairs(&event.attributes), event.dropped_attributes])
}

/// Without its `tracestate`, which this SDK does not send.
fn link(link: &Link) -> Json {
    json!([
        identity(link.trace_id, link.span_id),
        is_remote(link.flags),
        pairs(&link.attributes),
        link.dropped_attributes,
    ])
}

fn identity(
    trace: stagetrace_collector::id::TraceId,
    span: stagetrace_collector::id::SpanId,
) -> String {
    format!("{trace}-{span}")
}

fn is_remote(flags: u32) -> bool {
    flags & span::flags::IS_REMOTE != 0
}

fn pairs(attributes: &Attributes) -> Json {
    attributes.iter().map(|(key, value)| json!([key, said(value)])).collect()
}

fn said(value: &Value) -> Json {
    match value {
        Value::Str(text) => json!(text),
        Value::Bool(value) => json!(value),
        Value::I64(value) => json!(value),
        Value::F64(value) => json!({ "double": format!("{:016x}", value.to_bits()) }),
        Value::Bytes(bytes) => json!({ "bytes": hex(bytes) }),
        Value::Array(values) => values.iter().map(said).collect(),
        Value::Map(attributes) => json!({ "map": pairs(attributes) }),
        Value::Empty => Json::Null,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
