//! Whole requests: bytes → spans, and a report of those that could not be read.

use super::super::json::{Contents, Report};

mod field;
mod trace;

use trace::TracesData;

/// Why a request is no protobuf, or none of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A field is longer than what follows.
    #[error("it ends within a field")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("a number is longer than 64 bits")]
    Number,
    /// A field's number or type is none that protobuf has.
    #[error("a field begins with {tag}, which is no tag")]
    Tag {
        /// What stands in the place of the tag.
        tag: u64,
    },
    /// A field of OTLP has a value of another type.
    #[error("field {number} has a value of another type")]
    Type {
        /// The field's number in its message.
        number: u32,
    },
    /// A text is no UTF-8.
    #[error("the text of field {number} is no UTF-8")]
    Utf8 {
        /// The field's number in its message.
        number: u32,
    },
    /// Messages within messages, more than [`MAX_DEPTH`].
    #[error("messages are nested deeper than {MAX_DEPTH}")]
    Depth,
}

/// Most messages that may lie in one another, as with other readers of protobuf.
pub const MAX_DEPTH: u32 = 100;

/// Reads the body of a request, an `ExportTraceServiceRequest` or `TracesData`. An empty one is
/// valid, unknown fields are skipped. Spans that the sender repeated are given again: see
/// [`deduplicate`](crate::span::deduplicate).
///
/// What is read takes up to thirty times the memory of the bytes, so whoever takes them from
/// strangers limits their number.
///
/// # Errors
/// If the bytes cannot be read as a whole. Spans without valid ids are left out and reported.
pub fn read_request(bytes: &[u8]) -> Result<Contents, Malformed> {
    let mut read = TracesData { spans: Vec::new(), report: Report::default() };
    field::merge(&mut read, bytes, 0)?;
    let TracesData { spans, mut report } = read;
    report.spans = spans.len() as u64;
    Ok(Contents { spans, report, duplicates: 0 })
}
