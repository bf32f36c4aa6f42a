//! What a process that will be killed has acknowledged: a file that it maps and that outlives it.
//!
//! To say that a span has ended is one atomic operation, so that a process can end millions of them
//! a second and be killed between any two.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Workers at most.
pub const WORKERS: u32 = 16;
/// Rounds of a worker that there is room for.
pub const ROUNDS: u32 = 1 << 18;

/// Bytes in front of the rounds: how far each worker is.
const HEAD: usize = 4096;

/// A mapped ledger: a byte for each round of each worker, with a bit for each span.
#[derive(Debug)]
pub struct Ledger {
    map: MmapRaw,
}

impl Ledger {
    /// Makes a file in which nothing is acknowledged yet.
    ///
    /// # Errors
    /// If it cannot be made or mapped.
    pub fn create(path: &Path) -> io::Result<Ledger> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len((HEAD + (WORKERS * ROUNDS) as usize) as u64)?;
        Ledger::map(&file)
    }

    /// Opens one that another process made.
    ///
    /// # Errors
    /// If it cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Ledger> {
        Ledger::map(&File::options().read(true).write(true).open(path)?)
    }

    fn map(file: &File) -> io::Result<Ledger> {
        let len = HEAD + (WORKERS * ROUNDS) as usize;
        Ok(Ledger { map: MmapOptions::new().len(len).map_raw(file)? })
    }

    /// Says that a round begins.
    pub fn begin(&self, worker: u32, round: u32) {
        self.word(worker).store(u64::from(round) + 1, Ordering::Release);
    }

    /// How many rounds a worker has begun.
    pub fn begun(&self, worker: u32) -> u32 {
        self.word(worker).load(Ordering::Acquire) as u32
    }

    /// Says that every span of a round was recorded.
    pub fn record(&self, worker: u32) {
        self.word(WORKERS + worker).fetch_add(1, Ordering::Release);
    }

    /// How many rounds of all workers were recorded whole.
    pub fn recorded(&self) -> u32 {
        let of = |worker| self.word(WORKERS + worker).load(Ordering::Acquire) as u32;
        (0..WORKERS).map(of).sum()
    }

    /// Says that spans of a round have ended, each a bit.
    pub fn acknowledge(&self, worker: u32, round: u32, bits: u8) {
        self.byte(worker, round).fetch_or(bits, Ordering::Release);
    }

    /// The spans of a round that have ended.
    pub fn acknowledged(&self, worker: u32, round: u32) -> u8 {
        self.byte(worker, round).load(Ordering::Acquire)
    }

    /// A word of the head: first one for the progress of each worker, then one for what is recorded.
    fn word(&self, at: u32) -> &AtomicU64 {
        assert!(at < 2 * WORKERS, "no such worker");
        // SAFETY: the place lies in the head of the mapping, which begins at a page and lives as long
        // as `self`; everyone changes it through atomics only.
        unsafe { &*self.map.as_mut_ptr().cast::<AtomicU64>().add(at as usize) }
    }

    fn byte(&self, worker: u32, round: u32) -> &AtomicU8 {
        assert!(worker < WORKERS && round < ROUNDS, "no room for {worker}, {round}");
        let at = HEAD + (worker * ROUNDS + round) as usize;
        // SAFETY: as above; the ledger is as long.
        unsafe { &*self.map.as_mut_ptr().cast::<AtomicU8>().add(at) }
    }
}
