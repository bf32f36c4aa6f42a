//! The recording: the memory-mapped file into which a process writes its spans as they begin and end.

pub mod layout;
pub mod read;
pub mod recover;
pub mod time;
pub mod value;
