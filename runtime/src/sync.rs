//! The only door to atomics of what is shared between threads and checked by models.
//!
//! `models/` compiles the files behind it a second time, with loom's types behind a door of the same name. So what loom
//! explores is the code that runs here. Files behind it name no atomic of `std` themselves.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::sync::{Mutex, MutexGuard};
