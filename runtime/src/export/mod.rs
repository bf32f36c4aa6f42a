//! Export: the ways out. Each is a sink of the collector's.

mod encoding;
mod exporter;
mod jsonl;
mod otlp;
mod sites;
#[cfg(feature = "otel")]
mod span_data;
mod supervised;

pub use exporter::Exporter;
pub(crate) use jsonl::JsonLines;
#[cfg(feature = "otel")]
pub(crate) use span_data::through;
