//! The local file: OTLP/JSON lines, one write per line, rotated by size.
//!
//! After a short or failed write the file is cut back to its last whole line and the line is tried again, so that a
//! reader never finds a good line glued to a torn one. What others do to the file (remove it, cut it, close its
//! descriptor) is seen before the next write: no line goes where nobody finds it, or into a stranger's file.

use super::encoding::site_heads;
use super::sites::Sites;
use crate::collect::{Key, Run, Sink, SpanView, Standing};
use crate::complain;
use crate::error::SinkError;
use crate::files::{self, OwnFile};
use crate::stage::Site;
use crate::stats::SinkStatus;
use stagetrace_wire::otlp::json::{
    AttributeHead, KeyHead, LineWriter, ResourceHead, SpanHead, SpanStart, SpanTemplate,
    SpanWriter, Suspended,
};
use stagetrace_wire::recording::value::ValueRef;
use stagetrace_wire::span::{Resource, Scope};
use std::collections::VecDeque;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes after which a line is let go.
const LINE: usize = 256 * 1024;
/// How long after a failed write the next one is tried.
const AGAIN: Duration = Duration::from_millis(100);
const NAME: &str = "jsonl";

/// Writes spans into the process's .jsonl.
#[derive(Debug)]
pub(crate) struct JsonLines {
    file: Option<OwnFile>,
    path: PathBuf,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Bytes after which the file is put aside; 0 for never.
    max_bytes: u64,
    rotation: u16,
    head: ResourceHead,
    sites: Sites<SiteHeads>,
    buffer: Vec<u8>,
    line: Option<Suspended>,
    /// The whole lines in the buffer: bytes and spans of each, and the bytes of all.
    lines: VecDeque<(usize, u64)>,
    whole: usize,
    /// Spans in the buffer.
    in_line: u64,
    /// The end of the file is not that of a line: a cut has failed.
    is_torn: bool,
    failed_at: Option<Instant>,
    is_before_sampling: bool,
    /// Spans given up since the last flush, and why.
    given_up: Option<(u64, String)>,
    status: SinkStatus,
}

site_heads!();

impl JsonLines {
    /// A file that is not there yet: it is made at once.
    pub(crate) fn create(
        path: PathBuf,
        max_bytes: u64,
        resource: &Resource,
        scope: &Scope,
    ) -> io::Result<JsonLines> {
        let file = OwnFile::append(&path)?;
        Ok(JsonLines {
            file: Some(file),
            path,
            length: 0,
            max_bytes,
            rotation: 0,
            head: ResourceHead::new(resource, scope),
            sites: Sites::new(),
            buffer: Vec::with_capacity(LINE + LINE / 4),
            line: None,
            lines: VecDeque::new(),
            whole: 0,
            in_line: 0,
            is_torn: false,
            failed_at: None,
            is_before_sampling: true,
            given_up: None,
            status: SinkStatus { name: NAME, ..SinkStatus::default() },
        })
    }

    /// It gets only what tail sampling wants, too.
    pub(crate) fn behind_sampling(mut self) -> JsonLines {
        self.is_before_sampling = false;
        self
    }

    fn encode(&mut self, span: &SpanView<'_>) {
        let heads = self.sites.of(span.number, || Some(SiteHeads::new(span.site)));
        let Some(heads) = heads else { return };
        let mut line = match self.line.take() {
            Some(line) => LineWriter::resume(&mut self.buffer, &self.head, line),
            None => LineWriter::begin(&mut self.buffer, &self.head),
        };
        heads.write(line.span(&heads.start(span)), span);
        self.line = Some(line.suspend());
    }

    fn encode_run(&mut self, run: &Run<'_>) {
        let mut line = match self.line.take() {
            Some(line) => LineWriter::resume(&mut self.buffer, &self.head, line),
            None => LineWriter::begin(&mut self.buffer, &self.head),
        };
        for span in run.iter() {
            let number = span.number();
            let heads = self.sites.of(number, || run.site(number).map(SiteHeads::new));
            let (Some(heads), Some(it)) = (heads, span.execution()) else { continue };
            line.push_with(&heads.plain, it, |to| {
                to.recorded(&heads.keys, span.attributes(), span.attribute_words())
            });
        }
        self.line = Some(line.suspend());
    }

    /// Writes the lines of the buffer, each with one call; those that are in the file are gone from the buffer, also if a
    /// later one fails.
    fn write(&mut self) -> io::Result<()> {
        self.settle()?;
        let mut written = 0;
        let mut outcome = Ok(());
        while let Some(&(len, spans)) = self.lines.front() {
            outcome = self.append(written..written + len);
            if outcome.is_err() {
                break;
            }
            written += len;
            self.status.exported += spans;
            self.in_line -= spans;
            self.lines.pop_front();
        }
        self.buffer.drain(..written);
        self.whole -= written;
        outcome
    }

    /// Writes a line, or leaves the file as it was.
    fn append(&mut self, line: Range<usize>) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let (mut file, _) = file.get()?;
        let len = line.len() as u64;
        if let Err(error) = file.write_all(&self.buffer[line]) {
            // What was written of it is cut off before the next try, so that the next line begins on its own.
            self.is_torn = file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += len;
        Ok(())
    }

