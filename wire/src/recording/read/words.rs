//! The words of a recording, wherever they lie: in a mapping that its writer changes meanwhile, or
//! in memory of our own.
//!
//! How they are read, [`View`] says.

use super::view::View;
use crate::recording::layout::{BLOCK, MAX_BLOCKS, header};
use crate::sync::AtomicU64;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io::{self, Read};

/// Bytes of a recording at most.
pub(super) const MAX_BYTES: u64 = (MAX_BLOCKS as u64 + 1) * BLOCK as u64;

/// Where the words lie.
#[derive(Debug)]
pub(super) enum Words {
    /// A file that may be written meanwhile.
    Mapped {
        /// The mapping.
        map: MmapRaw,
        /// The file, to see how long it is and who holds its lock.
        file: File,
    },
    /// A copy, perhaps of a file that nobody writes.
    Owned {
        /// The copy.
        words: Box<[AtomicU64]>,
        is_file: bool,
    },
}

impl Words {
    /// Maps a file that has at least one byte.
    pub(super) fn map(file: File, len: u64) -> io::Result<Words> {
        let len = len.min(MAX_BYTES) as usize;
        let map = MmapOptions::new().len(len).map_raw_read_only(&file)?;
        Ok(Words::Mapped { map, file })
    }

    /// Reads a file that nobody writes, as far as its header says that blocks are in use.
    pub(super) fn read(file: &File, len: u64) -> io::Result<Words> {
        let mut words = Vec::new();
        append_from(file, BLOCK as u64, &mut words)?;
        let there = len.min(MAX_BYTES).div_ceil(BLOCK as u64);
        let told = View::of(&words).load(header::BLOCKS);
        let blocks = if (1..=there).contains(&told) { told } else { there };
        append_from(file, blocks.saturating_sub(1) * BLOCK as u64, &mut words)?;
        Ok(Words::Owned { words: words.into_boxed_slice(), is_file: true })
    }

    /// Copies bytes. Those after the last whole word are left out.
    pub(super) fn copy(bytes: &[u8]) -> Words {
        let mut words = Vec::with_capacity(bytes.len() / 8);
        append(&mut words, &bytes[..bytes.len().min(MAX_BYTES as usize)]);
        Words::Owned { words: words.into_boxed_slice(), is_file: false }
    }

    /// Puts further blocks behind those in use. Nothing comes behind those of a file that may be written meanwhile.
    pub(super) fn add_blocks(&mut self, blocks: Vec<AtomicU64>) {
        let Words::Owned { words, .. } = self else { return };
        let used = View::of(words).blocks();
        let mut all = std::mem::take(words).into_vec();
        all.resize_with(used * (BLOCK / 8), || AtomicU64::new(0));
        all.extend(blocks);
        all[header::BLOCKS] = AtomicU64::new((all.len() / (BLOCK / 8)) as u64);
        *words = all.into_boxed_slice();
    }

    /// The words that are there now.
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Words::Owned { words, .. } => View::of(words),
            Words::Mapped { map, file } => {
                // Pages beyond the end of a file that was cut meanwhile must not be touched.
                let there = file.metadata().map_or(0, |metadata| metadata.len());
                let len = map.len().min(usize::try_from(there).unwrap_or(usize::MAX));
                // SAFETY: the mapping begins at a page, is `len` bytes long or longer, and lives as
                // long as `self`; others change it, which atomics allow.
                View::of(unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), len / 8) })
            }
        }
    }

    /// The file, if it is mapped.
    pub(super) fn file(&self) -> Option<&File> {
        match self {
            Words::Mapped { file, .. } => Some(file),
            Words::Owned { .. } => None,
        }
    }
}

fn append_from(file: &File, len: u64, words: &mut Vec<AtomicU64>) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    append(words, &bytes);
    Ok(())
}

fn append(words: &mut Vec<AtomicU64>, bytes: &[u8]) {
    let (whole, _) = bytes.as_chunks();
    words.extend(whole.iter().map(|word| AtomicU64::new(u64::from_ne_bytes(*word))));
}
