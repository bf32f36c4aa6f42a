//! Questions and their answers: pure functions of a store and its samples.

mod catalogue;
mod compare;
mod course;
mod export;
mod flow;
mod group;
mod json;
mod lanes;
mod list;
mod order;
mod overview;
mod processes;
mod rank;
mod rows;
mod samples;
mod search;
mod select;
mod span;
mod spread;
mod stage;
mod stages;
mod state;
mod statistics;
mod step;
mod steps;
mod stuck;
mod summary;
mod timeline;
mod totals;
mod tree;
mod usage;
mod watch;

pub(crate) use catalogue::Catalogue;
pub use compare::{
    ComparedErrors, ComparedRun, ComparedStage, Comparison, RunMeasures, StageMeasures, Verdict,
};
pub use export::{ExportError, ExportFormat, ExportOptions, Exported, export};
pub(crate) use group::Group;
pub(crate) use lanes::{LaneOf, Lanes, LanesOptions};
pub(crate) use list::{List, ListOptions};
pub(crate) use order::Column;
pub(crate) use overview::Overview;
pub(crate) use processes::{Processes, ProcessesOptions};
pub use rows::{
    CurrentSpan, LastFinished, Latency, Losses, LostSample, OccupancyRow, OpenSample, Reward,
    SelfTime, StuckSpan, Summary,
};
pub(crate) use search::Search;
pub(crate) use select::{Compared, SelectError, Selector};
pub(crate) use span::SpanDetails;
pub(crate) use stage::OneStage;
pub use stages::{ErrorGroup, StageRow};
pub(crate) use state::State;
pub(crate) use step::{GroupOrder, Step};
pub(crate) use steps::Steps;
pub use summary::{StepChoice, SummaryOptions, UnknownStep};
pub(crate) use timeline::{Answer as TimelineAnswer, TimelineOptions};
pub use tree::tree;
pub(crate) use tree::{duration, printable};
pub(crate) use watch::{Happening, News, Watch};
