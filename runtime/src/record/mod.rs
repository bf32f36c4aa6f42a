//! Record: what happens on the caller's threads.
//!
//! Laws of the hot path:
//!
//! - Off is one relaxed load, then the thread's own word.
//! - Beginning and ending a span takes no lock, no allocation, no system call and no shared contended line: a slot in
//!   the thread's own chunk, a tick, an id from the thread's own sequence.
//! - A span is visible, with all it has, from its first instant; its end is one store into the same slot.
//! - When there is no room the span is dropped and counted, and the context stays as it was.
//! - A filtered span is transparent: what is inside goes under the nearest recorded ancestor.
//! - Nothing here panics, and nothing here calls the caller's code while it holds anything.

mod attributes;
mod carrier;
mod context;
mod entry;
mod frames;
mod future;
mod guard;
mod in_span;
mod inline;
mod late;
pub(crate) mod live;
pub(crate) mod local;
mod next;
mod polling;
mod propagation;
pub(crate) mod recorder;
pub(crate) mod register;
mod rights;
pub(crate) mod root;
pub(crate) mod side;
pub(crate) mod slab;
mod span;
mod trace_state;
mod tuples;
mod unwind;
mod value;
mod write;

pub(crate) use attributes::REQUEST_ID;
pub use attributes::{KnownId, OtherId, PlainId, RequestRecorder};
pub use carrier::{Accepts, AnyRequest, Carrier, Located, StateField, locate};
pub(crate) use context::Context;
pub use context::Position;
pub use entry::{Attached, attach};
pub use future::{Prepared, StageFuture, prepare, prepare_detached, prepare_of};
pub use guard::{
    Begin, StageGuard, enter, enter_detached, enter_detached_with, enter_of, enter_of_with,
    enter_with,
};
pub use in_span::{InSpan, Inside};
pub use late::{Late, record_current, record_return};
pub use next::{Consecutive, next};
pub use propagation::{extract, inject};
pub use root::{Parent, Traced};
pub use span::{
    BeginSpan, Entered, Span, add_event, current, link, record_interval, set_attribute,
    set_attributes,
};
pub use tuples::Attributes;
pub use value::Value;
