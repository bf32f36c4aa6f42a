//! What spans mean: samples, how they stand, and where their time goes.
//!
//! Pure functions of a store. The rules are those of `docs/viewer.md`, and hold for all sources.

mod lanes;
mod sample;
mod samples;
mod status;
mod steps;
mod stuck;
mod tree;

pub(crate) use lanes::{LaneBuilder, Lanes, Slice};
pub use sample::{Current, Sample};
pub use samples::Samples;
pub use status::Status;
pub(crate) use steps::{compare, shown};
pub use stuck::StuckRule;
pub(crate) use tree::Tree;
