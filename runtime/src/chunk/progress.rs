//! The collector's side of a chunk: what is new in it, what has ended, and whether it is done with.
//!
//! Its writer goes on meanwhile. Records are looked at in order, once; those of spans that are open are looked at again
//! until they end.

use crate::sync::{AtomicU64, Ordering};
use stagetrace_wire::recording::layout::{chunk, slot};

/// How far a chunk was read, and which of its spans were open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes that were looked at, 0 before the chunk was seen in use.
    cursor: usize,
    /// Offsets of records that were open, in bytes.
    open: Vec<u32>,
}

/// What was found, once for each record that is not of an open span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A side record.
    Side,
    /// A span that has ended: all its words stand.
    Ended,
}

impl Progress {
    /// Looks at what is new, and at what was open. Hands over each record with its offset in bytes and its words, and
    /// perhaps more behind them; gives how many records were news.
    pub(crate) fn look<'a>(
        &mut self,
        words: &'a [AtomicU64],
        mut with: impl FnMut(Seen, usize, &'a [AtomicU64]),
    ) -> usize {
        // In this order: once a chunk is full its tail stands.
        let state = words[chunk::STATE].load(Ordering::Acquire);
        if state == chunk::FREE {
            return 0;
        }
        let tail = words[chunk::TAIL].load(Ordering::Acquire) as usize;
        self.cursor = self.cursor.max(chunk::HEAD);
        let mut news = 0;
        self.open.retain(|&offset| {
            let record = &words[offset as usize / 8..];
            let open = !has_ended(record);
            if !open {
                news += 1;
                with(Seen::Ended, offset as usize, record);
            }
            open
        });
        while self.cursor < tail {
            let offset = self.cursor;
            let record = &words[offset / 8..tail / 8];
            let meta = record[slot::META].load(Ordering::Relaxed);
            let size = (meta >> 32) as u16 as usize * 8;
            if size == 0 || offset + size > tail {
                // Published whole by its owner; anything else would be a bug, which must not loop.
                debug_assert!(false, "a record of {size} bytes at {offset} of {tail}");
                self.cursor = tail;
                break;
            }
            self.cursor += size;
            news += 1;
            if (meta >> 56) as u8 & slot::SIDE != 0 {
                with(Seen::Side, offset, record);
            } else if has_ended(record) {
                with(Seen::Ended, offset, record);
            } else {
                self.open.push(offset as u32);
            }
        }
        news
    }

    /// Whether nobody writes here any more, and all that was written was seen ended.
    pub(crate) fn is_done(&self, words: &[AtomicU64]) -> bool {
        let full = words[chunk::STATE].load(Ordering::Acquire) == chunk::FULL;
        let read = self.cursor as u64 == words[chunk::TAIL].load(Ordering::Acquire);
        full && read && self.open.is_empty()
    }

    /// Whether it was ever seen in use.
    pub(crate) fn has_begun(&self) -> bool {
        self.cursor > 0
    }

    /// How many spans were open when it was last looked at.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }
}

/// Whether the span of a record has ended; if so, all that belongs to the end is seen.
fn has_ended(record: &[AtomicU64]) -> bool {
    record[slot::END].load(Ordering::Acquire) != 0
}
