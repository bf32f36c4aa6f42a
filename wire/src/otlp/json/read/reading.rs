//! One line or document while it is read.

use std::sync::Arc;

use serde::de::DeserializeSeed;

use super::ReadOptions;
use super::message::MessageSeed;
use super::trace::TracesData;
use crate::otlp::json::report::{Damage, Damaged, Refused, Report, SpanRefusal};
use crate::span::{Resource, Scope, Span};

/// The last resource and scope, since neighbouring lines mostly have the same.
#[derive(Debug, Default)]
pub(in crate::otlp::json) struct Shared {
    resource: Arc<Resource>,
    scope: Arc<Scope>,
}

/// What the messages of a line have in common while they are read.
pub(super) struct Reading<'a> {
    pub(super) spans: &'a mut Vec<Span>,
    pub(super) report: Report,
    /// The first field with a value of another type: in the span that is being read, or else above
    /// the spans.
    pub(super) wrong_type: Option<&'static str>,
    pub(super) strict: bool,
    line: u64,
    shared: &'a mut Shared,
}

/// Reads a line or a document, without a byte-order mark and not blank. After an error `spans` is
/// as it was.
pub(in crate::otlp::json) fn read_text(
    text: &[u8],
    line: u64,
    options: &ReadOptions,
    spans: &mut Vec<Span>,
    shared: &mut Shared,
) -> Result<Report, Damaged> {
    let before = spans.len();
    let strict = options.strict;
    let mut reading =
        Reading { spans, report: Report::default(), wrong_type: None, strict, line, shared };
    match reading.read(text.trim_ascii(), options.max_bytes) {
        Ok(()) => {
            reading.report.lines = 1;
            reading.report.spans = (reading.spans.len() - before) as u64;
            Ok(reading.report)
        }
        Err(damaged) => {
            reading.spans.truncate(before);
            Err(damaged)
        }
    }
}

impl Reading<'_> {
    fn read(&mut self, text: &[u8], limit: usize) -> Result<(), Damaged> {
        let line = self.line;
        let damaged = |damage| Damaged { line, damage };
        if text.len() > limit {
            return Err(damaged(Damage::TooLong { limit }));
        }
        if !text.starts_with(b"{") {
            return Err(damaged(Damage::NotAnObject));
        }
        let text = str::from_utf8(text)
            .map_err(|error| damaged(Damage::Utf8 { valid_up_to: error.valid_up_to() }))?;
        let mut json = serde_json::Deserializer::from_str(text);
        MessageSeed::new(&mut TracesData, "resourceSpans", self)
            .deserialize(&mut json)
            .and_then(|_| json.end())
            .map_err(|error| malformed(&error, line))?;
        match self.wrong_type {
            Some(field) => Err(damaged(Damage::Type { field })),
            None => Ok(()),
        }
    }

    pub(super) fn refuse(&mut self, refusal: SpanRefusal) {
        self.report.add_refused(Refused { line: self.line, refusal });
    }

    pub(super) fn last_shared(&self) -> (Arc<Resource>, Arc<Scope>) {
        (self.shared.resource.clone(), self.shared.scope.clone())
    }

    pub(super) fn share_resource(&mut self, resource: Resource) -> Arc<Resource> {
        share(&mut self.shared.resource, resource)
    }

    pub(super) fn share_scope(&mut self, scope: Scope) -> Arc<Scope> {
        share(&mut self.shared.scope, scope)
    }
}

fn share<T: PartialEq>(last: &mut Arc<T>, value: T) -> Arc<T> {
    if **last != value {
        *last = Arc::new(value);
    }
    Arc::clone(last)
}

/// The place in the error is counted from the text's beginning, which is line `first` of the file.
#[cold]
fn malformed(error: &serde_json::Error, first: u64) -> Damaged {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = error.to_string().replace(&place, "");
    let line = first + (error.line() as u64).saturating_sub(1);
    Damaged { line, damage: Damage::Json { message, column: error.column() } }
}
