//! Which thread this is, as the operating system numbers it.

use std::cell::Cell;

thread_local!(static THIS: Cell<u64> = const { Cell::new(0) });

/// The operating system's number of this thread, 0 where there is none. Asked for once: it is a system call.
pub(super) fn this() -> u64 {
    THIS.with(|known| {
        if known.get() == 0 {
            known.set(ask());
        }
        known.get()
    })
}

/// Has this thread ask again: in the child of a fork it is another one.
#[cfg(unix)]
pub(crate) fn forget() {
    THIS.with(|known| known.set(0));
}

fn ask() -> u64 {
    #[cfg(target_os = "linux")]
    {
        rustix::thread::gettid().as_raw_nonzero().get() as u64
    }
    #[cfg(not(target_os = "linux"))]
    {
        0
    }
}
