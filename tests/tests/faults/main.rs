//! Faults of the environment, each real and in a process of its own: what the user sees, what is lost, and that recording
//! goes on when the fault is gone. `docs/faults.md` lists what is promised.
#![cfg(target_os = "linux")]

mod disk;
mod paths;
mod process;
mod removed;
mod shared_memory;
mod spool;
mod support;
