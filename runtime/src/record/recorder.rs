//! The process's recorder, as the caller's threads see it: its pool, its sampler, and counts of what callers got wrong.

use super::Context;
use super::context::State;
use super::local::Local;
use super::register;
use crate::chunk::Pool;
use crate::config::Sampler;
use crate::stage::{Site, level};
use stagetrace_wire::context::TraceFlags;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Null while there is none; never freed.
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(ptr::null_mut());

#[derive(Debug)]
struct Recorder {
    pool: &'static Pool,
    sampler: Sampler,
    /// Whether traces that are not sampled are recorded all the same, since somebody measures them.
    measures: bool,
}

/// Stages that did not lie within the stage they declare.
pub(crate) static MISPLACED: AtomicU64 = AtomicU64::new(0);
/// Guards that ended in another order than they began.
pub(crate) static OUT_OF_ORDER: AtomicU64 = AtomicU64::new(0);
/// Calls of `begin` on a request that had begun.
pub(crate) static BEGUN_TWICE: AtomicU64 = AtomicU64::new(0);
/// Calls of `finish` on a request that had finished.
pub(crate) static FINISHED_TWICE: AtomicU64 = AtomicU64::new(0);
/// Late attributes, events and links for which there was no recorded span.
pub(crate) static NO_SPAN: AtomicU64 = AtomicU64::new(0);

/// Counts one.
#[cold]
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Makes this the process's recorder. With `measures` it records also what is not sampled.
pub(crate) fn install(pool: &'static Pool, sampler: Sampler, measures: bool) {
    let recorder = Box::new(Recorder { pool, sampler, measures });
    RECORDER.store(Box::into_raw(recorder), Ordering::Release);
}

fn recorder() -> Option<&'static Recorder> {
    // SAFETY: null, or from a box in `install` that is never freed.
    unsafe { RECORDER.load(Ordering::Acquire).as_ref() }
}

/// The process's recorder, if there is one.
pub(crate) fn pool() -> Option<&'static Pool> {
    recorder().map(|recorder| recorder.pool)
}

/// Whether this pool is that of the process's recorder.
#[cfg(unix)]
pub(crate) fn is_installed(pool: Option<&'static Pool>) -> bool {
    pool.map(ptr::from_ref) == self::pool().map(ptr::from_ref)
}

/// Says that the recorder is another process's, and so are the counts.
#[cfg(unix)]
pub(crate) fn cut_off() {
    RECORDER.store(ptr::null_mut(), Ordering::Release);
    for counter in [&MISPLACED, &OUT_OF_ORDER, &BEGUN_TWICE, &FINISHED_TWICE, &NO_SPAN] {
        counter.store(0, Ordering::Relaxed);
    }
}

/// The state of a trace that begins here, or below a remote parent that was sampled or not: sampled at `level`, or not,
/// and then recorded only if somebody measures it.
pub(crate) fn decide(trace: [u64; 2], parent: Option<bool>, level: u8) -> State {
    let recorder = recorder();
    let sampler = recorder.map(|recorder| recorder.sampler).unwrap_or_default();
    let id = u128::from(trace[0]) << 64 | u128::from(trace[1]);
    match sampler.samples(id, parent) {
        true => State::new(level, TraceFlags::SAMPLED.bits()),
        false if recorder.is_some_and(|recorder| recorder.measures) => {
            State::new(level, 0).measured()
        }
        false => State::new(0, 0),
    }
}

/// A new trace at a level: no span yet, and the sampling decision in its state. `None` while nothing is to be recorded.
pub(crate) fn new_trace(local: &Local, level: u8) -> Option<Context> {
    if level == 0 || level::in_use() == 0 {
        return None;
    }
    let trace = local.next_trace();
    let state = decide(trace, None, level).with_random(true);
    Some(Context { trace, state, ..Context::NONE })
}

/// A trace of its own for a stage that has none: `None` if the process does not record its level. If the trace is not
/// recorded its span id is made here, for whoever injects it.
pub(crate) fn own_trace(local: &Local, stage_level: u8) -> Option<Context> {
    let level = local.base_level().unwrap_or_else(level::of_process);
    if level < stage_level {
        return None;
    }
    let context = new_trace(local, level)?;
    Some(Context { span: local.next_id(), ..context })
}

/// The site with this number.
pub(crate) fn site_of(number: u32) -> Option<&'static Site> {
    register::site(number)
}
