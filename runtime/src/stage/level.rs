//! The gate: whether anything in the process wants spans of a level at all.
//!
//! One relaxed load answers it for a thread that has nothing to do with tracing. The highest level in use is that of
//! the process, or a greater one that a live request brought or a capture asks for.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

/// The highest level; a greater one acts as this.
pub(crate) const HIGHEST: u8 = 3;

static IN_USE: AtomicU8 = AtomicU8::new(0);
static PROCESS: AtomicU8 = AtomicU8::new(0);
static CAPTURES: AtomicU32 = AtomicU32::new(0);

/// The highest level that anybody wants recorded now. Built with `--cfg stagetrace_off` it is 0 for the compiler, which
/// leaves out what would be recorded.
#[inline(always)]
pub(crate) fn in_use() -> u8 {
    if cfg!(stagetrace_off) { 0 } else { IN_USE.load(Ordering::Relaxed) }
}

/// The level of later requests and of spans without one.
#[inline]
pub(crate) fn of_process() -> u8 {
    PROCESS.load(Ordering::Relaxed)
}

/// Sets the process's level. 0 stops recording at once, whatever live requests ask for; a lower one than before opens
/// the gate no further, and [`settle`] closes it when the last request of a greater level is gone.
pub(crate) fn set_process(level: u8) {
    let level = level.min(HIGHEST);
    PROCESS.store(level, Ordering::SeqCst);
    if level == 0 {
        settle(|| 0);
    } else {
        IN_USE.fetch_max(level, Ordering::SeqCst);
    }
}

/// Opens the gate for a request of a greater level than the process's. The request must be visible to the scan of
/// [`settle`] before.
#[cold]
pub(crate) fn raise(level: u8) {
    if of_process() > 0 {
        IN_USE.fetch_max(level.min(HIGHEST), Ordering::SeqCst);
        if of_process() == 0 {
            // Stopped in between.
            settle(|| 0);
        }
    }
}

/// Closes the gate as far as nobody needs it; `of_requests` gives the greatest level of the live requests.
pub(crate) fn settle(of_requests: impl FnOnce() -> u8) {
    let process = of_process();
    let captures = if CAPTURES.load(Ordering::SeqCst) > 0 { HIGHEST } else { 0 };
    IN_USE.store(process.max(captures), Ordering::SeqCst);
    // A request that raises the level now is either seen by the scan or raises after the store above.
    fence(Ordering::SeqCst);
    if process > 0 {
        IN_USE.fetch_max(of_requests().min(HIGHEST), Ordering::SeqCst);
    }
    if CAPTURES.load(Ordering::SeqCst) > 0 {
        IN_USE.fetch_max(HIGHEST, Ordering::SeqCst);
    }
}

/// Keeps the gate open for every level as long as it lives.
#[derive(Debug)]
pub(crate) struct Capturing(());

impl Capturing {
    /// Opens the gate.
    pub(crate) fn new() -> Capturing {
        CAPTURES.fetch_add(1, Ordering::SeqCst);
        IN_USE.fetch_max(HIGHEST, Ordering::SeqCst);
        Capturing(())
    }
}

/// Forgets the captures of threads that are not there: in the child of a fork there is only this one.
#[cfg(unix)]
pub(crate) fn forget_captures() {
    CAPTURES.store(0, Ordering::SeqCst);
    settle(|| 0);
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // Closing is left to the next `settle` or capture: other live requests may need the gate.
        if CAPTURES.fetch_sub(1, Ordering::SeqCst) == 1 && of_process() == 0 {
            settle(|| 0);
        }
    }
}
