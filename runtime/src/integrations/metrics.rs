//! Metrics from spans, through OpenTelemetry's metrics API: how long stages and requests take, how many requests are in
//! flight, where their time goes, and how the recorder itself is. Feature `metrics`.
//!
//! Give [`exporter`] a meter of the program's own provider, and that one pushes them wherever it pushes:
//!
//! ```no_run
//! use opentelemetry::metrics::MeterProvider;
//! use opentelemetry_sdk::metrics::SdkMeterProvider;
//! use stagetrace::{TraceConfig, init_with, metrics};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = SdkMeterProvider::builder()
//!     .with_periodic_exporter(opentelemetry_stdout::MetricExporter::default())
//!     .build();
//! let config = TraceConfig::from_env()?.service_name("diffusion");
//! let trace = init_with(config, [metrics::exporter(provider.meter("stagetrace"))])?;
//! // The program runs.
//! trace.shutdown(std::time::Duration::from_secs(5))?;
//! provider.shutdown()?; // last, so that the metrics know of every span
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `prometheus`, [`Prometheus`] is a page for Prometheus to scrape.
//!
//! Names, units and attributes are listed in `docs/metrics.md`. Buckets are advice: a view of the program's provider may
//! say otherwise, also which metrics to drop.

mod own;
#[cfg(feature = "prometheus")]
mod page;
#[cfg(feature = "prometheus")]
mod prometheus;

use crate::export::{Exporter, into_metrics};
use opentelemetry::metrics::Meter;

#[cfg(feature = "prometheus")]
pub use {page::Page, prometheus::Prometheus};

/// The name of the sink.
const NAME: &str = "metrics";

/// An [`Exporter`] that records what spans say into instruments of this meter. Its
/// [`SinkStatus`](crate::SinkStatus) is named `metrics`.
///
/// The instruments are made by [`init_with`](crate::init_with). Values are recorded on the recorder's own thread, in the
/// order in which spans are found to have ended, a few milliseconds after they did: a meter must not block there, and may
/// not trace. If it panics, the spans at hand are missing from the metrics, which is counted and said once. A plain
/// span costs one `record` of one histogram and no allocation.
pub fn exporter(meter: Meter) -> Exporter {
    Exporter::new(NAME, into_metrics(NAME, |_| meter, own::observe))
}
