//! Exporters of the SDK that misbehave on command.

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What an exporter was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    spans: Mutex<Vec<SpanData>>,
    exports: AtomicUsize,
    flushes: AtomicUsize,
    shutdowns: AtomicUsize,
    resource: Mutex<Option<Resource>>,
}

impl Seen {
    pub(crate) fn spans(&self) -> Vec<SpanData> {
        self.0.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The numbers of the steps, in the order in which they came.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        let of = |span: SpanData| {
            let number = span.attributes.iter().find(|a| a.key.as_str() == "number")?;
            number.value.as_str().parse().ok()
        };
        self.spans().into_iter().filter_map(of).collect()
    }

    pub(crate) fn exports(&self) -> usize {
        self.0.exports.load(Ordering::SeqCst)
    }

    pub(crate) fn flushes(&self) -> usize {
        self.0.flushes.load(Ordering::SeqCst)
    }

    pub(crate) fn shutdowns(&self) -> usize {
        self.0.shutdowns.load(Ordering::SeqCst)
    }

    pub(crate) fn resource(&self) -> Option<Resource> {
        self.0.resource.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An exporter that first does what its script says of the n-th export, counted from 0, and keeps
/// the spans if that is well.
pub(crate) struct Scripted<S> {
    script: S,
    seen: Seen,
}

impl<F: Future<Output = OTelSdkResult> + Send, S: Fn(usize) -> F + Send + Sync> Scripted<S> {
    pub(crate) fn new(script: S) -> (Scripted<S>, Seen) {
        let seen = Seen::default();
        (Scripted { script, seen: seen.clone() }, seen)
    }
}

impl<S> fmt::Debug for Scripted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl<F, S> SpanExporter for Scripted<S>
where
    F: Future<Output = OTelSdkResult> + Send,
    S: Fn(usize) -> F + Send + Sync,
{
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let number = self.seen.0.exports.fetch_add(1, Ordering::SeqCst);
        (self.script)(number).await?;
        self.seen.0.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        self.seen.0.shutdowns.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.seen.0.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        *self.seen.0.resource.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(resource.clone());
    }
}
