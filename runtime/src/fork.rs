//! After a `fork` the child records nothing until it calls `init`: what it inherits is its parent's recording.
//!
//! While the process is doubled every lock of ours is held, so that the child finds none that is taken for ever. The
//! child's handler runs before the child's code goes on, and does only what is allowed there: a mapping is replaced, a
//! descriptor closed, locks are given back, words are stored. Spans that were open still end, into memory of the child's
//! own. A child made by a bare system call, past the C library, is not noticed.

use crate::chunk::{Pool, forget_thread_id};
use crate::record::{live, local, recorder, register};
use crate::stage::level;
use crate::{complain, init, request, testing};
use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The process's pool, from the moment it has one.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Has every later fork cut the child off from `pool`.
pub(crate) fn watch(pool: &'static Pool) {
    static ONCE: Once = Once::new();
    POOL.store(ptr::from_ref(pool).cast_mut(), Ordering::Release);
    ONCE.call_once(|| {
        // SAFETY: the child's handler does only what is allowed in the child of a process with threads. If they cannot
        // be registered for want of memory, a later fork is as it was without us.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Locks, in the order in which they are taken. No code takes an earlier one while it has a later one.
type Locks = [Box<dyn Any>; 4];

static HELD: Held = Held(UnsafeCell::new(None));

struct Held(UnsafeCell<Option<Locks>>);

// SAFETY: it is touched by the thread that forks, between taking the first of the locks and giving it back.
unsafe impl Sync for Held {}

extern "C" fn before() {
    let locks = [register::hold(), live::hold(), testing::hold(), complain::hold()];
    // SAFETY: this thread has the locks.
    unsafe { *HELD.0.get() = Some(locks) };
}

extern "C" fn in_parent() {
    // SAFETY: this thread took the locks in `before`. It puts nothing there any more when it gives them back.
    drop(unsafe { (*HELD.0.get()).take() });
}

extern "C" fn in_child() {
    // First of all, so that nothing is written into what is the parent's; but the id of the current span stands there.
    local::with(local::Local::forget_slot);
    let pool = POOL.swap(ptr::null_mut(), Ordering::Acquire);
    // SAFETY: the pool lives as long as the process, and this is the child, whose only thread is this one.
    unsafe {
        if let Some(pool) = pool.as_ref() {
            pool.space().make_private();
        }
    }
    level::set_process(0);
    init::cut_off();
    recorder::cut_off();
    request::UNREADABLE.store(0, Ordering::Relaxed);
    live::forget_free();
    forget_thread_id();
    local::with(|local| {
        if !local.is_capturing() {
            local.forget_recorder();
            level::forget_captures();
        }
    });
    in_parent();
}
