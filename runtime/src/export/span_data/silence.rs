//! Silence: nothing of what an exporter does is traced, or each export would beget the next.

use crate::record::local::{self, Local};
use opentelemetry::Context;
use std::cell::RefCell;
use tracing_core::dispatcher::{DefaultGuard, Dispatch, set_default};

thread_local! {
    static MUTED: RefCell<Option<Muted>> = const { RefCell::new(None) };
}

/// From now on this thread records nothing, neither here nor with the OpenTelemetry SDK.
pub(super) fn for_this_thread() {
    local::with(Local::mute);
    // Never left: the thread has no other use.
    std::mem::forget(Context::enter_telemetry_suppressed_scope());
}

/// While it lives, what this thread reports through `tracing` does not reach the application's
/// subscriber.
///
/// Only as long as something runs: while any thread has a subscriber of its own, every report of
/// the application looks for one.
#[must_use]
pub(super) struct Muted(#[expect(dead_code, reason = "its drop undoes it")] DefaultGuard);

pub(super) fn muted() -> Muted {
    Muted(set_default(&Dispatch::none()))
}

/// The same for a thread that is told when it runs and when it rests.
pub(super) fn mute() {
    MUTED.with_borrow_mut(|muted| {
        muted.get_or_insert_with(self::muted);
    });
}

/// Undoes [`mute`].
pub(super) fn unmute() {
    MUTED.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_muted_thread_records_nothing_and_is_known_to_the_sdk() {
        std::thread::spawn(|| {
            for_this_thread();
            assert!(Context::is_current_telemetry_suppressed());
            assert!(local::with(Local::pool).is_none());
        })
        .join()
        .expect("the thread only looks");
    }
}
