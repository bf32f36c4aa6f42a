//! JSON lines as they grow: feed bytes, get spans.

use memchr::memchr;

use super::read::{ReadOptions, Shared, is_blank, read_text};
use super::report::{Damage, Damaged, Report};
use crate::span::Span;

/// Reads a file of JSON lines piece by piece, as when following one that is being written.
///
/// Holds no more than the line that is not yet ended, and never more than
/// [`ReadOptions::max_bytes`]. Spans that a sender repeated are given again: see
/// [`deduplicate`](crate::span::deduplicate).
#[derive(Debug)]
pub struct LineReader {
    options: ReadOptions,
    report: Report,
    shared: Shared,
    /// Lines that were ended.
    lines: u64,
    /// The line that is not yet ended.
    pending: Vec<u8>,
    /// Bytes of that line that were thrown away, as it is too long.
    skipped: usize,
}

impl LineReader {
    /// A reader at the beginning of a file.
    pub fn new(options: ReadOptions) -> Self {
        Self {
            options,
            report: Report::default(),
            shared: Shared::default(),
            lines: 0,
            pending: Vec::new(),
            skipped: 0,
        }
    }

    /// Takes the next bytes of the file, cut anywhere, and adds the spans of all lines that they
    /// end.
    pub fn feed(&mut self, mut bytes: &[u8], spans: &mut Vec<Span>) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.end_line(&bytes[..end], spans);
            bytes = &bytes[end + 1..];
        }
        self.skipped += if self.fits(bytes) { 0 } else { self.pending.len() + bytes.len() };
        if self.skipped == 0 {
            self.pending.extend_from_slice(bytes);
        } else {
            self.pending = Vec::new();
        }
    }

    /// Bytes of the last line that wait for its end.
    pub fn pending_bytes(&self) -> usize {
        self.pending.len() + self.skipped
    }

    /// What was read so far, and what could not be.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Says that the file has ended. A last line without its newline is read if it is whole, else
    /// reported as incomplete.
    pub fn finish(mut self, spans: &mut Vec<Span>) -> Report {
        let last = std::mem::take(&mut self.pending);
        if self.skipped > 0 {
            self.report.incomplete_line = Some(self.lines + 1);
        } else if !is_blank(&last) {
            match self.read(self.lines + 1, &last, spans) {
                Ok(line) => self.report.add_line(line),
                Err(_) => self.report.incomplete_line = Some(self.lines + 1),
            }
        }
        self.report
    }

    fn end_line(&mut self, end: &[u8], spans: &mut Vec<Span>) {
        self.lines += 1;
        let line = self.lines;
        let too_long = self.skipped > 0 || !self.fits(end);
        self.skipped = 0;
        let mut joined = std::mem::take(&mut self.pending);
        let text = if joined.is_empty() {
            end
        } else {
            joined.extend_from_slice(if too_long { b"" } else { end });
            &joined
        };
        let result = match too_long {
            true => {
                Err(Damaged { line, damage: Damage::TooLong { limit: self.options.max_bytes } })
            }
            false if is_blank(text) => return,
            false => self.read(line, text, spans),
        };
        match result {
            Ok(found) => self.report.add_line(found),
            Err(damaged) => self.report.add_damaged(damaged),
        }
    }

    fn read(&mut self, line: u64, text: &[u8], spans: &mut Vec<Span>) -> Result<Report, Damaged> {
        let text = if line == 1 { without_bom(text) } else { text };
        read_text(text, line, &self.options, spans, &mut self.shared)
    }

    fn fits(&self, more: &[u8]) -> bool {
        self.skipped == 0 && self.pending.len() + more.len() <= self.options.max_bytes
    }
}

/// Without the byte-order mark that some editors put before UTF-8.
pub(super) fn without_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
