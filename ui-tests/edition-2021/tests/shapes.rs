//! The shapes in `pass/`, in edition 2021.

// They are formatted in the style of edition 2024, by the other crate.
#[rustfmt::skip]
#[path = "../../pass/mod.rs"]
pub mod pass;
