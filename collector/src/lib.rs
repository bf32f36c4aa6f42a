//! An OpenTelemetry backend inside your test.
//!
//! A [`Collector`] takes what any OpenTelemetry SDK exports, in any language: OTLP over gRPC, over
//! HTTP with protobuf, and over HTTP with JSON, plain or compressed with gzip or zstd. All of it
//! arrives on one port of the loopback interface, which the system chooses, so tests run side by
//! side. The collector runs on a thread of its own: it answers while a test blocks, and needs no
//! runtime of yours.
//!
//! # What a program exports
//!
//! Point its exporter to [`Collector::endpoint`], wait, and look at the [`Spans`]:
//!
//! ```
//! use std::time::Duration;
//!
//! use opentelemetry::KeyValue;
//! use opentelemetry::trace::{TraceContextExt as _, Tracer as _, TracerProvider as _};
//! use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//! use stagetrace_collector::Collector;
//!
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 1)]
//! # async fn main() {
//! let collector = Collector::start().await.unwrap();
//! let exporter =
//!     SpanExporter::builder().with_tonic().with_endpoint(collector.endpoint()).build().unwrap();
//! let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
//!
//! // What is tested.
//! let tracer = provider.tracer("server");
//! tracer.in_span("generate", |_| {
//!     tracer.in_span("denoise", |context| context.span().set_attribute(KeyValue::new("steps", 20)));
//! });
//! provider.force_flush().unwrap();
//!
//! let spans = collector.wait_for(|spans| spans.len() == 2, Duration::from_secs(10)).await.unwrap();
//! spans.assert_tree(
//!     &["steps"],
//!     "
//!     generate
//!       denoise steps=20
//!     ",
//! );
//! assert!(spans.one("denoise").has_ended());
//! # }
//! ```
//!
//! A wait in vain prints what did arrive, and why other requests were refused. Programs in other
//! languages are told where to send by `OTEL_EXPORTER_OTLP_ENDPOINT`. Tests that are not async use
//! [`Collector::start_blocking`] and [`Collector::wait_for_blocking`].
//!
//! # How an exporter takes failures
//!
//! A [`Reply`] is what the collector answers instead of the truth: a status, a delay, a partial
//! success, silence, garbage. A [`script`](Collector::script) has one for each of the next requests,
//! and [`requests`](Collector::requests) shows what came:
//!
//! ```
//! # use std::time::Duration;
//! # use stagetrace_collector::{Collector, Reply};
//! # fn export(endpoint: String) {
//! #     use std::io::{Read as _, Write as _};
//! #     for _ in 0..3 {
//! #         let address = &endpoint["http://".len()..endpoint.len() - "/v1/traces".len()];
//! #         let mut stream = std::net::TcpStream::connect(address).unwrap();
//! #         stream
//! #             .write_all(
//! #                 b"POST /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
//! #                   content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
//! #             )
//! #             .unwrap();
//! #         stream.read_to_end(&mut Vec::new()).unwrap();
//! #     }
//! # }
//! let collector = Collector::start_blocking().unwrap();
//! collector.script([
//!     Reply::status(503).retry_after(Duration::from_secs(1)),
//!     Reply::close(),
//!     Reply::partial_success(1).message("one span is too large"),
//! ]);
//! export(collector.http_endpoint());
//! assert_eq!(collector.requests().len(), 3);
//! ```
//!
//! # Spans for a program
//!
//! With [`Builder::on_export`] a collector hands spans to a function and keeps nothing, for programs that
//! run longer than a test.
//!
//! # What is refused
//!
//! | | over HTTP | over gRPC |
//! |---|---|---|
//! | a body that is no request | 400 | `INVALID_ARGUMENT` |
//! | too large, as it is sent or after decompression | 413 | `RESOURCE_EXHAUSTED` |
//! | a compression other than gzip and zstd | 415 | `UNIMPLEMENTED` |
//! | another content type | 415 | |
//! | another method | 405 | |
//! | another path, for example that of metrics | 404 | `UNIMPLEMENTED` |
//! | some spans without valid ids | 200 with a partial success | `OK` with a partial success |
//!
//! A refusal over HTTP has a `google.rpc.Status` in its body, in the form of the request.

mod body;
mod collector;
mod decompress;
mod encode;
mod receive;
mod reply;
mod request;
mod route;
mod server;
mod spans;
mod store;

pub use collector::{Builder, Collector, Stats, Timeout};
pub use reply::{GrpcCode, Reply};
pub use request::{Protocol, Request};
pub use spans::Spans;
/// The spans themselves, and their ids.
pub use stagetrace_wire::{id, span};
