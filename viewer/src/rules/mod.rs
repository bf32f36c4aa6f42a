//! What spans mean: samples, how they stand, and where their time goes.
//!
//! Pure functions of a store. The rules are those of `docs/viewer.md`, and hold for all sources.

mod lanes;
mod look;
mod row;
mod sample;
mod samples;
mod sorted;
mod status;
mod steps;
mod stuck;
mod totals;
mod tree;

pub(crate) use lanes::{LaneBuilder, Lanes, Slice};
pub use row::SampleRow;
pub use sample::{Current, Sample};
pub use samples::Samples;
pub use status::Status;
pub(crate) use steps::{order, shown};
pub use stuck::StuckRule;
pub(crate) use totals::{StageTotals, Totals};
pub(crate) use tree::Tree;