    /// Has a file to write to: our own, which somebody can find, and whose end is that of a line.
    fn settle(&mut self) -> io::Result<()> {
        let path = self.path.display();
        let Some(own) = &mut self.file else { return self.begin_file() };
        if own.get().is_err() {
            let what =
                format_args!("the program closed the descriptor of {path}; it is opened again");
            complain::warn("closed", what);
            match own.reopen(&self.path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return self.begin_file(),
                Err(error) => return Err(error),
            }
        }
        let own = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let (mut file, look) = own.get()?;
        if !look.has_name {
            let what = format_args!("somebody removed {path}; it is begun anew");
            complain::warn("removed", what);
            // Its descriptor may be the last that there is.
            self.file = None;
            return self.begin_file();
        }
        let mut len = look.len;
        if self.is_torn && len > self.length {
            file.set_len(self.length)?;
            len = self.length;
        }
        self.is_torn = false;
        file.seek(SeekFrom::End(0))?;
        if len != self.length {
            // Somebody cut it, or wrote into it: what is there stays, as a line of its own.
            if len > 0 {
                file.write_all(b"\n")?;
                len += 1;
            }
            self.length = len;
        }
        Ok(())
    }

    /// Puts the file aside under the next free number once it is large.
    fn rotate(&mut self) {
        if self.max_bytes == 0 || self.length < self.max_bytes || self.rotation == u16::MAX {
            return;
        }
        if let Err(error) = self.put_aside() {
            let what = format_args!("cannot put {} aside: {error}", self.path.display());
            complain::warn("rotation", what);
        }
    }

    fn put_aside(&mut self) -> io::Result<()> {
        let own = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if !own.is_at(&self.path) {
            // Somebody has moved it away. Until another can be begun in its place, it serves.
            self.file = Some(OwnFile::append(&self.path)?);
            self.length = 0;
            return Ok(());
        }
        let mut next = self.rotation + 1;
        let aside = |number: u16| self.path.with_extension(format!("{number}.jsonl"));
        while next < u16::MAX && aside(next).symlink_metadata().is_ok() {
            next += 1;
        }
        std::fs::rename(&self.path, aside(next))?;
        // From here on the name is free, whether the next file can be made now or only later.
        (self.rotation, self.length, self.file) = (next, 0, None);
        self.begin_file()
    }

    fn begin_file(&mut self) -> io::Result<()> {
        if let Some(run) = self.path.parent() {
            files::make_dirs(run)?;
        }
        self.file = Some(OwnFile::append(&self.path)?);
        (self.length, self.is_torn) = (0, false);
        Ok(())
    }

    fn error(&mut self, error: &io::Error) -> SinkError {
        let problem = format!("cannot write {}: {error}", self.path.display());
        self.status.fails(problem.clone());
        SinkError { sink: NAME, problem }
    }
}

impl Sink for JsonLines {
    fn add(&mut self, span: &SpanView<'_>) -> bool {
        self.encode(span);
        self.in_line += 1;
        self.status.handed += 1;
        self.buffer.len() - self.whole > LINE
    }

    fn add_run(&mut self, run: &Run<'_>) -> bool {
        self.encode_run(run);
        self.in_line += run.spans() as u64;
        self.status.handed += run.spans() as u64;
        self.buffer.len() - self.whole > LINE
    }

    fn is_before_sampling(&self) -> bool {
        self.is_before_sampling
    }

    fn commit(&mut self) -> Result<(), SinkError> {
        if let Some(line) = self.line.take() {
            let spans = self.in_line - self.lines.iter().map(|(_, spans)| spans).sum::<u64>();
            LineWriter::resume(&mut self.buffer, &self.head, line).finish();
            self.lines.push_back((self.buffer.len() - self.whole, spans));
            self.whole = self.buffer.len();
        }
        if self.lines.is_empty() {
            return Ok(());
        }
        if let (Some(problem), Some(at)) = (&self.status.failing, self.failed_at)
            && at.elapsed() < AGAIN
        {
            return Err(SinkError { sink: NAME, problem: problem.clone() });
        }
        if let Err(error) = self.write() {
            self.failed_at = Some(Instant::now());
            return Err(self.error(&error));
        }
        self.buffer.shrink_to(2 * LINE);
        self.status.recovers();
        self.failed_at = None;
        self.rotate();
        Ok(())
    }

    fn abandon(&mut self) {
        self.buffer = Vec::new();
        self.lines.clear();
        self.whole = 0;
        self.line = None;
        let spans = std::mem::take(&mut self.in_line);
        self.status.failed += spans;
        let problem = self.status.failing.clone().unwrap_or_default();
        let (before, _) = self.given_up.take().unwrap_or_default();
        self.given_up = Some((before + spans, problem));
    }

    fn hurry(&mut self) {
        self.failed_at = None;
    }

    fn backlog(&self) -> usize {
        self.buffer.len()
    }

    fn flush(&mut self, _: Instant) -> Result<(), SinkError> {
        let given_up = self.given_up.take();
        let given_up = given_up.map(|(spans, problem)| format!("gave up {spans} spans: {problem}"));
        match given_up.or_else(|| self.status.failing.clone()) {
            None => Ok(()),
            Some(problem) => Err(SinkError { sink: NAME, problem }),
        }
    }

    fn standing(&self) -> Standing {
        let SinkStatus { handed, exported, failed, .. } = self.status;
        Standing { taken: handed, gone: exported + failed, lost: failed }
    }

    fn status(&self) -> SinkStatus {
        SinkStatus { queued: self.in_line, ..self.status.clone() }
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn acknowledged(&self) -> (u16, u64) {
        (self.rotation, self.length)
    }
}
