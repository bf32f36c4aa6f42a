//! The local file: OTLP/JSON lines, one write per line, rotated by size.
//!
//! After a short or failed write the file is cut back to its last whole line and the line is tried again, so that a
//! reader never finds a good line glued to a torn one.

use super::sites::Sites;
use crate::collect::{Key, Sink, SpanView};
use crate::complain;
use crate::error::SinkError;
use crate::files::create;
use crate::stats::SinkStatus;
use stagetrace_wire::otlp::json::{
    AttributeHead, KeyHead, LineWriter, ResourceHead, SpanHead, SpanStart, SpanWriter, Suspended,
};
use stagetrace_wire::recording::value::ValueRef;
use stagetrace_wire::span::{Resource, Scope};
use std::collections::VecDeque;
use std::fs::File;
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
    file: Option<File>,
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
    /// The whole lines in the buffer: bytes and spans of each.
    lines: VecDeque<(usize, u64)>,
    /// Spans in the buffer.
    in_line: u64,
    /// The end of the file is not that of a line: a cut has failed.
    is_torn: bool,
    failed_at: Option<Instant>,
    status: SinkStatus,
}

/// What is constant of a site's spans, encoded.
#[derive(Debug)]
struct SiteHeads {
    span: SpanHead,
    keys: Vec<KeyHead>,
    function: AttributeHead,
}

impl SiteHeads {
    fn new(span: &SpanView<'_>) -> SiteHeads {
        let site = span.site;
        SiteHeads {
            span: SpanHead::new(site.stage().name(), site.kind()),
            keys: site.keys().iter().map(|key| KeyHead::new(key)).collect(),
            function: AttributeHead::new(Key::FUNCTION, ValueRef::Str(site.function())),
        }
    }
}

impl JsonLines {
    /// A file that is not there yet: it is made at once.
    pub(crate) fn create(
        path: PathBuf,
        max_bytes: u64,
        resource: &Resource,
        scope: &Scope,
    ) -> io::Result<JsonLines> {
        let file = create(&path)?;
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
            in_line: 0,
            is_torn: false,
            failed_at: None,
            status: SinkStatus { name: NAME, ..SinkStatus::default() },
        })
    }

    fn encode(&mut self, span: &SpanView<'_>) {
        let heads = self.sites.of(span, SiteHeads::new);
        let mut line = match self.line.take() {
            Some(line) => LineWriter::resume(&mut self.buffer, &self.head, line),
            None => LineWriter::begin(&mut self.buffer, &self.head),
        };
        let mut writer = line.span(&SpanStart {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent_span_id: span.parent,
            trace_state: "",
            flags: span.flags(),
            title: (&heads.span).into(),
            start_unix_nano: span.begin,
            end_unix_nano: span.end,
        });
        let dropped = span.attributes(|key, value| match key {
            Key::OfSite(at) => {
                if let Some(key) = heads.keys.get(at) {
                    writer.attribute(key, value);
                }
            }
            Key::Function => {
                writer.encoded(&heads.function);
            }
            Key::Text(key) => {
                writer.attribute(key, value);
            }
        });
        if span.has_details() {
            finish_with_details(writer, span, dropped);
        } else {
            let (code, message) = span.status();
            writer.events(dropped).links(0).finish(0, code, message);
        }
        self.line = Some(line.suspend());
    }

    /// Writes the lines of the buffer, each with one call; those that are in the file are gone from the buffer, also if a
    /// later one fails.
    fn write(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.reopen()?;
        }
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
        outcome
    }

    /// Writes a line, or leaves the file as it was.
    fn append(&mut self, line: Range<usize>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        if self.is_torn {
            file.set_len(self.length)?;
            file.seek(SeekFrom::Start(self.length))?;
            self.is_torn = false;
        }
        let len = line.len() as u64;
        if let Err(error) = file.write_all(&self.buffer[line]) {
            // What was written of it is cut off before the next try, so that the next line begins on its own.
            self.is_torn = file.set_len(self.length).is_err()
                || file.seek(SeekFrom::Start(self.length)).is_err();
            return Err(error);
        }
        self.length += len;
        Ok(())
    }

    /// Puts the file aside under the next free number once it is large.
    fn rotate(&mut self) {
        if self.max_bytes == 0 || self.length < self.max_bytes || self.rotation == u16::MAX {
            return;
        }
        let mut next = self.rotation + 1;
        let aside = |number: u16| self.path.with_extension(format!("{number}.jsonl"));
        while next < u16::MAX && aside(next).exists() {
            next += 1;
        }
        if let Err(error) = std::fs::rename(&self.path, aside(next)) {
            let what = format_args!("cannot put {} aside: {error}", self.path.display());
            return complain::warn("rotation", what);
        }
        // From here on the name is free, whether the next file can be made now or only later.
        (self.rotation, self.length, self.file) = (next, 0, None);
        if let Err(error) = self.reopen() {
            let what = format_args!("cannot make {}: {error}", self.path.display());
            complain::warn("rotation", what);
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = Some(create(&self.path)?);
        (self.length, self.is_torn) = (0, false);
        Ok(())
    }

    fn error(&mut self, error: &io::Error) -> SinkError {
        let problem = format!("cannot write {}: {error}", self.path.display());
        self.status.failing = Some(problem.clone());
        SinkError { sink: NAME, problem }
    }
}

