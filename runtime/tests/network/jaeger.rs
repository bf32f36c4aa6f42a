//! Spans by way of a real Jaeger, out of its query API.

use crate::everything::everything;
use crate::peer::{Peer, exchange};
use crate::start;
use crate::support::{LONG, flush, scenarios, sink, written};
use stagetrace::Otlp;
use stagetrace_wire::id::TraceId;
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::span::Span;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// A running Jaeger that takes OTLP over gRPC and HTTP, and answers queries over HTTP, and
/// over gRPC, which nobody asks.
fn jaeger(test: &str) -> Option<Peer<4>> {
    Peer::start("jaeger/jaeger", test, |_, [grpc, http, query, query_grpc]| {
        format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{grpc}'}}, http: {{endpoint: '{http}'}}}}}}}}
exporters: {{jaeger_storage_exporter: {{trace_storage: memory}}}}
extensions:
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 100}}}}}}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: '{query}'}}
    grpc: {{endpoint: '{query_grpc}'}}
service:
  extensions: [jaeger_storage, jaeger_query]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}}}
"
        )
    })
}

/// The spans of a trace, as they began.
fn query(address: SocketAddr, trace: TraceId) -> Vec<Span> {
    let request = format!("GET /api/v3/traces/{trace}?raw_traces=true");
    let answer = exchange(address, &request, "", b"");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let contents = read_lines(answer["result"].to_string().as_bytes(), &ReadOptions::default());
    assert_eq!(contents.report.refused_spans + contents.report.refused_links, 0);
    sorted(contents.spans)
}

fn sorted(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start_unix_nano, span.span_id.to_u64()));
    spans
}

/// Jaeger's traces are those of the file.
fn delivers(test: &str, otlp: fn([SocketAddr; 4]) -> Otlp) {
    let Some(jaeger) = jaeger(test) else { return };
    let trace = start(otlp(jaeger.addresses));
    everything();
    flush(LONG).unwrap();
    let written = written(&trace);
    assert_eq!((written.len(), sink("otlp").exported), (12, 12));
    let traces: BTreeSet<_> = written.iter().map(|span| span.trace_id.to_u128()).collect();
    for trace in traces {
        let mut expected = written.clone();
        expected.retain(|span| span.trace_id.to_u128() == trace);
        let spans = query(jaeger.addresses[2], TraceId::from_u128(trace).unwrap());
        for span in &mut expected {
            // Jaeger's memory keeps none.
            Arc::make_mut(&mut span.resource).schema_url.clear();
        }
        assert_eq!(spans.len(), expected.len());
        for (span, expected) in spans.iter().zip(&sorted(expected)) {
            assert_eq!(span, expected);
        }
    }
}

scenarios! {
    fn a_jaeger_shows_everything_that_came_over_grpc() {
        delivers("grpc", |[grpc, ..]| Otlp::grpc(format!("http://{grpc}")));
    }

    fn a_jaeger_shows_everything_that_came_over_http() {
        delivers("http", |[_, http, ..]| Otlp::http(format!("http://{http}")));
    }
}
