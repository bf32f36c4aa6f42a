//! An OpenTelemetry backend inside your test.
//!
//! A [`Collector`] takes what any OpenTelemetry SDK exports, in any language: OTLP over gRPC, HTTP
//! with protobuf and HTTP with JSON, all on one port of the loopback interface, plain or compressed
//! with gzip or zstd. The test then waits for [`Spans`], selects among them, and compares a trace
//! as an indented tree. For tests of exporters it plays failures, a [`Reply`] for each request, and
//! shows each [`Request`] as it came.

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
pub use stagetrace_wire::{id, span};
