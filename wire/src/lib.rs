//! The contract of stagetrace: what leaves the process.

pub mod context;
pub mod id;
pub mod otlp;
pub mod recording;
pub mod span;
mod sync;
