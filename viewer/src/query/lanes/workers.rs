//! Who worked on a span: a worker, a thread, or the GPU by whose clock it was measured.

use stagetrace_wire::span::Value;

use crate::store::{Name, SpanNumber, Store, TraceNumber};

/// Where a span says who worked on it.
const WORKERS: [&str; 12] = [
    "xtuner.worker_rank",
    "worker_rank",
    "rollout.worker_rank",
    "rollout.worker.rank",
    "rollout.worker.id",
    "rl.worker.rank",
    "worker.id",
    "agent.sandbox",
    "gpu.id",
    "hw.id",
    "thread.name",
    "thread.id",
];
/// Spans with this have children that were measured by the clock of a GPU.
const GPU_CLOCK: &str = "gpu.clock.source";
const GPU_NAME: &str = "gpu.adapter";

/// Who worked on spans.
pub(super) struct Workers<'s> {
    store: &'s Store,
    keys: Vec<Name>,
    gpu: Option<(Name, Option<Name>)>,
}

impl<'s> Workers<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        let gpu = store.find_name(GPU_CLOCK).map(|clock| (clock, store.find_name(GPU_NAME)));
        Self { store, keys: WORKERS.iter().filter_map(|key| store.find_name(key)).collect(), gpu }
    }

    /// Whether any span says who worked on it.
    pub(super) fn are_known(&self) -> bool {
        !self.keys.is_empty() || self.gpu.is_some()
    }

    pub(super) fn of(&self, span: SpanNumber) -> Option<String> {
        if let Some(gpu) = self.gpu(span) {
            return Some(gpu);
        }
        match self.store.attribute(span, &self.keys)? {
            Value::Str(text) => Some(text.chars().take(80).collect()),
            Value::I64(rank) => Some(format!("worker {rank}")),
            _ => None,
        }
    }

    /// The GPU by whose clock a span was measured: its parent says so.
    fn gpu(&self, span: SpanNumber) -> Option<String> {
        let (clock, name) = self.gpu?;
        let record = self.store.record(span);
        let trace = self.store.trace_id(TraceNumber(record.trace));
        let parent = self.store.find_span(trace, record.parent?)?;
        self.store.attribute(parent, &[clock])?;
        let name = name.and_then(|name| self.store.attribute(parent, &[name]));
        Some(match name.as_ref().and_then(Value::as_str) {
            Some(name) => format!("GPU {name}"),
            None => "GPU".to_owned(),
        })
    }
}
