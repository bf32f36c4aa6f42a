//! After a `fork` the child records nothing: it must not write into its parent's recording.
//!
//! The handler runs in the child, before its code goes on, where only little is allowed: a mapping is replaced, a
//! descriptor closed, and words are stored. Spans that were open still end, into memory of the child's own.

use crate::init;
use crate::record::{local, recorder};
use crate::stage::level;
use std::sync::Once;

/// Has every later fork cut the child off from the recording.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler does only what is allowed in the child of a process with threads. If it cannot be
        // registered for want of memory, a later fork is as it was without us.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

extern "C" fn in_child() {
    level::set_process(0);
    init::cut_off();
    if let Some(pool) = recorder::pool() {
        // SAFETY: this is the child, whose only thread is this one.
        unsafe { pool.space().make_private() };
    }
    recorder::cut_off();
    local::with(local::Local::forget_recorder);
}
