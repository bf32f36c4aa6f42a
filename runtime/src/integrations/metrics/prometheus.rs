//! The metrics as text, in the format that Prometheus scrapes.

use super::page::Page;
use super::{NAME, own};
use crate::export::{Exporter, into_metrics};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use stagetrace_wire::span::{self, Value};
use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::{Arc, OnceLock};

/// Metrics from spans for Prometheus to scrape. Features `metrics` and `prometheus`.
///
/// ```no_run
/// use stagetrace::metrics::Prometheus;
/// use stagetrace::{TraceConfig, init_with};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let prometheus = Prometheus::new();
/// let _trace = init_with(TraceConfig::from_env()?, [prometheus.exporter()])?;
/// let _page = prometheus.serve("127.0.0.1:9464")?; // http://127.0.0.1:9464/metrics
/// # Ok(())
/// # }
/// ```
///
/// A program that has an HTTP server of its own answers with [`Prometheus::render`] instead. One that has metrics of its
/// own beside these makes a provider with the crate `opentelemetry-prometheus` and gives a meter of it to
/// [`metrics::exporter`](super::exporter).
///
/// Names are those of OpenTelemetry as its specification translates them: `stagetrace.stage.duration` in `s` is
/// `stagetrace_stage_duration_seconds`. The page has `target_info` with the resource of this process.
#[derive(Clone, Default)]
pub struct Prometheus {
    registry: Registry,
    provider: Arc<OnceLock<SdkMeterProvider>>,
}

impl Prometheus {
    /// The type of the text, for the header `content-type`.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// No metrics yet: they begin with [`init_with`](crate::init_with).
    pub fn new() -> Prometheus {
        Prometheus::default()
    }

    /// The way for spans to get here. Once: of several, the first to be opened counts. The child of a `fork` needs a
    /// `Prometheus` of its own.
    pub fn exporter(&self) -> Exporter {
        let Prometheus { registry, provider } = self.clone();
        let meter = move |resource: &span::Resource| {
            let mut is_first = false;
            let provider = provider.get_or_init(|| {
                is_first = true;
                provider_of(registry, resource)
            });
            // Another one would count everything again.
            let of_nobody = SdkMeterProvider::default();
            if is_first { provider } else { &of_nobody }.meter("stagetrace")
        };
        Exporter::new(NAME, into_metrics(NAME, meter, own::observe))
    }

    /// The metrics now. Asks the recorder, which answers within milliseconds; empty before there are any.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Fails only for a family without a name or without values, of which there is none.
        let _ = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text);
        text
    }

    /// Answers `GET /metrics` at this address, on a thread of its own, until the [`Page`] is dropped. Everybody who can
    /// reach the address can read it: name the loopback, or a network that you trust.
    ///
    /// # Errors
    /// If nobody can listen there.
    pub fn serve(&self, address: impl ToSocketAddrs) -> io::Result<Page> {
        let this = self.clone();
        Page::serve(address, Prometheus::CONTENT_TYPE, move || this.render())
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus").finish_non_exhaustive()
    }
}

/// A provider whose metrics stand in the registry.
fn provider_of(registry: Registry, resource: &span::Resource) -> SdkMeterProvider {
    let reader = opentelemetry_prometheus::exporter().with_registry(registry).build();
    let attributes = resource.attributes.iter();
    let attributes = attributes.filter_map(|(key, value)| label(key, value));
    let resource = opentelemetry_sdk::Resource::builder_empty().with_attributes(attributes).build();
    let provider = SdkMeterProvider::builder().with_resource(resource);
    match reader {
        Ok(reader) => provider.with_reader(reader).build(),
        // Only where another collector of the same registry has the same names; it is ours alone.
        Err(_) => provider.build(),
    }
}

/// An attribute of the resource, if it can be a label.
fn label(key: &str, value: &Value) -> Option<KeyValue> {
    let key = key.to_owned();
    match value {
        Value::Str(text) => Some(KeyValue::new(key, text.clone())),
        Value::Bool(value) => Some(KeyValue::new(key, *value)),
        Value::I64(value) => Some(KeyValue::new(key, *value)),
        Value::F64(value) => Some(KeyValue::new(key, *value)),
        _ => None,
    }
}
