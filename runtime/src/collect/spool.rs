//! The spool: a file beside the recording, for chunks whose room is needed before their spans are safe elsewhere.
//!
//! A chunk stands in it as it stood in the recording, its head included, and one follows the other. The file is made when
//! the first one comes. After a short or failed write it is cut back to its last whole chunk before the next one is
//! written; readers leave out what a kill tore off.

use crate::complain;
use crate::files::OwnFile;
use crate::stats::SpoolStats;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes of the file at most.
const MOST: u64 = 64 << 20;
/// How long after a failed write the next one is tried.
const AGAIN: Duration = Duration::from_millis(100);

/// A file of chunks.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    file: Option<OwnFile>,
    /// Bytes of whole chunks in the file.
    length: u64,
    buffer: Vec<u8>,
    failing: Option<Failing>,
    failures: u64,
}

/// Since when it cannot be written, when that was last tried, and why.
#[derive(Debug)]
struct Failing {
    since: Instant,
    tried: Instant,
    problem: String,
}

/// Why a chunk is not in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// There is no room below its greatest length.
    Full,
    /// It cannot be written, since so long.
    Failing(Duration),
}

impl Spool {
    /// One that will be at this path if it is needed.
    pub(crate) fn new(path: PathBuf) -> Spool {
        Spool { path, file: None, length: 0, buffer: Vec::new(), failing: None, failures: 0 }
    }

    /// Appends the words of a chunk. They are in the file when this returns.
    pub(super) fn append(
        &mut self,
        words: impl ExactSizeIterator<Item = u64>,
    ) -> Result<(), Refused> {
        let len = words.len() as u64 * 8;
        if self.length + len > MOST {
            let path = self.path.display();
            let what = "is full: what exporters do not take is no longer safe from a kill";
            complain::warn("spool full", format_args!("{path} {what}"));
            return Err(Refused::Full);
        }
        if let Some(Failing { since, tried, .. }) = &self.failing
            && tried.elapsed() < AGAIN
        {
            return Err(Refused::Failing(since.elapsed()));
        }
        self.buffer.clear();
        self.buffer.extend(words.flat_map(u64::to_ne_bytes));
        match self.write() {
            Ok(()) => {
                self.length += len;
                self.failing = None;
                Ok(())
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.settle()?;
        let own = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let (mut file, look) = own.get()?;
        if look.len > self.length {
            file.set_len(self.length)?;
        } else if look.len < self.length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "somebody has cut it"));
        }
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(&self.buffer)
    }

    /// Has a file of our own to write to, which somebody can find.
    fn settle(&mut self) -> io::Result<()> {
        if let Some(own) = &mut self.file {
            match own.get() {
                Ok((_, look)) if look.has_name => return Ok(()),
                // Somebody has removed it, with what it held.
                Ok(_) => {}
                // The program has closed its descriptor.
                Err(_) => return own.reopen(&self.path),
            }
        }
        self.file = None;
        self.length = 0;
        self.file = Some(OwnFile::append(&self.path)?);
        Ok(())
    }

    fn failed(&mut self, error: &io::Error) -> Refused {
        let now = Instant::now();
        let problem = format!("cannot write {}: {error}", self.path.display());
        complain::warn(
            "spool",
            format_args!("{problem}; what exporters do not take waits in the recording"),
        );
        self.failures += 1;
        let since = self.failing.as_ref().map_or(now, |failing| failing.since);
        self.failing = Some(Failing { since, tried: now, problem });
        Refused::Failing(now - since)
    }

    /// Whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Forgets all that it holds. If that fails, it keeps it.
    pub(super) fn clear(&mut self) {
        let cut = self.file.as_ref().map(|own| own.get().and_then(|(file, _)| file.set_len(0)));
        if cut.is_some_and(|cut| cut.is_ok()) {
            self.length = 0;
        }
    }

    /// Removes the file.
    pub(super) fn remove(&mut self) {
        if let Some(own) = self.file.take()
            && own.is_at(&self.path)
            && let Err(error) = fs::remove_file(&self.path)
        {
            let path = self.path.display();
            complain::warn("spool removal", format_args!("cannot remove {path}: {error}"));
        }
    }

    /// How it stands.
    pub(super) fn stats(&self) -> SpoolStats {
        SpoolStats {
            bytes: self.length,
            failures: self.failures,
            failing: self.failing.as_ref().map(|failing| failing.problem.clone()),
            ..SpoolStats::default()
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("stagetrace-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn chunk(value: u64) -> std::vec::IntoIter<u64> {
        vec![value; 512].into_iter()
    }

    fn bytes(path: &std::path::Path) -> Vec<u64> {
        let bytes = fs::read(path).unwrap();
        assert_eq!(bytes.len() % 4096, 0, "whole chunks");
        bytes.chunks(4096).map(|chunk| u64::from(chunk[0])).collect()
    }

    #[test]
    fn it_is_made_when_it_is_needed_and_is_for_us_alone() {
        use std::os::unix::fs::PermissionsExt;
        let path = path("needed");
        let mut spool = Spool::new(path.clone());
        spool.remove();
        assert!(!path.exists());
        spool.append(chunk(1)).unwrap();
        spool.append(chunk(2)).unwrap();
        assert_eq!(bytes(&path), [1, 2]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        spool.clear();
        assert!(spool.is_empty());
        spool.append(chunk(3)).unwrap();
        assert_eq!(bytes(&path), [3]);
        spool.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_write_tore_off_is_cut_before_the_next() {
        let path = path("torn");
        let mut spool = Spool::new(path.clone());
        spool.append(chunk(1)).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"torn").unwrap();
        spool.append(chunk(2)).unwrap();
        assert_eq!(bytes(&path), [1, 2]);
        spool.remove();
    }

    #[test]
    fn what_stands_in_its_place_is_left_alone_until_it_is_gone() {
        let path = path("taken");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let mut spool = Spool::new(path.clone());
        assert!(matches!(spool.append(chunk(1)), Err(Refused::Failing(_))));
        let stats = spool.stats();
        assert!((stats.failures, stats.bytes) == (1, 0) && stats.failing.is_some(), "{stats:?}");
        assert!(matches!(spool.append(chunk(1)), Err(Refused::Failing(_))));
        assert_eq!(spool.stats().failures, 1, "it is not tried again at once");
        fs::remove_file(&path).unwrap();
        std::thread::sleep(2 * AGAIN);
        spool.append(chunk(1)).unwrap();
        assert_eq!((spool.stats().failing, bytes(&path)), (None, vec![1]));
        spool.remove();
    }

    #[test]
    fn one_that_somebody_removed_or_cut_is_not_mixed_up() {
        let path = path("removed");
        let mut spool = Spool::new(path.clone());
        spool.append(chunk(1)).unwrap();
        fs::remove_file(&path).unwrap();
        spool.append(chunk(2)).unwrap();
        assert_eq!(bytes(&path), [2]);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert!(matches!(spool.append(chunk(3)), Err(Refused::Failing(_))));
        spool.remove();
    }
}
