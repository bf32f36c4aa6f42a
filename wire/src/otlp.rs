//! OTLP, the protocol of OpenTelemetry: the only place that knows its fields.

pub mod json;
pub mod protobuf;
mod start;

pub use start::Execution;
