//! Questions and their answers: pure functions of a store and its samples.

mod compare;
mod export;
mod json;
mod overview;
mod rows;
mod samples;
mod span;
mod stages;
mod state;
mod statistics;
mod summary;
mod timeline;
mod tree;
mod watch;

pub use compare::{
    ComparedErrors, ComparedRun, ComparedStage, Comparison, RunMeasures, StageMeasures, Verdict,
};
pub use export::{ExportError, ExportFormat, ExportOptions, Exported, export};
pub(crate) use overview::Overview;
pub use rows::{
    CurrentSpan, LastFinished, Losses, LostSample, OccupancyRow, OpenSample, Reward, SelfTime,
    StuckSpan, Summary,
};
pub(crate) use span::SpanDetails;
pub use stages::{ErrorGroup, StageRow};
pub(crate) use state::State;
pub use summary::{StepChoice, SummaryOptions, UnknownStep};
pub(crate) use timeline::{Answer as TimelineAnswer, TimelineOptions};
pub use tree::tree;
pub(crate) use tree::{duration, printable};
pub(crate) use watch::{Happening, News, Watch};
