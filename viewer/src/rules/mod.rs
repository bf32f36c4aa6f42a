//! What spans mean: samples, how they stand, and where their time goes.
//!
//! Pure functions of a store. The rules are those of `docs/viewer.md`, and hold for all sources.

mod critical;
mod lanes;
mod look;
mod parents;
mod row;
mod rows;
mod sample;
mod samples;
mod skew;
mod sorted;
mod status;
mod steps;
mod stuck;
mod totals;
mod tree;
mod waits;

pub(crate) use critical::{Segment, critical_path};
pub(crate) use lanes::{LaneBuilder, Lanes, Slice};
pub(crate) use parents::guessed_parents;
pub use row::SampleRow;
pub(crate) use rows::Rows;
pub use sample::{Current, Sample};
pub use samples::Samples;
pub(crate) use skew::skew;
pub(crate) use sorted::Sorted;
pub use status::Status;
pub(crate) use steps::{order, shown};
pub use stuck::StuckRule;
pub(crate) use totals::{StageTotals, Totals};
pub(crate) use tree::Tree;
pub(crate) use waits::waits;
