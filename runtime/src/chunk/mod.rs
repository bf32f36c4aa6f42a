//! The one boundary between the caller's threads and the background.
//!
//! Laws: a caller waits for no lock, makes no allocation and no system call here, but one wake-up of the collector per
//! eight full chunks and, at its first chunk, the question which thread it is. A record is visible to every reader, in this process or another, from the moment its chunk's tail
//! is published; its end is one store. When nothing is free the answer is "no", at once, and the loss is counted. Only
//! the collector gives back and grows, and a chunk's sequence number changes before any of its words is used anew.

mod drop_cause;
pub(crate) mod generation;
mod pool;
mod progress;
mod shared;
mod shelf;
mod space;
mod stack;
mod thread_id;
mod writer;

pub use drop_cause::DropCause;
pub(crate) use pool::{Pool, STEP_BLOCKS};
pub(crate) use progress::{Progress, Seen};
pub(crate) use shelf::{Hand, Links, Shelf, stock};
pub(crate) use space::Space;
#[cfg(unix)]
pub(crate) use thread_id::forget as forget_thread_id;
pub(crate) use writer::{Writer, end};
