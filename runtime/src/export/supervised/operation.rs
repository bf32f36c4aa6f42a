//! How long exports take, told to whoever measures that.

use super::{Batch, Cause, Queue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An export that has come to an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// The exporter.
    pub(crate) sink: &'static str,
    pub(crate) took: Duration,
    /// Its `error.type`, if not all spans arrived.
    pub(crate) error: Option<&'static str>,
}

type Listener = Box<dyn Fn(&Operation) + Send>;

static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

/// Has every later export told to `listener`, on the exporter's thread.
pub(crate) fn on_each(listener: impl Fn(&Operation) + Send + 'static) {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    listeners.push(Box::new(listener));
}

impl<B: Batch> Queue<B> {
    /// An export has come to an end. A listener that panics hears of nothing more than this.
    pub(in super::super) fn operated(&self, took: Duration, error: Option<Cause>) {
        let error = error.map(Cause::name);
        let operation = Operation { sink: self.name(), took, error };
        let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        for listener in listeners.iter() {
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&operation)));
        }
    }
}
