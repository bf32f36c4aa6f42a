//! A file of the outbox: a line that says what it holds, then batches, each as the body of a request.
//!
//! Before each batch stand six little-endian numbers: its length in bytes and in spans, when it was put there, a checksum,
//! and whether it has gone. The file's lock says that its process lives. A kill leaves at most a batch that is cut short,
//! which readers leave out; whoever takes the file over sends what is left.

use crate::files::{self, OwnFile};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a file says of its batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Label {
    /// The version of the format: 1.
    #[serde(rename = "stagetrace.outbox")]
    pub(super) version: u32,
    pub(super) encoding: Encoding,
    /// Where they were to go, without what may be secret.
    pub(super) endpoint: String,
}

/// The encoding of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Encoding {
    Protobuf,
    Json,
}

impl Label {
    pub(super) const VERSION: u32 = 1;
}

/// Longest label that is read.
const LABEL: u64 = 16 << 10;
/// Longest body that is written and read: some times as long as any that the queue gives.
const BODY: u32 = 64 << 20;
/// Bytes before each batch, and where in them stand the checksum and whether it has gone.
const HEAD: usize = 24;
const CHECKSUM: usize = 16;
const GONE: usize = 20;

/// A file, open and locked.
#[derive(Debug)]
pub(super) struct Segment {
    path: PathBuf,
    file: OwnFile,
    /// Whether this process wrote it.
    pub(super) is_ours: bool,
    pub(super) label: Label,
    /// What waits, oldest first.
    entries: VecDeque<Entry>,
    /// Where the last whole batch ends.
    end: u64,
}

/// A batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    at: u64,
    bytes: u32,
    pub(super) spans: u32,
    /// How many of the spans count as waiting in this process.
    pub(super) counted: u64,
    /// When it was put there, in nanoseconds since 1970.
    pub(super) since: u64,
}

impl Entry {
    /// Where in the file it begins.
    pub(super) fn at(&self) -> u64 {
        self.at
    }
}

impl Segment {
    /// Makes a file. Until it is locked and labelled it has another name.
    pub(super) fn create(path: PathBuf, label: &Label) -> io::Result<Segment> {
        let unfinished = path.with_extension("outbox.new");
        let mut file = files::create(&unfinished)?;
        let mut line = serde_json::to_vec(label)?;
        line.push(b'\n');
        let made = lock(&file)
            .and_then(|()| may_reach(line.len() as u64))
            .and_then(|()| file.write_all(&line))
            .and_then(|()| fs::rename(&unfinished, &path));
        if made.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        made?;
        let (file, end) = (OwnFile::new(file)?, line.len() as u64);
        let (label, entries) = (label.clone(), VecDeque::new());
        Ok(Segment { path, file, is_ours: true, label, entries, end })
    }

