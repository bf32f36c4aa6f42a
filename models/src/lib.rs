//! What threads, the collector and readers in other processes may do to each other, explored by loom.
//!
//! The modules below are the product's own files, compiled a second time. What is not the product's is small: the door to
//! atomics, which here are loom's (`sync`); the memory of a recording (`space.rs`), which is a few hundred
//! words; the sizes of blocks and chunks (`recording`'s `layout`), so that a block has room for a handful of records;
//! and a clock. Each test in `models` runs every interleaving of its threads with a bounded number of preemptions, and
//! every value that a weak memory may give to each load. `docs/invariants.md` says which model guards what, and which
//! weakening of the product's code it was seen to catch.
//!
//! `cargo test -p stagetrace-models` runs all; `LOOM_MAX_PREEMPTIONS=3` looks further, and takes much longer.

#![cfg(test)]
#![allow(unreachable_pub, reason = "what a product's file shows its crate is public there")]

// The product's files name the contract's crate by its name.
extern crate self as stagetrace_wire;

// A module with a directory, so that the pool's parts are found beside it.
#[allow(dead_code, unused_imports, reason = "the models use a part of the product's code")]
#[path = "../../runtime/src/chunk"]
mod chunk {
    //! The boundary: the product's files, but for the memory.

    mod drop_cause;
    pub(crate) mod generation;
    mod pool;
    mod progress;
    mod shared;
    mod shelf;
    #[path = "../../../models/src/space.rs"]
    mod space;
    mod stack;
    mod thread_id;
    mod writer;

    pub(crate) use drop_cause::DropCause;
    pub(crate) use pool::Pool;
    pub(crate) use progress::{Progress, Seen};
    pub(crate) use shelf::{Hand, Links, Shelf, stock};
    pub(crate) use space::Space;
    pub(crate) use writer::{Writer, end};
}
mod clock;
mod models;
mod record;
mod recording;
mod sync;
