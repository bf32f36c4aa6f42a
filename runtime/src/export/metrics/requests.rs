//! Finished requests: how long they took, and where the time went.

use super::gen_ai;
use super::instruments::Instruments;
use super::seconds;
use super::stages::{STAGE, of_outcome};
use crate::collect::SpanView;
use crate::stage::Stage;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry::{Context, KeyValue};
use stagetrace_wire::span::flags;

/// The key under which a request's name stands.
pub(crate) const REQUEST: &str = "stagetrace.request.name";

/// The series of requests.
#[derive(Default)]
pub(super) struct Requests {
    /// The attributes of each request's name and stage, as far as they were seen.
    stages: Vec<(&'static str, Stage, [KeyValue; 2])>,
    scratch: Vec<KeyValue>,
}

impl Requests {
    /// Records a request's root, inside a context that is the root's: what samples exemplars finds the trace there.
    pub(super) fn record(&mut self, instruments: &Instruments, root: &SpanView<'_>) {
        let _entered = context_of(root).attach();
        let name = root.site.stage().name();
        let duration = seconds(root.begin, root.end);
        self.scratch.clear();
        self.scratch.push(KeyValue::new(REQUEST, name));
        self.scratch.extend(of_outcome(root.outcome(), root.error_type()));
        instruments.request_duration.record(duration, &self.scratch);
        for time in root.breakdown {
            let attributes = self.of_stage(name, time.stage);
            instruments.request_stage_duration.record(seconds(0, time.ns), attributes);
        }
        gen_ai::record(instruments, root, &mut self.scratch);
    }

    /// Few, and the stages of one request come in the same order each time: looked for one after the other.
    fn of_stage(&mut self, request: &'static str, stage: Stage) -> &[KeyValue] {
        let found = self.stages.iter().position(|(of, at, _)| *of == request && *at == stage);
        let at = found.unwrap_or_else(|| {
            let attributes = [KeyValue::new(REQUEST, request), KeyValue::new(STAGE, stage.name())];
            self.stages.push((request, stage, attributes));
            self.stages.len() - 1
        });
        &self.stages[at].2
    }
}

/// A context in which the root is the current span.
fn context_of(root: &SpanView<'_>) -> Context {
    let trace = TraceId::from(root.trace_id.to_u128());
    let span = SpanId::from(root.span_id.to_u64());
    let flags = TraceFlags::new((root.flags() & flags::TRACE_FLAGS) as u8);
    let context = SpanContext::new(trace, span, flags, false, TraceState::NONE);
    Context::current().with_remote_span_context(context)
}
