//! The memory of a model's recording: a few blocks of loom's words, of which so many are said to be there.

use crate::recording::layout::BLOCK;
use crate::sync::AtomicU64;
use std::cell::Cell;
use std::io;

/// A range of blocks.
#[derive(Debug)]
pub(crate) struct Space {
    words: Box<[AtomicU64]>,
    /// How far it may grow now; only the thread that grows the pool looks at it.
    limit: Cell<usize>,
    provided: Cell<usize>,
}

// SAFETY: the cells are the growing thread's alone; models run on one thread of the operating system.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// Room for `blocks` blocks, of which the pool sees `limit` at first.
    pub(crate) fn new(blocks: usize, limit: usize) -> Space {
        let words = (0..blocks * BLOCK / 8).map(|_| AtomicU64::new(0)).collect();
        Space { words, limit: Cell::new(limit), provided: Cell::new(0) }
    }

    /// Lets the pool see all.
    pub(crate) fn widen(&self) {
        self.limit.set(self.words.len() / (BLOCK / 8));
    }

    /// Every word, as a reader maps them.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// Blocks that the pool may use.
    pub(crate) fn blocks(&self) -> usize {
        self.limit.get()
    }

    /// Says that these blocks may be touched.
    pub(crate) fn provide(&self, first: usize, count: usize) -> io::Result<()> {
        assert_eq!(first, self.provided.get(), "blocks are provided in order");
        self.provided.set(first + count);
        Ok(())
    }

    /// The word with this index.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index / (BLOCK / 8) < self.provided.get(), "word {index} is a hole in the file");
        &self.words[index]
    }

    /// The words of one block.
    pub(crate) fn block(&self, block: usize) -> &[AtomicU64] {
        assert!(block < self.provided.get(), "block {block} is a hole in the file");
        &self.words[block * (BLOCK / 8)..(block + 1) * (BLOCK / 8)]
    }
}
