//! The runtime under another path, through a facade.

#![deny(warnings, missing_docs, clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(clippy::unused_async)]
#![forbid(unsafe_code)]

/// A crate that re-exports the runtime.
pub mod facade {
    pub use ::stagetrace as tracing_of_ours;
}
/// A module of the framework's name.
pub mod stagetrace {}

use facade::tracing_of_ours::{Stages, TraceState, Traced, request, stage};

/// The stages of these tests.
#[derive(Stages)]
#[stages(crate = facade::tracing_of_ours)]
pub enum Steps {
    /// Only.
    Only,
}

/// A request.
#[derive(Traced, Default)]
#[traced(crate = facade::tracing_of_ours, stages = Steps)]
pub struct Request {
    /// The trace.
    #[traced(state)]
    pub trace: TraceState,
}

/// A request whose trace is added.
#[request(crate = crate::pass::renamed_crate::facade::tracing_of_ours, stages = Steps)]
#[derive(Default)]
pub struct Added {
    /// Its id.
    #[traced(id)]
    pub id: u32,
}

#[stage(Steps::Only, request, crate = facade::tracing_of_ours)]
fn sync(request: &Request) {
    let _ = request;
}

#[stage(Steps::Only, request, crate = crate::pass::renamed_crate::facade::tracing_of_ours)]
async fn later(request: &Added) -> u32 {
    request.id
}

macro_rules! in_a_macro {
    ($name:ident) => {
        #[stage(Steps::Only, request, err, crate = $crate::pass::renamed_crate::facade::tracing_of_ours)]
        fn $name(request: &Added) -> Result<u32, String> {
            Ok(request.id)
        }
    };
}

in_a_macro!(by_the_macros_crate);

#[test]
fn the_runtime_may_have_another_path() {
    sync(&Request::default());
    assert_eq!(by_the_macros_crate(&Added::default()), Ok(0));
    drop(later(&Added::default()));
}
