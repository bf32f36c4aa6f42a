//! Metrics as a provider of the OpenTelemetry SDK collects them, in a form that can be compared.

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use stagetrace::{Exporter, metrics};
use std::collections::BTreeMap;

/// A provider that keeps what it collects.
pub(crate) struct Collecting {
    provider: SdkMeterProvider,
    kept: InMemoryMetricExporter,
}

/// Attributes as `key=value`, sorted.
pub(crate) type Labels = Vec<String>;

/// One series of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) bounds: Vec<f64>,
    pub(crate) buckets: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

impl Collecting {
    pub(crate) fn new() -> Collecting {
        let kept = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder().with_periodic_exporter(kept.clone()).build();
        Collecting { provider, kept }
    }

    pub(crate) fn exporter(&self) -> Exporter {
        metrics::exporter(self.provider.meter("stagetrace"))
    }

    /// What the metrics are now.
    pub(crate) fn collect(&self) -> ResourceMetrics {
        self.kept.reset();
        self.provider.force_flush().expect("an exporter that keeps all cannot fail");
        let mut collected = self.kept.get_finished_metrics().expect("it can be read");
        collected.pop().expect("something was collected")
    }
}

/// The units of all metrics, by name.
pub(crate) fn units(metrics: &ResourceMetrics) -> BTreeMap<String, String> {
    let all = metrics.scope_metrics().flat_map(|scope| scope.metrics());
    all.map(|metric| (metric.name().to_owned(), metric.unit().to_owned())).collect()
}

/// The series of a histogram, by attributes; none if nothing was recorded.
pub(crate) fn histogram(metrics: &ResourceMetrics, name: &str) -> BTreeMap<Labels, Series> {
    let Some(data) = data(metrics, name) else { return BTreeMap::new() };
    let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = data else {
        panic!("{name} is no histogram: {data:?}");
    };
    let points = histogram.data_points().map(|point| {
        let series = Series {
            bounds: point.bounds().collect(),
            buckets: point.bucket_counts().collect(),
            count: point.count(),
            sum: point.sum(),
        };
        (labels(point.attributes()), series)
    });
    points.collect()
}

/// The values of a sum, by attributes.
pub(crate) fn sum(metrics: &ResourceMetrics, name: &str) -> BTreeMap<Labels, i64> {
    match data(metrics, name) {
        Some(AggregatedMetrics::U64(MetricData::Sum(sum))) => {
            assert!(sum.is_monotonic(), "{name}");
            let points = sum.data_points();
            points.map(|point| (labels(point.attributes()), point.value() as i64)).collect()
        }
        Some(AggregatedMetrics::I64(MetricData::Sum(sum))) => {
            assert!(!sum.is_monotonic(), "{name}");
            let points = sum.data_points();
            points.map(|point| (labels(point.attributes()), point.value())).collect()
        }
        other => panic!("{name} is no sum: {other:?}"),
    }
}

fn data<'a>(metrics: &'a ResourceMetrics, name: &str) -> Option<&'a AggregatedMetrics> {
    let mut all = metrics.scope_metrics().flat_map(|scope| scope.metrics());
    all.find(|metric| metric.name() == name).map(|metric| metric.data())
}

pub(crate) fn labels<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> Labels {
    let mut labels: Labels = attributes.map(|kv| format!("{}={}", kv.key, kv.value)).collect();
    labels.sort();
    labels
}
