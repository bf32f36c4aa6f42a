//! What could not be read, and where.

use crate::id::IdError;

/// What a reader read and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that were not blank.
    pub lines: u64,
    /// Spans that were read.
    pub spans: u64,
    /// Lines of which nothing was read.
    pub damaged_lines: u64,
    /// The first of these, at most [`Report::KEPT`].
    pub damaged: Vec<Damaged>,
    /// Spans that were left out while their neighbours were read.
    pub refused_spans: u64,
    /// The first of these, at most [`Report::KEPT`].
    pub refused: Vec<Refused>,
    /// Links without valid ids, left out of spans that were read.
    pub refused_links: u64,
    /// Ids written as base64.
    pub base64_ids: u64,
    /// The last line, if it lacks its end: torn by a crash, or still being written.
    pub incomplete_line: Option<u64>,
}

/// A line or document of which nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {damage}")]
pub struct Damaged {
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub damage: Damage,
}

/// What is wrong with a line or document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Longer than [`ReadOptions::max_bytes`](super::ReadOptions::max_bytes).
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are no UTF-8.
    #[error("no UTF-8 after byte {valid_up_to}")]
    Utf8 {
        /// Length of the valid text before them.
        valid_up_to: usize,
    },
    /// Another JSON value, or no JSON at all.
    #[error("no JSON object")]
    NotAnObject,
    /// Malformed JSON, or JSON nested too deeply.
    #[error("{message} at column {column}")]
    Json {
        /// What was expected or found.
        message: String,
        /// Bytes from the beginning of the line.
        column: usize,
    },
    /// A value of another type than the field has, above the spans.
    #[error("`{field}` has a value of another type")]
    Type {
        /// The field's name in OTLP/JSON.
        field: &'static str,
    },
}

/// A span that was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {refusal}")]
pub struct Refused {
    /// Number of its line, from 1; of a document always 1.
    pub line: u64,
    /// What is wrong with it.
    pub refusal: SpanRefusal,
}

/// What is wrong with a span. Fields are named as in OTLP/JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanRefusal {
    /// A span cannot be without this id.
    #[error("`{field}` is missing")]
    MissingId {
        /// The field.
        field: &'static str,
    },
    /// An id that is neither hex nor base64, or zero.
    #[error("`{field}` is no id: {error}")]
    MalformedId {
        /// The field.
        field: &'static str,
        /// Why it is no hex id.
        error: IdError,
    },
    /// A base64 id, in strict mode.
    #[error("`{field}` is base64, but ids in OTLP/JSON are hex")]
    Base64Id {
        /// The field.
        field: &'static str,
    },
    /// An id of too few or too many bytes, in protobuf.
    #[error("`{field}` has {found} bytes instead of {expected}")]
    IdLength {
        /// The field.
        field: &'static str,
        /// Bytes of such an id.
        expected: usize,
        /// Bytes that it has.
        found: usize,
    },
    /// A value of another type than the field has, or out of its range.
    #[error("`{field}` has a value of another type")]
    Type {
        /// The field.
        field: &'static str,
    },
}

impl Report {
    /// Most entries of [`Report::damaged`] and [`Report::refused`].
    pub const KEPT: usize = 100;

    pub(super) fn add_damaged(&mut self, damaged: Damaged) {
        self.lines += 1;
        self.damaged_lines += 1;
        if self.damaged.len() < Self::KEPT {
            self.damaged.push(damaged);
        }
    }

    pub(in crate::otlp) fn add_refused(&mut self, refused: Refused) {
        self.refused_spans += 1;
        if self.refused.len() < Self::KEPT {
            self.refused.push(refused);
        }
    }

    /// Adds what was found in a further line, which was not damaged.
    pub(in crate::otlp) fn add_line(&mut self, line: Report) {
        self.lines += line.lines;
        self.spans += line.spans;
        self.refused_spans += line.refused_spans;
        self.refused_links += line.refused_links;
        self.base64_ids += line.base64_ids;
        let room = Self::KEPT - self.refused.len();
        self.refused.extend(line.refused.into_iter().take(room));
    }
}
