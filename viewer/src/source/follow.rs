//! One file of lines, messages, or of one document, as it grows, is cut short, or is written anew.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use memchr::memchr;

use super::blocks::Blocks;
use super::files::is_message;
use super::input::{Damage, Input};
use super::line::{self, Held, MAX_LINE};
use super::message::Frames;
use super::parse::{Reader, message_again, read_again, read_on, read_pending};
use super::report::FileReport;
use crate::store::{Batch, Place, Store};

/// A file that is followed. It is kept open, so that what it held last can be read after it was
/// renamed or removed.
#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    input: Input,
    /// Bytes of the file as it stood when it was looked at last.
    len: u64,
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
    /// One message of protobuf, of so many bytes.
    Message(u64),
    /// Messages of protobuf.
    Frames(Frames),
}

/// What identifies a file, whatever it is called.
pub(super) type FileId = (u64, u64);

/// Bytes by which a file that was written anew is known.
const HEAD: usize = 256;
/// Bytes in which a file says whether it is a document.
const PEEK: usize = 1 << 16;

impl Follower {
    pub(super) fn open(path: &Path) -> io::Result<(FileId, Self)> {
        // A pipe without a writer would not even be opened before one comes.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let follower = Self {
            path: path.to_owned(),
            input: Input::new(file),
            len: 0,
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
        self.input.stored_len().map_or(0, |len| len.saturating_sub(self.report.bytes))
    }

    /// Reads a piece again.
    pub(super) fn again(
        &mut self,
        place: Place,
        reader: &mut Reader,
        store: &Store,
    ) -> io::Result<Batch> {
        match self.form {
            Form::Message(_) | Form::Frames(_) => {
                message_again(&mut self.input, place, reader, store)
            }
            _ => read_again(&mut self.input, place, reader, store),
        }
    }

    /// Reads what is new.
    pub(super) fn poll(&mut self, reader: &mut Reader, store: &mut Store) {
        let result = self.try_poll(reader, store);
        self.report.error = result.err().map(|error| error.to_string());
    }

    fn try_poll(&mut self, reader: &mut Reader, store: &mut Store) -> io::Result<()> {
        let before = self.len;
        let stored = self.input.stored_len()?;
        let is_new = self.notice_restart(stored)?;
        let mut len = stored;
        if self.input.is_packed() {
            // Only its end says how much it holds.
            len = u64::MAX;
            let is_corrupt = matches!(self.input.damage(), Some(Damage::Corrupt(_)));
            if !is_new && (stored == before || is_corrupt) {
                return Ok(());
            }
            self.input.begin(&self.head)?;
        }
        if self.form == Form::Unknown {
            self.form = self.look(reader, store)?;
        }
        match &mut self.form {
            Form::Lines => self.read_lines(len, reader, store)?,
            Form::Frames(frames) => {
                frames.read_on(&mut self.input, len, reader, store, &mut self.report)?;
            }
            Form::Unknown | Form::Document(_) | Form::Message(_) => {}
        }
        match self.input.damage() {
            Some(Damage::Torn) => self.report.torn_line = Some(self.report.lines + 1),
            Some(Damage::Corrupt(damage)) => self.report.add_damaged(damage.clone()),
            None => {}
        }
        self.report.bytes = match self.form {
            Form::Document(bytes) | Form::Message(bytes) => bytes,
            Form::Frames(frames) => frames.read(),
            Form::Unknown | Form::Lines => self.blocks.read(),
        };
        Ok(())
    }

    /// Begins anew if what was read is not what is there, or nothing was read; whether it does.
    fn notice_restart(&mut self, stored: u64) -> io::Result<bool> {
        let head = self.input.head(HEAD)?;
        let is_whole = matches!(self.form, Form::Document(_) | Form::Message(_));
        let is_other = !head.starts_with(&self.head) || is_whole && stored != self.len;
        if stored < self.len || is_other {
            self.form = Form::Unknown;
            self.blocks = Blocks::default();
            let FileReport { name, restarts, .. } = std::mem::take(&mut self.report);
            self.report = FileReport { name, restarts: restarts + 1, ..FileReport::default() };
            self.head.clear();
        }
        let is_new = self.head.is_empty();
        if is_new {
            self.input.begin(&head)?;
        }
        (self.head, self.len) = (head, stored);
        Ok(is_new)
    }

    /// Finds out how the file is to be read; a document or message is read at once.
    fn look(&mut self, reader: &mut Reader, store: &mut Store) -> io::Result<Form> {
        let mut peeked = Vec::new();
        self.input.read(0, PEEK, &mut peeked)?;
        if Frames::is_of(&peeked) {
            return Ok(Form::Frames(Frames::default()));
        }
        if is_message(&self.path) && !peeked.is_empty() {
            let Some(message) = self.whole()? else {
                return Err(io::Error::other(line::too_long()));
            };
            let held = reader.message(&message, 0, store);
            let bytes = message.len() as u64;
            return Ok(self.note_whole(held, bytes).map_or(Form::Unknown, Form::Message));
        }
        let text = peeked.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&peeked);
        let Some(start) = text.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            return Ok(if peeked.len() < PEEK { Form::Unknown } else { Form::Lines });
        };
        let text = &text[start..];
        let Some(end) = memchr(b'\n', text) else {
            // A line that is long, or not ended yet. A document in one line is a line.
            return Ok(Form::Lines);
        };
        if !text.starts_with(b"{") || line::is_whole(&text[..end]) {
            return Ok(Form::Lines);
        }
        let mut lines = text.split(|&byte| byte == b'\n').skip(1);
        if lines.any(|line| line.starts_with(b"{") && line::is_whole(line)) {
            // The first line is damaged.
            return Ok(Form::Lines);
        }
        let Some(document) = self.whole()? else { return Ok(Form::Lines) };
        let held = reader.document(&document, store);
        let bytes = document.len() as u64;
        Ok(self.note_whole(held, bytes).map_or(Form::Unknown, Form::Document))
    }

    /// The whole file, unless it is too long.
    fn whole(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut whole = Vec::new();
        self.input.read(0, MAX_LINE + 1, &mut whole)?;
        Ok((whole.len() <= MAX_LINE).then_some(whole))
    }

    /// Notes what a file held as a whole; `None` if that could not be read.
    fn note_whole(&mut self, held: Result<Held, String>, bytes: u64) -> Option<u64> {
        let Ok(held) = held else {
            // Still being written, or garbage: what follows says which.
            self.report.torn_line = Some(1);
            return None;
        };
        self.report.add_line(held);
        self.report.torn_line = None;
        self.blocks.skip_to(bytes);
        Some(bytes)
    }

    fn read_lines(&mut self, len: u64, reader: &mut Reader, store: &mut Store) -> io::Result<()> {
        let Self { blocks, input, report, .. } = self;
        let before = blocks.read();
        read_on(blocks, input, len, reader, store, report)?;
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
