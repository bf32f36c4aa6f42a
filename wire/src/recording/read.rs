//! Reading a recording: while it is written, after a crash, whole or torn.
//!
//! A reader is another process than the writer, and trusts nothing that it finds. It never panics,
//! takes no more time and memory than the size of the file accounts for, and of what changes while
//! it reads it keeps only what was whole. `docs/recording.md` says how.
//!
//! ```no_run
//! use stagetrace_wire::recording::read::Recording;
//!
//! let recording = Recording::open("server-4711-5be07c1d.recording")?;
//! let snapshot = recording.snapshot();
//! for span in snapshot.open() {
//!     println!("{} for {} ns", span.name(), snapshot.age(span));
//! }
//! # Ok::<(), stagetrace_wire::recording::read::ReadError>(())
//! ```

use super::layout::{BLOCK, MAGIC, header};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use view::View;
use words::Words;

mod clock;
mod damage;
mod detail;
mod identity;
#[cfg(test)]
mod interleaving;
mod record;
mod snapshot;
mod span;
mod spool;
mod table;
mod view;
mod walk;
mod words;

pub use damage::Damage;
pub use detail::{RecordedEvent, RecordedLink};
pub use identity::Identity;
pub use snapshot::Snapshot;
pub use span::{RecordedSpan, key};
pub use table::{Site, Stage, Table};

/// An open recording.
///
/// If its writer lives, it is mapped, and each method tells how it stands at that moment. Else it
/// was read into memory. Whoever cuts the file short while it is mapped and read may bring the
/// reader down; no writer does.
#[derive(Debug)]
pub struct Recording {
    words: Words,
    identity: Identity,
    /// Whether a spool was read that makes no sense from some point on.
    has_damaged_spool: bool,
}

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened, read or mapped.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It has not even a header.
    #[error("{len} bytes are too few for a recording, whose header alone has {BLOCK}")]
    TooShort {
        /// Bytes of the file.
        len: u64,
    },
    /// It is empty or begins with zeros: its header is still being written, or its writer died before that.
    #[error("the recording is still being made")]
    Unfinished,
    /// It is something else.
    #[error("this is not a recording")]
    NotARecording,
    /// Its format is newer than this reader.
    #[error("a recording of version {version}, of which this reader knows only 1")]
    Version {
        /// The version's letter.
        version: char,
    },
    /// It was written on a machine that stores the bytes of a number in the other order.
    #[error("the recording comes from a machine with the other byte order")]
    ByteOrder,
}

/// How a recording was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A writer has it open, or died with it open.
    Running,
    /// The writer closed it: all that it handed out is elsewhere.
    Closed,
}

/// How much of the .jsonl is whole, as the writer last said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// How often the file was put aside for a new one.
    pub rotation: u16,
    /// Bytes of the file.
    pub length: u64,
}

impl Recording {
    /// Opens a recording.
    ///
    /// # Errors
    /// If it cannot be read, or does not begin as one. What is wrong further on is counted in
    /// [`Snapshot::damage`].
    pub fn open(path: impl AsRef<Path>) -> Result<Recording, ReadError> {
        let path = path.as_ref();
        let (file, len) = open(path)?;
        let words = match is_locked(&file) {
            Some(false) => Words::read(&file, len),
            _ => Words::map(file, len),
        };
        Recording::new(words.map_err(|error| ReadError::Io { path: path.to_owned(), error })?)
    }

    /// Reads a recording that is in memory.
    ///
    /// # Errors
    /// If the bytes do not begin as a recording does.
    pub fn from_bytes(bytes: &[u8]) -> Result<Recording, ReadError> {
        Recording::new(Words::copy(bytes))
    }

    /// Reads a file whose writer is known to be dead.
    pub(super) fn of_dead(path: &Path, file: &File, len: u64) -> Result<Recording, ReadError> {
        let words = Words::read(file, len);
        Recording::new(words.map_err(|error| ReadError::Io { path: path.to_owned(), error })?)
    }

    /// Reads what a dead process had put into its spool to make room, as further blocks. A recording
    /// whose writer lives stays as it is.
    ///
    /// # Errors
    /// If the spool cannot be read.
    pub fn add_spool(&mut self, path: &Path) -> Result<(), ReadError> {
        let spooled = spool::read(path, self.words.view())
            .map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
        self.words.add_blocks(spooled.blocks);
        self.has_damaged_spool = spooled.is_damaged;
        Ok(())
    }

