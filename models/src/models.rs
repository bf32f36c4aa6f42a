//! The models. Each file is about one part of the boundary.

mod exit;
mod growth;
mod publish;
mod recycle;
mod rights;
mod shelf;
mod slab;
mod support;
