//! What spans mean: samples, how they stand, and where their time goes.
//!
//! Pure functions of a store. The rules are those of `docs/viewer.md`, and hold for all sources.

mod critical;
mod parents;
mod rows;
mod sample;
mod samples;
mod skew;
mod status;
mod steps;
mod stuck;
mod tree;
mod waits;

pub(crate) use critical::{Segment, critical_path};
pub(crate) use parents::guessed_parents;
pub(crate) use rows::Rows;
pub use sample::{Current, Sample};
pub use samples::Samples;
pub(crate) use skew::skew;
pub use status::Status;
pub(crate) use steps::{compare, shown};
pub use stuck::StuckRule;
pub(crate) use tree::Tree;
pub(crate) use waits::waits;
