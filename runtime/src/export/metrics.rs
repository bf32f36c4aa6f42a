//! Metrics from spans: each ended span becomes a value or two of OpenTelemetry instruments.
//!
//! The values are recorded on the collector's thread, so the meter may not block; a panic in it costs the spans at hand
//! and is counted. What is constant of a site's spans is made once, so that a plain span allocates nothing.

mod gen_ai;
mod instruments;
mod requests;
mod stages;

use super::sites::Sites;
use super::supervised::silence;
use crate::collect::{OpenSink, Run, Sink, SpanView, Standing};
use crate::complain;
use crate::error::SinkError;
use crate::stats::SinkStatus;
use instruments::Instruments;
use opentelemetry::metrics::Meter;
pub(crate) use requests::REQUEST;
use requests::Requests;
use stages::StageSeries;
use stagetrace_wire::recording::layout::slot;
use stagetrace_wire::span::Resource;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A sink that records what its spans say into instruments of the meter that `meter` makes. `also` makes further
/// instruments.
pub(crate) fn into_metrics(
    name: &'static str,
    meter: impl FnOnce(&Resource) -> Meter + Send + 'static,
    also: fn(&Meter),
) -> OpenSink {
    Box::new(move |opening| {
        let mut status = SinkStatus { name, ..SinkStatus::default() };
        let make = || {
            let meter = meter(opening.resource);
            also(&meter);
            Instruments::of(&meter)
        };
        let made = catch_unwind(AssertUnwindSafe(make));
        let instruments = made.map_err(|_| fail(&mut status)).ok();
        Box::new(Metrics {
            instruments,
            stages: Sites::new(),
            requests: Requests::default(),
            status,
            lost: 0,
            is_silent: false,
        })
    })
}

/// The number of the sites of the recorder's own reports, which are no stages of the program.
const OWN: u32 = u32::MAX;
const PANIC: &str = "panic";

/// Records spans into instruments.
struct Metrics {
    /// `None` if they could not be made.
    instruments: Option<Instruments>,
    stages: Sites<StageSeries>,
    requests: Requests,
    status: SinkStatus,
    /// Spans lost since the last flush.
    lost: u64,
    is_silent: bool,
}

impl Metrics {
    /// Has the instruments take this many spans. If they panic, none of them count as taken.
    fn record(&mut self, spans: u64, record: impl FnOnce(&mut Self, &Instruments)) {
        if !self.is_silent {
            // What the meter does on this thread is not traced.
            silence::for_this_thread();
            self.is_silent = true;
        }
        self.status.handed += spans;
        if let Some(instruments) = self.instruments.take() {
            let recorded = catch_unwind(AssertUnwindSafe(|| record(self, &instruments)));
            self.instruments = Some(instruments);
            if recorded.is_ok() {
                self.status.exported += spans;
                self.status.recovers();
                return;
            }
            fail(&mut self.status);
        }
        self.lost += spans;
        self.status.failed += spans;
        self.status.failed_by = vec![(PANIC, self.status.failed)];
    }

    fn stage(&mut self, instruments: &Instruments, span: &SpanView<'_>) {
        let series = self.stages.of(span.number, || Some(StageSeries::new(span.site)));
        if let Some(series) = series {
            series.record(&instruments.stage_duration, span);
        }
    }
}

/// Says that the meter has panicked.
#[cold]
fn fail(status: &mut SinkStatus) {
    let problem = "the meter panicked";
    complain::warn("metrics", format_args!("{problem}: metrics lack spans"));
    status.panics += 1;
    status.fails(problem.to_owned());
}

impl Sink for Metrics {
    fn add(&mut self, span: &SpanView<'_>) -> bool {
        self.record(1, |this, instruments| match span.number {
            OWN => {}
            _ if span.record.flag(slot::ROOT) => this.requests.record(instruments, span),
            _ => this.stage(instruments, span),
        });
        false
    }

    fn add_run(&mut self, run: &Run<'_>) -> bool {
        self.record(run.spans() as u64, |this, instruments| {
            for span in run.iter() {
                let number = span.number();
                let series = this.stages.of(number, || run.site(number).map(StageSeries::new));
                if let (Some(series), Some(it)) = (series, span.execution()) {
                    let seconds = seconds(it.start_unix_nano, it.end_unix_nano);
                    instruments.stage_duration.record(seconds, series.succeeded());
                }
            }
        });
        false
    }

    fn is_before_sampling(&self) -> bool {
        true
    }

    fn takes_unsampled(&self) -> bool {
        self.instruments.is_some()
    }

    fn commit(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn abandon(&mut self) {}

    fn flush(&mut self, _: Instant) -> Result<(), SinkError> {
        match std::mem::take(&mut self.lost) {
            0 => Ok(()),
            lost => {
                let problem = format!("lost {lost} spans ({PANIC} {lost}); the meter panicked");
                Err(SinkError { sink: self.status.name, problem })
            }
        }
    }

    /// Nothing waits in it. A span that the meter did not count is not lost by that.
    fn standing(&self) -> Standing {
        let handed = self.status.handed;
        Standing { taken: handed, gone: handed, lost: 0 }
    }

    fn status(&self) -> SinkStatus {
        self.status.clone()
    }
}

/// The seconds between two times in nanoseconds.
#[inline]
fn seconds(begin: u64, end: u64) -> f64 {
    end.saturating_sub(begin) as f64 / 1e9
}
