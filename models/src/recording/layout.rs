//! The layout, but with blocks of two small chunks, which have room for two records each.

#[path = "../../../wire/src/recording/layout.rs"]
mod real;

pub(crate) use real::{MAGIC, chunk, slot};

/// Bytes of a small chunk.
pub(crate) const SMALL_CHUNK: usize = chunk::HEAD + 2 * 8 * slot::WORDS;
/// Bytes of a block.
pub(crate) const BLOCK: usize = 2 * SMALL_CHUNK;
/// As in the product.
pub(crate) const MAX_BLOCKS: usize = real::MAX_BLOCKS;

pub(crate) mod header {
    pub(crate) use super::real::header::*;
    /// Within a block.
    pub(crate) const IDENTITY: usize = 256;
}

pub(crate) mod slab {
    pub(crate) use super::real::slab::{ATTRIBUTES, GENERATION, WORDS};
    /// Slots in a block.
    pub(crate) const SLOTS: usize = 2;
}
