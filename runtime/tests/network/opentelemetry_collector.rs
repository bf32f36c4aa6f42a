//! Spans by way of a real OpenTelemetry Collector, into the file that it writes.

use crate::everything::everything;
use crate::peer::{Peer, exchange};
use crate::support::{LONG, flush, scenarios, sink, steps, wait_until, written, written_lines};
use crate::{patient, start};
use stagetrace::{Compression, Otlp, init};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::span::Span;
use std::time::Duration;

/// A running Collector that takes OTLP and writes it to a file.
struct Collector {
    peer: Peer<2>,
}

impl Collector {
    /// One of a test's own, if there is one.
    fn start(test: &str) -> Option<Collector> {
        let peer = Peer::start("opentelemetry-collector/otelcol", test, |dir, [grpc, http]| {
            format!(
                "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{grpc}'}}, http: {{endpoint: '{http}'}}}}}}}}
exporters: {{file: {{path: '{}', flush_interval: 50ms, append: true}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
",
                dir.join("spans.jsonl").display()
            )
        })?;
        Some(Collector { peer })
    }

    /// The spans in its file, once there are as many as these, are as these.
    fn assert_has(&self, expected: &[Span]) {
        let mut spans = Vec::new();
        wait_until(|| {
            let file = std::fs::read(self.peer.dir.join("spans.jsonl")).unwrap_or_default();
            let contents = read_lines(&file, &ReadOptions::default());
            assert_eq!(contents.report.refused_spans + contents.report.refused_links, 0);
            spans = contents.spans;
            spans.len() >= expected.len()
        });
        assert_eq!(spans.len(), expected.len());
        for (span, expected) in spans.iter().zip(expected) {
            assert_eq!(span, expected);
        }
    }

    /// Sends a body of OTLP/JSON as it is.
    fn post(&self, body: &[u8]) {
        let [_, http] = self.peer.addresses;
        let headers = "content-type: application/json\r\n";
        let answer = exchange(http, "POST /v1/traces", headers, body);
        assert_eq!(answer, "{\"partialSuccess\":{}}");
    }
}

/// The Collector writes to its file what stands in ours.
fn delivers(test: &str, otlp: fn(&Collector) -> Otlp, compression: Compression) {
    let Some(collector) = Collector::start(test) else { return };
    let trace = start(otlp(&collector).compression(compression));
    everything();
    flush(LONG).unwrap();
    let expected = written(&trace);
    assert_eq!((expected.len(), sink("otlp").exported), (12, 12));
    collector.assert_has(&expected);
}

fn grpc(collector: &Collector) -> Otlp {
    Otlp::grpc(format!("http://{}", collector.peer.addresses[0]))
}

fn http(collector: &Collector) -> Otlp {
    Otlp::http(format!("http://{}", collector.peer.addresses[1]))
}

fn http_json(collector: &Collector) -> Otlp {
    Otlp::http_json(format!("http://{}", collector.peer.addresses[1]))
}

scenarios! {
    fn an_opentelemetry_collector_gets_everything_over_grpc() {
        delivers("grpc", grpc, Compression::None);
    }

    fn an_opentelemetry_collector_gets_everything_over_grpc_with_gzip() {
        delivers("grpc gzip", grpc, Compression::Gzip);
    }

    fn an_opentelemetry_collector_gets_everything_over_grpc_with_zstd() {
        delivers("grpc zstd", grpc, Compression::Zstd);
    }

    fn an_opentelemetry_collector_gets_everything_as_protobuf_over_http() {
        delivers("http", http, Compression::None);
    }

    fn an_opentelemetry_collector_gets_everything_as_protobuf_over_http_with_zstd() {
        delivers("http zstd", http, Compression::Zstd);
    }

    fn an_opentelemetry_collector_gets_everything_as_json_over_http() {
        delivers("http json", http_json, Compression::None);
    }

    fn an_opentelemetry_collector_gets_everything_as_json_over_http_with_gzip() {
        delivers("http json gzip", http_json, Compression::Gzip);
    }

    fn an_opentelemetry_collector_that_is_killed_gets_the_rest_when_it_is_back() {
        let Some(mut collector) = Collector::start("killed") else { return };
        let config = patient().outbox_max_bytes(1 << 20);
        let otlp = grpc(&collector).timeout(Duration::from_millis(500));
        let trace = init(config.otlp(otlp)).unwrap();
        steps(0, 8);
        flush(LONG).unwrap();
        // What it has taken and not written is its own to lose.
        collector.assert_has(&written(&trace));
        collector.peer.kill();
        everything();
        wait_until(|| sink("otlp").outbox == 12);
        collector.peer.start_again();
        wait_until(|| sink("otlp").outbox == 0);
        collector.assert_has(&written(&trace));
        assert_eq!((sink("otlp").exported, sink("otlp").failed), (20, 0));
    }

    fn an_opentelemetry_collector_reads_each_line_of_the_file() {
        let Some(collector) = Collector::start("lines") else { return };
        let trace = init(patient()).unwrap();
        everything();
        flush(LONG).unwrap();
        let lines = written_lines(&trace);
        lines.split_inclusive(|&byte| byte == b'\n').for_each(|line| collector.post(line));
        collector.assert_has(&written(&trace));
    }
}
