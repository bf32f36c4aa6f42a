//! The only door to the atomics of a recording. `models/` compiles the walk with loom's behind a door of the same name.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
