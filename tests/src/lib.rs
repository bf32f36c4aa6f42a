//! Tools of the end-to-end tests: a test's body in a process of its own, the spans it left on disk,
//! waits that end.
//!
//! The recorder is one per process and can be started once, so each test that starts it is a
//! process. Tests that only look at shapes use [`stagetrace::testing::capture`]. They run on Linux.

pub mod delivered;
pub mod ended;
pub mod ledger;
pub mod pipeline;
mod process;
pub mod rights;
pub mod rounds;
mod spans;
mod wait;

pub use process::{Alone, Ran, alone, command, finish};
pub use spans::Spans;
pub use wait::{
    counters, flushed, processor_time, resident_bytes, spin_until, start, start_exporting,
    start_with, until,
};
