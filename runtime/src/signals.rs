//! Our own threads take no signals.
//!
//! A handler of the program would otherwise run on a thread that it knows nothing of, and a file that reaches the
//! process's limit would end the process: a thread that blocks that signal gets an error instead.

/// Blocks, for the calling thread, every signal that is meant for the process. Those that a fault of the thread itself
/// raises stay as they are, so that whoever reports crashes hears of ours too; and so does the profiler's.
#[cfg(unix)]
pub(crate) fn block() {
    const KEPT: [libc::c_int; 8] = [
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGPROF,
        libc::SIGSEGV,
        libc::SIGSYS,
        libc::SIGTRAP,
    ];
    // SAFETY: the set is filled before it is read; the mask is that of this thread alone.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        for signal in KEPT {
            libc::sigdelset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// Nothing to block.
#[cfg(not(unix))]
pub(crate) fn block() {}
