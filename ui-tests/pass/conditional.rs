//! The macros behind `cfg_attr`, and on items behind `cfg`.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async, clippy::non_minimal_cfg)]
#![forbid(unsafe_code)]

use stagetrace::{Stages, TraceState, Traced, stage};

/// The stages of these tests.
#[cfg_attr(all(), derive(Stages))]
pub enum Steps {
    /// First.
    First,
    /// Behind a condition.
    #[cfg(any())]
    Never,
    /// Last.
    #[cfg_attr(all(), stage(level = 1))]
    Last,
}

/// A request.
#[cfg_attr(all(), derive(Traced))]
#[derive(Default)]
pub struct Request {
    /// Behind a condition.
    #[cfg(any())]
    pub never: Missing,
    /// The trace.
    #[cfg_attr(all(), traced(state))]
    pub trace: TraceState,
}

#[cfg_attr(all(), stage(Steps::First))]
#[cfg_attr(any(), stage(Steps::Last))]
fn sync() -> u32 {
    1
}

#[cfg(all())]
#[stage(Steps::Last, request)]
#[cfg_attr(all(), inline)]
async fn later(request: &Request) -> u32 {
    let _ = request;
    2
}

#[cfg(any())]
#[stage(Steps::Never)]
fn never() {}

#[test]
fn the_macros_work_behind_conditions() {
    assert_eq!(Steps::ALL.len(), 2);
    assert_eq!(Steps::LAST.level(), 1);
    assert_eq!(sync(), 1);
    drop(later(&Request::default()));
}
