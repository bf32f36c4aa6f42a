//! Everything that generated code may name. Nothing else does: these names change with every release, and so does the
//! path by which they are reached.

pub use crate::record::{
    Accepts, AnyRequest, Attributes, Begin, Carrier, KnownId, Late, Located, OtherId, PlainId,
    Position, Prepared, RequestRecorder, StageFuture, StageGuard, StateField, Value, enter,
    enter_detached, enter_detached_with, enter_of, enter_of_with, enter_with, locate, prepare,
    prepare_detached, prepare_of, record_current, record_return,
};
pub use crate::request::{ErrorText, Failure, Judge, Judged, StageOutcome, TraceState, judged};
pub use crate::stage::{STAGE_SETS, Site, SpanKind, Stage, StageInfo, StageSet, StageSite};
pub use crate::{__stagetrace_judge as judge, __stagetrace_on_off as on_off, Traced};
pub use core;
pub use linkme;

/// Calls a closure that the compiler must take for one that is called once.
#[inline(always)]
pub fn call<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Takes the arm that this build wants: `off` when the whole program is built with `--cfg stagetrace_off`.
#[cfg(not(stagetrace_off))]
#[doc(hidden)]
#[macro_export]
macro_rules! __stagetrace_on_off {
    (on { $($on:tt)* } off { $($off:tt)* }) => { $($on)* };
}

/// Takes the arm that this build wants: `off` when the whole program is built with `--cfg stagetrace_off`.
#[cfg(stagetrace_off)]
#[doc(hidden)]
#[macro_export]
macro_rules! __stagetrace_on_off {
    (on { $($on:tt)* } off { $($off:tt)* }) => { $($off)* };
}
