//! Says which sample is stuck in which stage.
//!
//! Spans come from files and recordings, or are sent ([`Sources`]), are kept in a compact, bounded [`Store`], and are
//! asked for by pure queries. Each part knows only those before it: source → store → rules → query →
//! server → command line; the sources alone read files.

pub mod cli;
mod query;
mod rules;
mod serve;
mod source;
mod store;

pub use query::{
    ComparedErrors, ComparedRun, ComparedStage, Comparison, CurrentSpan, ErrorGroup, ExportError,
    ExportFormat, ExportOptions, Exported, LastFinished, Losses, LostSample, OccupancyRow,
    OpenSample, Reward, RunMeasures, SelfTime, StageMeasures, StageRow, StepChoice, StuckSpan,
    Summary, SummaryOptions, UnknownStep, Verdict, export, tree,
};
pub use rules::{Current, Sample, SampleRow, Samples, Status, StuckRule};
pub use source::{
    FileReport, Inbox, InboxReport, JaegerError, JaegerQuery, OpenError, Progress, ReceiveError,
    RecordingReport, Refused, SourceReport, Sources,
};
pub use store::{Failure, Ident, Name, Only, Origin, SpanNumber, Stats, Store, TraceNumber};
