//! How long exports take, told to whoever measures that.

use super::{Batch, Cause, Queue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
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

type Listener = Arc<dyn Fn(&Operation) + Send + Sync>;

static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

/// Has every later export told to `listener`, on the exporter's thread.
pub(crate) fn on_each(listener: impl Fn(&Operation) + Send + Sync + 'static) {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    listeners.push(Arc::new(listener));
}

/// Tells everybody, who may do whatever they like: nothing is held meanwhile, and a panic stays here.
fn tell(operation: &Operation) {
    let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for listener in listeners {
        let _ = catch_unwind(AssertUnwindSafe(|| listener(operation)));
    }
}

impl<B: Batch> Queue<B> {
    /// An export has come to an end.
    pub(in super::super) fn operated(&self, took: Duration, error: Option<Cause>) {
        tell(&Operation { sink: self.name(), took, error: error.map(Cause::name) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_listener_may_panic_and_may_bring_another_one() {
        static HEARD: AtomicUsize = AtomicUsize::new(0);
        const SINK: &str = "of this test";
        on_each(|operation| assert_ne!(operation.sink, SINK, "on purpose"));
        on_each(|operation| {
            if operation.sink == SINK && HEARD.fetch_add(1, Ordering::SeqCst) == 0 {
                on_each(|operation| {
                    HEARD.fetch_add(usize::from(operation.sink == SINK), Ordering::SeqCst);
                });
            }
        });
        let operation = Operation { sink: SINK, took: Duration::ZERO, error: None };
        tell(&operation);
        assert_eq!(HEARD.load(Ordering::SeqCst), 1, "the new one hears of the next");
        tell(&operation);
        assert_eq!(HEARD.load(Ordering::SeqCst), 3);
    }
}