#[cold]
fn finish_with_details(writer: SpanWriter<'_>, span: &SpanView<'_>, dropped: u32) {
    let mut events = writer.events(dropped);
    for event in span.events() {
        let mut item = events.event(event.name, event.time);
        let limit = span.limits.attributes_per_event;
        for (key, value) in event.attributes().take(limit) {
            item.attribute(key, value);
        }
        item.dropped_attributes(event.attributes().count().saturating_sub(limit) as u32);
    }
    let mut links = events.links(span.dropped_events);
    for link in span.links() {
        let mut item = links.link(link.trace_id, link.span_id, "", link.flags);
        let limit = span.limits.attributes_per_link;
        for (key, value) in link.attributes().take(limit) {
            item.attribute(key, value);
        }
        item.dropped_attributes(link.attributes().count().saturating_sub(limit) as u32);
    }
    let (code, message) = span.status();
    links.finish(span.dropped_links, code, message);
}

impl Sink for JsonLines {
    fn add(&mut self, span: &SpanView<'_>) {
        self.encode(span);
        self.in_line += 1;
        self.status.handed += 1;
    }

    fn is_full(&self) -> bool {
        let whole = self.lines.iter().map(|(len, _)| len).sum::<usize>();
        self.buffer.len() - whole > LINE
    }

    fn commit(&mut self) -> Result<(), SinkError> {
        if let Some(line) = self.line.take() {
            let before = self.lines.iter().map(|(len, _)| len).sum::<usize>();
            let spans = self.in_line - self.lines.iter().map(|(_, spans)| spans).sum::<u64>();
            LineWriter::resume(&mut self.buffer, &self.head, line).finish();
            self.lines.push_back((self.buffer.len() - before, spans));
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
        (self.status.failing, self.failed_at) = (None, None);
        self.rotate();
        Ok(())
    }

    fn abandon(&mut self) {
        self.buffer = Vec::new();
        self.lines.clear();
        self.line = None;
        self.status.failed += std::mem::take(&mut self.in_line);
    }

    fn hurry(&mut self) {
        self.failed_at = None;
    }

    fn backlog(&self) -> usize {
        self.buffer.len()
    }

    fn flush(&mut self, _: Instant) -> Result<(), SinkError> {
        match &self.status.failing {
            None => Ok(()),
            Some(problem) => Err(SinkError { sink: NAME, problem: problem.clone() }),
        }
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
