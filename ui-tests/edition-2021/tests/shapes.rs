//! The shapes in `pass/`, in edition 2021.

#[path = "../../pass/mod.rs"]
pub mod pass;
