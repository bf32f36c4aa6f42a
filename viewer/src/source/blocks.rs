//! A growing file cut into blocks of whole lines.

use std::io;

use memchr::{memchr, memrchr};

use super::input::Input;
use super::line::MAX_LINE;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 20;

/// How far a file was read.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Bytes that were read from the file.
    read: u64,
    /// The last of these, which are no whole line yet.
    pending: Vec<u8>,
    /// The line that is not yet ended is too long, and thrown away.
    is_skipping: bool,
    /// Bytes of the pending line that were read as a line, since they are one but for its end.
    taken: Option<usize>,
}

/// Whole lines.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Where they begin in the file.
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
    /// Lines before these that were too long.
    pub(super) too_long: u64,
    /// Lines before these that were read already.
    pub(super) taken: u64,
}

impl Blocks {
    /// Bytes that were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// What follows the last whole line; `None` if it is too long to keep.
    pub(super) fn pending(&self) -> Option<&[u8]> {
        (!self.is_skipping).then_some(&self.pending)
    }

    /// Where the pending bytes begin in the file.
    pub(super) fn pending_start(&self) -> u64 {
        self.read - self.pending.len() as u64
    }

    /// Says that a whole document was read, up to here.
    pub(super) fn skip_to(&mut self, read: u64) {
        *self = Self { read, ..Self::default() };
    }

    /// Says that the pending bytes were read as a line.
    pub(super) fn take_pending(&mut self) {
        self.taken = Some(self.pending.len());
    }

    pub(super) fn is_taken(&self) -> bool {
        self.taken == Some(self.pending.len())
    }

    /// Reads on, at most up to this length of the file. `None` if no line ends before.
    pub(super) fn next(&mut self, input: &mut Input, len: u64) -> io::Result<Option<Block>> {
        while self.read < len {
            let before = self.pending.len();
            let more = usize::try_from(len - self.read).unwrap_or(usize::MAX).min(BLOCK);
            let got = input.read(self.read, more, &mut self.pending)?;
            self.read += got as u64;
            if got == 0 {
                // It was cut short meanwhile; the next look at its length finds out.
                return Ok(None);
            }
            let new = &self.pending[before..];
            let Some(last) = memrchr(b'\n', new) else {
                self.limit();
                continue;
            };
            let rest = self.pending.split_off(before + last + 1);
            let bytes = std::mem::replace(&mut self.pending, rest);
            let start = self.pending_start() - bytes.len() as u64;
            let mut block = Block { start, bytes, ..Block::default() };
            self.end_first_line(&mut block);
            self.limit();
            return Ok(Some(block));
        }
        Ok(None)
    }

    /// Throws away a line that has grown too long.
    fn limit(&mut self) {
        if self.is_skipping || self.pending.len() > MAX_LINE {
            self.is_skipping = true;
            self.pending = Vec::new();
        }
    }

    /// The first line of a block may be the end of one that is thrown away, or was read already.
    fn end_first_line(&mut self, block: &mut Block) {
        let taken = self.taken.take();
        let is_skipped = std::mem::take(&mut self.is_skipping);
        if taken.is_none() && !is_skipped {
            return;
        }
        let end = memchr(b'\n', &block.bytes).unwrap_or(0);
        let is_taken = taken.is_some_and(|taken| {
            block.bytes.get(taken..end).is_some_and(|rest| rest.trim_ascii().is_empty())
        });
        if is_skipped || is_taken {
            block.bytes.drain(..=end);
            block.start += end as u64 + 1;
            block.too_long = is_skipped.into();
            block.taken = u64::from(!is_skipped);
        }
    }
}