    /// Takes over the file of a process that is dead; `None` if that lives or another one was faster.
    pub(super) fn adopt(path: PathBuf) -> io::Result<Option<Segment>> {
        let file = files::open_to_change(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Who could tell whether its process lives?
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let file = OwnFile::new(file)?;
        if !file.is_at(&path) {
            return Ok(None);
        }
        let (label, entries, end) = read(file.get()?.0)?;
        Ok(Some(Segment { path, file, is_ours: false, label, entries, end }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.end
    }

    /// The oldest batch.
    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// The newest batch.
    pub(super) fn back_mut(&mut self) -> Option<&mut Entry> {
        self.entries.back_mut()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Adds a batch. It is in the file, or the file is as it was.
    pub(super) fn append(&mut self, body: &[u8], spans: u32, since: u64) -> io::Result<()> {
        let bytes = u32::try_from(body.len()).ok().filter(|bytes| *bytes <= BODY);
        let bytes = bytes.ok_or(io::ErrorKind::FileTooLarge)?;
        let len = (HEAD + body.len()) as u64;
        may_reach(self.end + len)?;
        let mut written = Vec::with_capacity(HEAD + body.len());
        written.extend(bytes.to_le_bytes());
        written.extend(spans.to_le_bytes());
        written.extend(since.to_le_bytes());
        written.extend(checksum(&written, body).to_le_bytes());
        written.extend(0_u32.to_le_bytes());
        written.extend(body);
        self.settle()?;
        let (mut file, look) = self.file.get()?;
        if look.len != self.end {
            // What an earlier write left, or somebody put there.
            file.set_len(self.end)?;
        }
        file.seek(SeekFrom::Start(self.end))?;
        file.write_all(&written)?;
        self.entries.push_back(Entry { at: self.end, bytes, spans, counted: 0, since });
        self.end += len;
        Ok(())
    }

    /// The body of the oldest batch.
    pub(super) fn read_front(&mut self) -> io::Result<Vec<u8>> {
        self.settle()?;
        let entry = self.entries.front().ok_or(io::ErrorKind::NotFound)?;
        let (mut file, _) = self.file.get()?;
        let mut bytes = vec![0; HEAD + entry.bytes as usize];
        file.seek(SeekFrom::Start(entry.at))?;
        file.read_exact(&mut bytes)?;
        let body = bytes.split_off(HEAD);
        if number(&bytes, CHECKSUM) != checksum(&bytes[..CHECKSUM], &body) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is another"));
        }
        Ok(body)
    }

    /// The oldest batch has gone. If that cannot be noted, whoever takes the file over sends it once more.
    pub(super) fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        // That of the last one, too: perhaps the file cannot be removed.
        let _ = self.note_gone(entry.at);
        Some(entry)
    }

    fn note_gone(&mut self, at: u64) -> io::Result<()> {
        self.settle()?;
        may_reach(at + HEAD as u64)?;
        let (mut file, _) = self.file.get()?;
        file.seek(SeekFrom::Start(at + GONE as u64))?;
        file.write_all(&1_u32.to_le_bytes())
    }

    /// The number of its descriptor.
    #[cfg(all(test, unix))]
    pub(super) fn descriptor(&self) -> std::os::fd::RawFd {
        std::os::fd::AsRawFd::as_raw_fd(self.file.get().expect("it is open").0)
    }

    /// Removes the file.
    pub(super) fn remove(self) -> io::Result<()> {
        if self.file.is_at(&self.path) { fs::remove_file(&self.path) } else { Ok(()) }
    }

    /// Opens the file again if the program has closed its descriptor.
    fn settle(&mut self) -> io::Result<()> {
        if self.file.get().is_err() {
            self.file.reopen_to_change(&self.path)?;
            let _ = lock(self.file.get()?.0);
        }
        Ok(())
    }
}

/// Whoever finds the lock held knows that we live; a file system without locks is no reason to fail.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// Whether this process may write a file up to there, also one that is longer already. To try would end it.
fn may_reach(len: u64) -> io::Result<()> {
    if len <= files::longest() { Ok(()) } else { Err(io::ErrorKind::FileTooLarge.into()) }
}

/// What a file holds: its label, the batches that have not gone, and where the last whole one ends.
fn read(file: &File) -> io::Result<(Label, VecDeque<Entry>, u64)> {
    let len = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    reader.by_ref().take(LABEL).read_until(b'\n', &mut line)?;
    let label: Label = serde_json::from_slice(&line)?;
    if label.version != Label::VERSION {
        let problem = format!("it is of version {}", label.version);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    let mut entries = VecDeque::new();
    let mut end = line.len() as u64;
    let mut head = [0; HEAD];
    while end + HEAD as u64 <= len {
        reader.read_exact(&mut head)?;
        let [bytes, spans] = [0, 4].map(|at| number(&head, at));
        let since = u64::from(number(&head, 8)) | u64::from(number(&head, 12)) << 32;
        let next = end + HEAD as u64 + u64::from(bytes);
        // No batch is empty: where zeros stand, the machine went down before what was written was on its disk.
        if bytes == 0 || bytes > BODY || next > len {
            break;
        }
        if number(&head, GONE) == 0 {
            entries.push_back(Entry { at: end, bytes, spans, counted: 0, since });
        }
        reader.seek_relative(i64::from(bytes))?;
        end = next;
    }
    Ok((label, entries, end))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// CRC-32 of what stands before it and of the body.
fn checksum(before: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(before);
    hasher.update(body);
    hasher.finalize()
}
