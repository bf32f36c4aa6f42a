//! Spans by way of a real OpenTelemetry Collector, into the file that it writes.

use crate::everything::everything;
use crate::start;
use crate::support::{LONG, config, flush, scenarios, sink, wait_until, written, written_lines};
use stagetrace::{Compression, Otlp, init};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::span::Span;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running Collector that takes OTLP and writes it to a file. It is killed when it is dropped.
struct Collector {
    process: Child,
    dir: PathBuf,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Collector {
    /// One of a test's own, if `.ci/peers/install` has built it.
    fn start(test: &str) -> Option<Collector> {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = tmp.parent()?.join("peers/opentelemetry-collector/otelcol");
        if !program.exists() {
            println!("not checked: no OpenTelemetry Collector; .ci/peers/install builds one");
            return None;
        }
        let dir = tmp.join("opentelemetry-collector").join(test);
        std::fs::create_dir_all(&dir).unwrap();
        // The ports may go to somebody else before it has them.
        (0..3).find_map(|_| Collector::try_start(&program, &dir)).or_else(|| {
            panic!("it does not start: {}", std::fs::read_to_string(dir.join("log")).unwrap())
        })
    }

    fn try_start(program: &Path, dir: &Path) -> Option<Collector> {
        let [grpc, http] = free_addresses();
        let spans = dir.join("spans.jsonl");
        let config = format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{grpc}'}}, http: {{endpoint: '{http}'}}}}}}}}
exporters: {{file: {{path: '{}', flush_interval: 50ms}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
",
            spans.display()
        );
        std::fs::write(dir.join("config.yaml"), config).unwrap();
        std::fs::write(&spans, "").unwrap();
        let log = std::fs::File::create(dir.join("log")).unwrap();
        let process = Command::new(program)
            .arg("--config")
            .arg(dir.join("config.yaml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut collector = Collector { process, dir: dir.to_owned(), grpc, http };
        let mut ended = false;
        wait_until(|| {
            ended = collector.process.try_wait().unwrap().is_some();
            ended || [grpc, http].iter().all(|address| TcpStream::connect(address).is_ok())
        });
        (!ended).then_some(collector)
    }

    /// The spans in its file, once there are as many as these; and they are as these.
    fn assert_has(&self, expected: &[Span]) {
        let mut spans = Vec::new();
        wait_until(|| {
            let file = std::fs::read(self.dir.join("spans.jsonl")).unwrap();
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
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"partialSuccess\":{}}"),
            "{answer}"
        );
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two that nobody listens at.
fn free_addresses() -> [SocketAddr; 2] {
    [(); 2]
        .map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
        .map(|listener| listener.local_addr().unwrap())
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
    Otlp::grpc(format!("http://{}", collector.grpc))
}

fn http(collector: &Collector) -> Otlp {
    Otlp::http(format!("http://{}", collector.http))
}

fn http_json(collector: &Collector) -> Otlp {
    Otlp::http_json(format!("http://{}", collector.http))
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

    fn an_opentelemetry_collector_reads_each_line_of_the_file() {
        let Some(collector) = Collector::start("lines") else { return };
        let trace = init(config()).unwrap();
        everything();
        flush(LONG).unwrap();
        let lines = written_lines(&trace);
        lines.split_inclusive(|&byte| byte == b'\n').for_each(|line| collector.post(line));
        collector.assert_has(&written(&trace));
    }
}
