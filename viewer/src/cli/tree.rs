//! `tree TRACE_ID PATH…`

use stagetrace_wire::id::TraceId;

use super::{Failure, Input, print};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The trace: 32 hex digits, or 16 as Jaeger prints short ones.
    trace_id: String,
    #[command(flatten)]
    input: Input,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = &arguments.trace_id;
    let padded = format!("{text:0>32}");
    let is_id = matches!(text.len(), 16 | 32);
    let id = TraceId::from_hex(&padded).ok().filter(|_| is_id);
    let id = id.ok_or_else(|| Failure::TraceId(text.clone()))?;
    let mut loaded = arguments.input.load()?;
    let trace = loaded.store.find_trace(id).ok_or_else(|| Failure::UnknownTrace(id.to_string()))?;
    loaded.sources.restore(&mut loaded.store, trace);
    print(&crate::query::tree(&loaded.store, &loaded.samples, trace, loaded.now))
}
