//! Spans in the forms of other tools.

use std::io::{self, Write};

use hashbrown::HashSet;

use super::summary::{StepChoice, UnknownStep};
use crate::rules::Samples;
use crate::source::Sources;
use crate::store::{SpanNumber, Store, TraceNumber};

mod chrome;
mod otlp;
mod perfetto;
mod plan;
mod protobuf;

/// A form in which spans are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// OTLP/JSON lines.
    Otlp,
    /// JSON of Chrome's trace viewer.
    Chrome,
    /// Perfetto's protobuf.
    Perfetto,
}

/// What to write.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The form.
    pub format: ExportFormat,
    /// These traces only; all, if there is none.
    pub traces: Vec<TraceNumber>,
    /// Samples of these steps only.
    pub step: StepChoice,
    /// Now, in nanoseconds since 1970: where open spans end in a drawing.
    pub now: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Spans.
    pub spans: u64,
    /// Spans among them without attributes, events and links, as these made room and can no more be read
    /// from their files.
    pub without_details: u64,
}

/// Why nothing, or not all, was written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// No sample is of the step.
    #[error(transparent)]
    Step(#[from] UnknownStep),
    /// The output does not take it.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Writes spans. Details that made room are read again, those of one trace or mebibyte at a time. A
/// drawing takes 100 bytes a span beside the store.
///
/// # Errors
/// If no sample is of the step, or the output does not take it.
pub fn export(
    sources: &mut Sources,
    store: &mut Store,
    samples: &Samples,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let step = options.step.find(store, samples)?;
    let wanted: HashSet<TraceNumber> = options.traces.iter().copied().collect();
    let is_chosen = |store: &Store, span: SpanNumber| {
        step.is_none()
            || samples.row_of_span(store, span).is_some_and(|row| row.step(store) == step)
    };
    let is_of_step = |trace: TraceNumber| {
        step.is_none() || samples.rows_of(trace).any(|sample| sample.step(store) == step)
    };
    let traces = store
        .traces()
        .filter(|trace| (wanted.is_empty() || wanted.contains(trace)) && is_of_step(*trace));
    let traces: Vec<TraceNumber> = traces.collect();
    let mut chosen = Chosen { sources, store, exported: Exported::default() };
    match options.format {
        ExportFormat::Otlp => otlp::write(&mut chosen, &traces, is_chosen, out)?,
        format => {
            let plan = plan::Plan::new(&mut chosen, &traces, options.now, is_chosen);
            match format {
                ExportFormat::Chrome => chrome::write(&mut chosen, &plan, out)?,
                _ => perfetto::write(&mut chosen, &plan, out)?,
            }
        }
    }
    out.flush()?;
    Ok(chosen.exported)
}

/// What is written from.
struct Chosen<'a> {
    sources: &'a mut Sources,
    store: &'a mut Store,
    exported: Exported,
}

impl Chosen<'_> {
    /// A span with all it owns, which counts as written.
    fn span(&mut self, number: SpanNumber) -> stagetrace_wire::span::Span {
        if !self.store.has_details(number) {
            self.sources.restore_span(self.store, number);
            self.exported.without_details += u64::from(!self.store.has_details(number));
        }
        self.exported.spans += 1;
        self.store.span(number)
    }
}
