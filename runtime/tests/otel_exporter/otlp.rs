//! `opentelemetry-otlp` as the exporter: what arrives is what the file says.

use crate::everything::everything;
use crate::support::{LONG, config, flush, scenarios, sink, written};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use stagetrace::{Exporter, init_with, otel};
use stagetrace_collector::Collector;
use stagetrace_wire::span::Span;

/// What a span says, in an order of its own. The SDK has no bytes.
fn said(span: &Span) -> String {
    let mut attributes: Vec<_> = span
        .attributes
        .iter()
        .filter(|(key, _)| key != "bytes")
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    attributes.sort();
    let Span { trace_id, span_id, parent_span_id, name, kind, status, .. } = span;
    let times = (span.start_unix_nano, span.end_unix_nano);
    let counts = (span.events.len(), span.links.len());
    format!(
        "{trace_id} {span_id} {parent_span_id:?} {name} {kind:?} {status:?} {times:?} {counts:?} {attributes:?}"
    )
}

fn delivers(exporter: impl FnOnce(&Collector) -> Exporter) {
    let collector = Collector::start_blocking().unwrap();
    let trace = init_with(config(), [exporter(&collector)]).unwrap();
    everything();
    flush(LONG).unwrap();
    let file = written(&trace);
    assert!(file.len() > 10);
    let arrived = collector.spans();
    let said = |spans: &mut dyn Iterator<Item = &Span>| {
        let mut said: Vec<_> = spans.map(said).collect();
        said.sort();
        said
    };
    let (arrived, file_said) = (said(&mut arrived.iter()), said(&mut file.iter()));
    for (arrived, file) in arrived.iter().zip(&file_said) {
        assert_eq!(arrived, file);
    }
    assert_eq!(arrived.len(), file.len());
    assert_eq!(sink("sdk").exported, file.len() as u64);
}

scenarios! {
    fn that_of_opentelemetry_otlp_delivers_over_grpc() {
        delivers(|collector| {
            let endpoint = collector.endpoint();
            otel::build("sdk", || {
                SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()
            })
        });
    }

    fn that_of_opentelemetry_otlp_delivers_over_http() {
        delivers(|collector| {
            let endpoint = collector.http_endpoint();
            otel::build("sdk", || {
                let client = HyperClient::with_default_connector(LONG, None);
                let builder = SpanExporter::builder().with_http().with_http_client(client);
                builder.with_protocol(Protocol::HttpBinary).with_endpoint(endpoint).build()
            })
        });
    }
}
