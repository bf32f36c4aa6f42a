//! Meters that are not the SDK's: one that panics, and one that notes the trace in which each value is recorded.

use opentelemetry::metrics::{
    Histogram, HistogramBuilder, InstrumentProvider, Meter, SyncInstrument,
};
use opentelemetry::trace::{SpanContext, TraceContextExt};
use opentelemetry::{Context, KeyValue};
use std::sync::{Arc, Mutex};

/// A meter whose histograms hand each value to `record`, with the histogram's name.
pub(crate) fn meter(record: impl Fn(&str, f64) + Send + Sync + 'static) -> Meter {
    Meter::new(Arc::new(Handing(Arc::new(record))))
}

/// A meter that notes for each value the histogram's name and the span that is current.
pub(crate) fn noting() -> (Meter, Notes) {
    let noted = Notes::default();
    let notes = Arc::clone(&noted);
    let meter = meter(move |name, _| {
        let current = Context::current().span().span_context().clone();
        notes.lock().unwrap().push((name.to_owned(), current));
    });
    (meter, noted)
}

/// A meter that panics when it is asked for a histogram.
pub(crate) fn without_instruments() -> Meter {
    Meter::new(Arc::new(Empty))
}

pub(crate) type Notes = Arc<Mutex<Vec<(String, SpanContext)>>>;
type Record = dyn Fn(&str, f64) + Send + Sync;

struct Handing(Arc<Record>);

impl InstrumentProvider for Handing {
    fn f64_histogram(&self, builder: HistogramBuilder<'_, Histogram<f64>>) -> Histogram<f64> {
        let record = Arc::clone(&self.0);
        Histogram::new(Arc::new(Handed { name: builder.name.into_owned(), record }))
    }
}

struct Handed {
    name: String,
    record: Arc<Record>,
}

impl SyncInstrument<f64> for Handed {
    fn measure(&self, value: f64, _: &[KeyValue]) {
        (self.record)(&self.name, value);
    }
}

struct Empty;

impl InstrumentProvider for Empty {
    fn f64_histogram(&self, _: HistogramBuilder<'_, Histogram<f64>>) -> Histogram<f64> {
        panic!("no histograms here")
    }
}