    fn new(words: Words) -> Result<Recording, ReadError> {
        check_head(words.view())?;
        let identity = Identity::read(words.view());
        Ok(Recording { words, identity, has_damaged_spool: false })
    }

    /// Who wrote it.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How it was left.
    pub fn state(&self) -> State {
        match self.words.view().load_first(header::STATE) {
            header::CLOSED => State::Closed,
            _ => State::Running,
        }
    }

    /// Whether its writer lives, which the lock on the file tells and not the process's number.
    /// `None` if the file system does not know locks, or the recording was read from memory.
    pub fn is_alive(&self) -> Option<bool> {
        match &self.words {
            Words::Mapped { file, .. } => is_locked(file),
            Words::Owned { is_file: true, .. } => Some(false),
            Words::Owned { .. } => None,
        }
    }

    /// What was lost so far, by cause; causes that this reader does not know are added up as
    /// `other`.
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        const CAUSES: [&str; 5] =
            ["pool_full", "slab_full", "table_full", "detail_full", "detail_too_large"];
        let words = self.words.view();
        let known =
            CAUSES.iter().zip(header::DROPPED..).map(|(cause, at)| (*cause, words.load(at)));
        let others = header::DROPPED + CAUSES.len()..header::IDENTITY / 8;
        let other = others.map(|at| words.load(at)).fold(0, u64::saturating_add);
        known.chain((other > 0).then_some(("other", other))).collect()
    }

    /// How much of the .jsonl is whole.
    pub fn acknowledged(&self) -> Acknowledged {
        let word = self.words.view().load_first(header::ACKNOWLEDGED);
        Acknowledged { rotation: (word >> 48) as u16, length: word & ((1 << 48) - 1) }
    }

    /// The stage table as it is now.
    pub fn table(&self) -> Table {
        Table::read(self.words.view(), &mut Damage::default())
    }

    /// Every span that has ended and is still here, and every one that is open.
    ///
    /// Takes about a microsecond and 200 bytes for each of them; a full recording may hold half a
    /// million.
    pub fn snapshot(&self) -> Snapshot {
        let is_live = self.words.file().is_some() && self.is_alive() != Some(false);
        let is_here = self.is_alive() == Some(true) && self.identity.is_of_this_boot();
        let mut snapshot = Snapshot::read(self.words.view(), is_live, is_here);
        snapshot.damage.heads += u64::from(self.has_damaged_spool);
        if self.is_alive() == Some(false) {
            // It died while it recycled a chunk; all that had been in it was safe by then.
            snapshot.damage.busy = 0;
        }
        snapshot
    }

    /// Whether it has room for spans, unlike the small file that a writer leaves when it closes.
    pub(super) fn has_span_blocks(&self) -> bool {
        let mut damage = Damage::default();
        let heads = walk::heads(self.words.view(), &mut damage);
        heads.into_iter().any(|head| head.kind != walk::Kind::Table)
    }
}

/// Opens a file that is long enough for a recording.
pub(super) fn open(path: &Path) -> Result<(File, u64), ReadError> {
    let failed = |error| ReadError::Io { path: path.to_owned(), error };
    // A pipe would block whoever opens it.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReadError::NotARecording);
    }
    let file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    // A writer takes the lock before it gives the file its length; it must find it free.
    match len {
        0 => Err(ReadError::Unfinished),
        _ if len < BLOCK as u64 => Err(ReadError::TooShort { len }),
        _ => Ok((file, len)),
    }
}

/// Whether another handle holds the file's lock; `None` if that cannot be known.
fn is_locked(file: &File) -> Option<bool> {
    match file.try_lock_shared() {
        Ok(()) => {
            // Closing the file gives it back as well.
            let _ = file.unlock();
            Some(false)
        }
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

fn check_head(words: View<'_>) -> Result<(), ReadError> {
    match words.len() {
        0 => return Err(ReadError::Unfinished),
        words if words < BLOCK / 8 => return Err(ReadError::TooShort { len: words as u64 * 8 }),
        _ => {}
    }
    let magic = words.load_first(header::MAGIC);
    match magic {
        MAGIC => Ok(()),
        0 => Err(ReadError::Unfinished),
        _ if is_magic(magic.swap_bytes()) => Err(ReadError::ByteOrder),
        _ if is_magic(magic) => Err(ReadError::Version { version: char::from(magic as u8) }),
        _ => Err(ReadError::NotARecording),
    }
}

/// Whether a word is the first of a recording of some version.
fn is_magic(word: u64) -> bool {
    word >> 8 == MAGIC >> 8 && (word as u8).is_ascii_graphic()
}
