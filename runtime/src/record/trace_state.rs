//! What a live trace state does when it is cloned, dropped, serialised.

use super::Position;
use super::live::Block;
use super::local;
use super::recorder;
use super::slab::SlabSpan;
use crate::request::{
    FORCED, Judged, Live, Outcome, RemoteRef, Repr, TraceState, Traceparent, serialize_null,
    serialize_remote,
};
use crate::stage::{Site, Stage};
use serde::{Serialize, Serializer};
use std::fmt;

impl Live {
    /// The block it is a handle to.
    #[inline(always)]
    pub(crate) fn block(&self) -> &'static Block {
        // SAFETY: made from a block in `begin`; blocks live as long as the process.
        unsafe { self.0.cast().as_ref() }
    }
}

impl From<Position> for TraceState {
    /// The place as if it had come with a request: for a request that is made here and handed on.
    fn from(position: Position) -> TraceState {
        match position.context() {
            Some(context) => {
                // What is not sampled has no level but where somebody measures it, each at its own.
                let level = context.flags.is_sampled().then(|| position.level().into());
                let mut trace = TraceState::from_context(context, level);
                if position.state.is_forced() {
                    trace.force();
                }
                trace
            }
            None => TraceState::null(),
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block().position().trace_id() {
            Some(id) => write!(f, "live {id}"),
            None => f.write_str("live"),
        }
    }
}

impl Clone for TraceState {
    fn clone(&self) -> TraceState {
        TraceState::from_repr(match self.repr() {
            Repr::Null => Repr::Null,
            Repr::Remote(remote) => Repr::Remote(remote.clone()),
            Repr::Live(live) => {
                live.block().share();
                Repr::Live(Live(live.0))
            }
        })
    }
}

impl Drop for TraceState {
    #[inline]
    fn drop(&mut self) {
        if let Repr::Live(live) = self.repr() {
            let block = live.block();
            if block.unshare() {
                drop_last(block);
            }
        }
    }
}

/// Ends a root that nobody finished, and gives the block back.
fn drop_last(block: &'static Block) {
    if let Some(Some((pool, number))) = block.finish() {
        end_unfinished(block, SlabSpan::of(pool, number));
    }
    block.free(block.position().state.root());
}

#[cold]
#[inline(never)]
fn end_unfinished(block: &'static Block, span: SlabSpan) {
    let outcome = match block.worst() {
        _ if std::thread::panicking() => Outcome::Panic,
        Outcome::Ok => Outcome::Dropped,
        worst => worst,
    };
    local::with(|local| span.end(local, &Judged::from(outcome)));
}

impl Serialize for TraceState {
    /// Never fails but where the format does. A live request is written as the current span if that is of its trace,
    /// else as its root; a remote one as it came, or as the current span inside one of its stages.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.repr() {
            Repr::Null => serialize_null(serializer),
            Repr::Remote(remote) => {
                let here = remote.context().and_then(|context| {
                    let trace = context.trace_id.to_u128();
                    here([(trace >> 64) as u64, trace as u64])
                });
                let carrier = remote.carrier();
                match here.and_then(|(position, stage)| Some((position.context()?, stage))) {
                    None => serialize_remote(carrier, serializer),
                    Some((context, stage)) => {
                        let stage = match stage {
                            Some(stage) => stage.name(),
                            None => carrier.stage,
                        };
                        let traceparent = Traceparent::Of(context);
                        serialize_remote(RemoteRef { traceparent, stage, ..carrier }, serializer)
                    }
                }
            }
            Repr::Live(live) => {
                let block = live.block();
                let root = block.position();
                let here = here(root.trace);
                let here = here.filter(|(position, _)| !root.state.outranks(position.state));
                let (position, stage) = here.unwrap_or((root, None));
                let Some(context) = position.context() else { return serialize_null(serializer) };
                let carrier = match block.carrier() {
                    Some(remote) => remote.carrier(),
                    None if root.state.is_forced() => {
                        RemoteRef { tracestate: FORCED, ..RemoteRef::of(context) }
                    }
                    None => RemoteRef::of(context),
                };
                let last = recorder::site_of(block.last_stage()).map(Site::stage);
                let stage = match stage.or(last) {
                    Some(stage) => stage.name(),
                    None => carrier.stage,
                };
                let level = carrier.level.unwrap_or(i64::from(root.level()));
                let written = RemoteRef {
                    traceparent: Traceparent::Of(context),
                    level: (context.flags.is_sampled() || carrier.level.is_some()).then_some(level),
                    stage,
                    ..carrier
                };
                serialize_remote(written, serializer)
            }
        }
    }
}

/// The current span and stage of this thread, if it is of that trace.
fn here(trace: [u64; 2]) -> Option<(Position, Option<Stage>)> {
    local::with(|local| {
        let context = local.context();
        // SAFETY: a context's stage is that of a site, or null.
        let stage = unsafe { Stage::from_address(context.stage) };
        (context.trace == trace && context.span != 0).then(|| (context.position(), stage))
    })
}
