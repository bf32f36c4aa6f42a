//! Collect: the background's one thread, from records to sinks.
//!
//! It polls, so that the caller's threads need not speak to it; it looks at every chunk as a reader in another process
//! would, and is the only one that gives chunks back.

mod anchors;
mod breakdown;
mod clock_report;
mod collector;
mod details;
mod ended;
mod handed;
mod hash;
mod held;
mod line;
mod loss;
mod owned;
#[cfg(feature = "metrics")]
mod requests;
mod run;
mod sink;
mod spool;
mod sweep;
mod tail;
mod view;
mod worker;

pub(crate) use anchors::Anchors;
pub(crate) use collector::{Collector, Flushed, Parts};
#[cfg(test)]
pub(crate) use ended::Ended;
pub(crate) use owned::to_span;
#[cfg(feature = "metrics")]
pub(crate) use requests::open_requests;
pub(crate) use run::Run;
pub(crate) use sink::{OpenSink, Opening, Sink, Standing};
pub(crate) use sweep::Sweep;
#[cfg(feature = "otel")]
pub(crate) use view::Record;
#[cfg(feature = "metrics")]
pub(crate) use view::{ERROR_TYPE, OUTCOME};
pub(crate) use view::{Key, SpanView};
