//! One file of lines, or of one document, as it grows, is cut short, or is written anew.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memchr;

use super::blocks::Blocks;
use super::line::{self, MAX_LINE};
use super::parse::{Reader, read_again, read_on, read_pending};
use super::report::FileReport;
use crate::store::{Batch, Place, Store};

/// A file that is followed. It is kept open, so that what it held last can be read after it was
/// renamed or removed.
#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    file: File,
    form: Form,
    blocks: Blocks,
    /// What the file began with when it was looked at last.
    head: Vec<u8>,
    report: FileReport,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing in it says so yet.
    Unknown,
    Lines,
    /// One JSON value over many lines, of so many bytes.
    Document(u64),
}

/// What identifies a file, whatever it is called.
pub(super) type FileId = (u64, u64);

/// Bytes by which a file that was written anew is known.
const HEAD: usize = 256;
/// Bytes in which a file says whether it is a document.
const PEEK: usize = 1 << 16;

impl Follower {
    pub(super) fn open(path: &Path) -> io::Result<(FileId, Self)> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let follower = Self {
            path: path.to_owned(),
            file,
            form: Form::Unknown,
            blocks: Blocks::default(),
            head: Vec::new(),
            report: FileReport { name, ..FileReport::default() },
        };
        Ok((file_id(path, &metadata), follower))
    }

    /// Says that the file is called so now.
    pub(super) fn rename(&mut self, path: &Path) {
        if self.path != path {
            self.path = path.to_owned();
            let name = path.file_name().unwrap_or(path.as_os_str());
            self.report.name = name.to_string_lossy().into_owned();
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn report(&self) -> &FileReport {
        &self.report
    }

    /// Bytes that are there and were not read.
    pub(super) fn left(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len().saturating_sub(self.report.bytes))
    }

    /// Reads a piece again.
    pub(super) fn again(
        &mut self,
        place: Place,
        reader: &mut Reader,
        store: &Store,
    ) -> io::Result<Batch> {
        read_again(&mut self.file, place, reader, store)
    }

    /// Reads what is new.
    pub(super) fn poll(&mut self, reader: &mut Reader, store: &mut Store) {
        let result = self.try_poll(reader, store);
        self.report.error = result.err().map(|error| error.to_string());
    }

    fn try_poll(&mut self, reader: &mut Reader, store: &mut Store) -> io::Result<()> {
        let len = self.file.metadata()?.len();
        self.notice_restart(len)?;
        if self.form == Form::Unknown {
            self.form = self.look(len, reader, store)?;
        }
        if self.form == Form::Lines {
            self.read_lines(len, reader, store)?;
        }
        self.report.bytes = match self.form {
            Form::Document(bytes) => bytes,
            _ => self.blocks.read(),
        };
        Ok(())
    }

    /// Begins anew if what was read is not what is there.
    fn notice_restart(&mut self, len: u64) -> io::Result<()> {
        let mut head = vec![0; HEAD.min(usize::try_from(len).unwrap_or(HEAD))];
        self.file.seek(SeekFrom::Start(0))?;
        let got = read_fully(&mut self.file, &mut head)?;
        head.truncate(got);
        let is_other = !head.starts_with(&self.head);
        let is_other = is_other || matches!(self.form, Form::Document(bytes) if bytes != len);
        if len < self.blocks.read() || is_other {
            self.form = Form::Unknown;
            self.blocks = Blocks::default();
            let FileReport { name, restarts, .. } = std::mem::take(&mut self.report);
            self.report = FileReport { name, restarts: restarts + 1, ..FileReport::default() };
        }
        self.head = head;
        Ok(())
    }

    /// Finds out how the file is to be read; a document is read at once.
    fn look(&mut self, len: u64, reader: &mut Reader, store: &mut Store) -> io::Result<Form> {
        let mut peeked = vec![0; PEEK.min(usize::try_from(len).unwrap_or(PEEK))];
        self.file.seek(SeekFrom::Start(0))?;
        let got = read_fully(&mut self.file, &mut peeked)?;
        peeked.truncate(got);
        let text = peeked.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&peeked);
        let Some(start) = text.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            return Ok(Form::Unknown);
        };
        let text = &text[start..];
        let Some(end) = memchr(b'\n', text) else {
            // A line that is long, or not ended yet. A document in one line is a line.
            return Ok(Form::Lines);
        };
        if !text.starts_with(b"{") || line::is_whole(&text[..end]) || len > MAX_LINE as u64 {
            return Ok(Form::Lines);
        }
        let mut lines = text.split(|&byte| byte == b'\n').skip(1);
        if lines.any(|line| line.starts_with(b"{") && line::is_whole(line)) {
            // The first line is damaged.
            return Ok(Form::Lines);
        }
        let mut document = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(len).read_to_end(&mut document)?;
        match reader.document(&document, store) {
            Ok(held) => {
                self.report.add_line(held);
                self.report.torn_line = None;
                self.blocks.skip_to(document.len() as u64);
                Ok(Form::Document(document.len() as u64))
            }
            Err(_) => {
                // Still being written, or garbage: what follows says which.
                self.report.torn_line = Some(1);
                Ok(Form::Unknown)
            }
        }
    }

    fn read_lines(&mut self, len: u64, reader: &mut Reader, store: &mut Store) -> io::Result<()> {
        let Self { blocks, file, report, .. } = self;
        let before = blocks.read();
        read_on(blocks, file, len, reader, store, report)?;
        if blocks.read() == before {
            return Ok(());
        }
        let Some(pending) = blocks.pending() else {
            report.torn_line = Some(report.lines + 1);
            return Ok(());
        };
        let is_blank = pending.trim_ascii().is_empty();
        report.torn_line = (!is_blank).then_some(report.lines + 1);
        // The end of an object may be the end of the line; it is read twice only if it is not.
        if !is_blank && pending.trim_ascii_end().ends_with(b"}") && !blocks.is_taken() {
            let is_first = report.lines == 0;
            let lines = report.lines;
            if read_pending(blocks.pending_start(), pending, is_first, reader, store, report) {
                // It counts when it is ended.
                report.lines = lines;
                report.torn_line = None;
                blocks.take_pending();
            }
        }
        Ok(())
    }
}

/// Reads as much as there is.
fn read_fully(file: &mut File, mut into: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while !into.is_empty() {
        match file.read(into) {
            Ok(0) => break,
            Ok(got) => {
                read += got;
                into = &mut into[got..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(unix)]
pub(super) fn file_id(_: &Path, metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Elsewhere the path and the time of making have to do.
#[cfg(not(unix))]
pub(super) fn file_id(path: &Path, metadata: &Metadata) -> FileId {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (path, metadata.created().ok()).hash(&mut hasher);
    (0, hasher.finish())
}
