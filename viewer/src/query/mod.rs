//! Questions and their answers: pure functions of a store and its samples.

mod catalogue;
mod compare;
mod export;
mod json;
mod lanes;
mod overview;
mod processes;
mod rows;
mod samples;
mod select;
mod spread;
mod stage;
mod stages;
mod state;
mod statistics;
mod summary;
mod tree;
mod usage;
mod watch;

pub(crate) use catalogue::Catalogue;
pub use compare::{
    ComparedErrors, ComparedRun, ComparedStage, Comparison, RunMeasures, StageMeasures, Verdict,
};
pub use export::{ExportError, ExportFormat, ExportOptions, Exported, export};
pub(crate) use lanes::{LaneOf, Lanes, LanesOptions};
pub(crate) use overview::Overview;
pub(crate) use processes::{Processes, ProcessesOptions};
pub use rows::{
    CurrentSpan, LastFinished, Losses, LostSample, OccupancyRow, OpenSample, Reward, SelfTime,
    StuckSpan, Summary,
};
pub(crate) use select::{Compared, SelectError, Selector};
pub(crate) use stage::OneStage;
pub use stages::{ErrorGroup, StageRow};
pub(crate) use state::State;
pub use summary::{StepChoice, SummaryOptions, UnknownStep};
pub use tree::tree;
pub(crate) use tree::{duration, printable};
pub(crate) use watch::{Happening, News, Watch};
