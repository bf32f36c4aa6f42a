//! Whole bodies and files: bytes → spans, and a report of what could not be read.

use serde::de::IgnoredAny;

use super::lines::{LineReader, without_bom};
use super::report::{Damaged, Report};
use crate::span::{Span, deduplicate};

mod message;
mod reading;
mod scalar;
mod trace;
mod value;

pub(super) use reading::{Shared, read_text};

/// How tolerant a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Refuse spans whose ids are base64, which OTLP/JSON does not allow, instead of counting them.
    pub strict: bool,
    /// Longest line or document that is read, in bytes. What is read may take some twenty times the
    /// memory.
    pub max_bytes: usize,
}

/// What a body or file holds.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The spans in order; of a file, each identity once.
    pub spans: Vec<Span>,
    /// What could not be read.
    pub report: Report,
    /// Spans that were there more than once, as senders repeat batches.
    pub duplicates: u64,
}

/// Reads a file: one document or JSON lines, whichever it is.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Contents {
    let first_line = without_bom(bytes).split(|&byte| byte == b'\n').find(|line| !is_blank(line));
    let is_whole = |line| serde_json::from_slice::<IgnoredAny>(line).is_ok();
    if first_line.is_some_and(is_whole) {
        return read_lines(bytes, options);
    }
    let document = read_document(bytes, options).map(Contents::unique);
    document.unwrap_or_else(|_| read_lines(bytes, options))
}

/// Reads a document: the body of a request, or one JSON value over many lines. An empty one is
/// valid. Spans that the sender repeated are given again: see
/// [`deduplicate`](crate::span::deduplicate).
///
/// # Errors
/// If it cannot be read as a whole. Spans that cannot be read are left out and reported.
pub fn read_document(bytes: &[u8], options: &ReadOptions) -> Result<Contents, Damaged> {
    let mut contents = Contents::default();
    let text = without_bom(bytes);
    if !is_blank(text) {
        let mut shared = Shared::default();
        contents.report = read_text(text, 1, options, &mut contents.spans, &mut shared)?;
    }
    Ok(contents)
}

/// Reads a file of JSON lines. A whole last line without its newline counts; a torn one is
/// reported.
pub fn read_lines(bytes: &[u8], options: &ReadOptions) -> Contents {
    let mut contents = Contents::default();
    let mut reader = LineReader::new(*options);
    reader.feed(bytes, &mut contents.spans);
    contents.report = reader.finish(&mut contents.spans);
    contents.unique()
}

impl Default for ReadOptions {
    /// Tolerant, up to 64 MiB, the largest request that OTLP senders make.
    fn default() -> Self {
        Self { strict: false, max_bytes: 64 << 20 }
    }
}

impl Contents {
    fn unique(mut self) -> Self {
        self.duplicates = deduplicate(&mut self.spans) as u64;
        self
    }
}

pub(super) fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}
