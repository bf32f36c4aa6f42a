//! OTLP/JSON: bodies of requests, and files of JSON lines.
//!
//! Writing is strict, reading tolerant: besides the standard form, the reader takes snake_case
//! keys, names of enumerations, base64 ids, numbers or texts for 64-bit integers, `null`, and the
//! older `instrumentationLibrarySpans`.

mod lines;
mod read;
mod report;
mod write;

pub use lines::LineReader;
pub use read::{Contents, ReadOptions, read, read_document, read_lines};
pub use report::{Damage, Damaged, Refused, Report, SpanRefusal};
pub use write::{
    AttributeHead, AttributeKey, AttributeValue, EventsWriter, ItemWriter, KeyHead, LineWriter,
    LinksWriter, MAX_VALUE_DEPTH, ResourceHead, SpanHead, SpanStart, SpanTemplate, SpanWriter,
    Suspended, TemplateAttributes, Title, write_lines, write_spans,
};
