//! Export: the ways out. Each is a sink of the collector's.

mod encoding;
mod exporter;
mod jsonl;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "_network")]
mod network;
mod otlp;
mod sites;
#[cfg(feature = "otel")]
mod span_data;
mod supervised;

pub use exporter::Exporter;
pub(crate) use jsonl::JsonLines;
#[cfg(feature = "metrics")]
pub(crate) use metrics::{REQUEST, into_metrics};
#[cfg(feature = "_network")]
pub(crate) use network::{over_network, send_what_waits};
#[cfg(feature = "otel")]
pub(crate) use span_data::through;
#[cfg(feature = "metrics")]
pub(crate) use supervised::on_each as on_each_export;
