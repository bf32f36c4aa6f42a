//! Export: the ways out. Each is a sink of the collector's.

mod jsonl;
#[cfg(feature = "otel")]
mod span_data;

pub(crate) use jsonl::JsonLines;
#[cfg(feature = "otel")]
pub(crate) use span_data::through;
