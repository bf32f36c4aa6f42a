//! The stage table: blocks of entries that explain numbers to readers.

use super::{Pool, SMALL_PER_BLOCK};
use crate::sync::Ordering;
use stagetrace_wire::recording::layout::{BLOCK, chunk};
use std::sync::PoisonError;

/// Where the stage table goes on.
#[derive(Debug, Default)]
pub(super) struct Table {
    block: Option<usize>,
}

impl Pool {
    /// Appends an entry to the stage table. Whether there was room.
    pub(crate) fn add_to_table(&self, entry: &[u8]) -> bool {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let words = 1 + entry.len().div_ceil(8);
        if words > (BLOCK - chunk::HEAD) / 8 {
            return false;
        }
        for _ in 0..2 {
            if let Some(block) = table.block {
                let block = self.space.block(block);
                let tail = block[chunk::TAIL].load(Ordering::Relaxed) as usize;
                if tail + words * 8 <= BLOCK {
                    block[tail / 8].store(entry.len() as u64, Ordering::Relaxed);
                    for (word, bytes) in block[tail / 8 + 1..].iter().zip(entry.chunks(8)) {
                        let mut eight = [0; 8];
                        eight[..bytes.len()].copy_from_slice(bytes);
                        word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
                    }
                    block[chunk::TAIL].store((tail + words * 8) as u64, Ordering::Release);
                    return true;
                }
            }
            let Some(page) = self.take_large() else { return false };
            let block = page / SMALL_PER_BLOCK;
            let kind = u64::from(chunk::TABLE) | (BLOCK as u64) << 32;
            self.space.block(block)[chunk::KIND].store(kind, Ordering::Release);
            table.block = Some(block);
        }
        false
    }
}
