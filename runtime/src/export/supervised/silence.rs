//! Silence: nothing of what an exporter does is traced, or each export would beget the next.

use crate::record::local::{self, Local};

/// From now on this thread records nothing, neither here nor with the OpenTelemetry SDK.
pub(in super::super) fn for_this_thread() {
    local::with(Local::mute);
    #[cfg(feature = "otel")]
    // Never left: the thread has no other use.
    std::mem::forget(opentelemetry::Context::enter_telemetry_suppressed_scope());
}

#[cfg(any(feature = "otel", feature = "_network"))]
pub(in super::super) use of_subscribers::muted;
#[cfg(feature = "otel")]
pub(in super::super) use of_subscribers::{mute, unmute};

/// Where nobody sends, nothing is known of subscribers.
#[cfg(not(any(feature = "otel", feature = "_network")))]
pub(in super::super) fn muted() -> impl Sized {}

#[cfg(any(feature = "otel", feature = "_network"))]
mod of_subscribers {
    use tracing_core::dispatcher::{DefaultGuard, Dispatch, set_default};

    #[cfg(feature = "otel")]
    thread_local! {
        static MUTED: std::cell::RefCell<Option<Muted>> = const { std::cell::RefCell::new(None) };
    }

    /// While it lives, what this thread reports through `tracing` does not reach the application's subscriber.
    ///
    /// Only as long as something runs: while any thread has a subscriber of its own, every report of the application
    /// looks for one.
    #[must_use]
    pub(crate) struct Muted(#[expect(dead_code, reason = "its drop undoes it")] DefaultGuard);

    pub(crate) fn muted() -> Muted {
        Muted(set_default(&Dispatch::none()))
    }

    /// The same for a thread that is told when it runs and when it rests.
    #[cfg(feature = "otel")]
    pub(crate) fn mute() {
        MUTED.with_borrow_mut(|muted| {
            muted.get_or_insert_with(self::muted);
        });
    }

    /// Undoes [`mute`].
    #[cfg(feature = "otel")]
    pub(crate) fn unmute() {
        MUTED.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_muted_thread_records_nothing_and_is_known_to_the_sdk() {
        std::thread::spawn(|| {
            for_this_thread();
            #[cfg(feature = "otel")]
            assert!(opentelemetry::Context::is_current_telemetry_suppressed());
            assert!(local::with(Local::pool).is_none());
        })
        .join()
        .expect("the thread only looks");
    }
}
