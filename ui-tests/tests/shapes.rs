//! The shapes in `pass/`, in edition 2024.

#[path = "../pass/mod.rs"]
pub mod pass;
