//! `tree TRACE_ID PATH…`

use super::{Failure, Input, print, trace_id};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The trace: 32 hex digits, or 16 as Jaeger prints short ones.
    trace_id: String,
    #[command(flatten)]
    input: Input,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let id = trace_id(&arguments.trace_id)?;
    let mut loaded = arguments.input.load()?;
    let trace = loaded.store.find_trace(id).ok_or_else(|| Failure::UnknownTrace(id.to_string()))?;
    loaded.sources.restore(&mut loaded.store, trace);
    print(&crate::query::tree(&loaded.store, &loaded.samples, trace, loaded.now))
}
