//! For tests: a recorder for one closure on one thread, with ids and a clock that are the same in every run.

use crate::chunk::{Pool, Space};
use crate::clock::Clock;
use crate::collect::{Sweep, to_span};
use crate::config::SpanLimits;
use crate::record::local::{self, Local};
use crate::stage::level::Capturing;
use stagetrace_wire::recording::time::{Anchor, Timeline};
use stagetrace_wire::span::{Resource, Scope, Span};
use std::sync::{Arc, Mutex, PoisonError};

pub use stagetrace_wire::span::tree;

/// What a closure recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Captured<R> {
    /// What the closure returned.
    pub output: R,
    /// The spans that ended in it, in the order in which they began. Times count from 0, one microsecond per reading of
    /// the clock.
    pub spans: Vec<Span>,
}

impl<R> Captured<R> {
    /// The spans as an indented tree, one a line: the name, then `key=value` of each attribute asked for, in that order,
    /// if it is there.
    pub fn tree(&self, attributes: &[&str]) -> String {
        tree(&self.spans, attributes)
    }
}

/// Records what `f` does on this thread, at every level, and gives it back; other threads, and a recorder of the
/// process, see nothing of it.
///
/// Ids and times are the same in every run, so a test can compare them. What `f` leaves open is not among the spans.
///
/// ```
/// let captured = stagetrace::testing::capture(|| {
///     let outer = stagetrace::span!("outer");
///     outer.in_scope(|| drop(stagetrace::span!("inner", "n" = 7)));
/// });
/// assert_eq!(captured.tree(&["n"]), "outer\n  inner n=7\n");
/// ```
///
/// # Panics
/// If `f` does; what it recorded is lost then.
pub fn capture<R>(f: impl FnOnce() -> R) -> Captured<R> {
    let _open = Capturing::new();
    let recorder = Lent::new();
    let output = record_into(recorder.pool, f);
    let (resource, scope) = (Arc::new(Resource::default()), Arc::new(Scope::default()));
    let timeline =
        Timeline::new([Anchor { ticks: 0, monotonic: 0, rate: 1 << 32, wall: 0, error: 0 }]);
    let mut sweep = Sweep::new(recorder.pool, SpanLimits::default());
    let mut spans = Vec::new();
    // A root is exported in the second walk; details are waited for a few more.
    for _ in 0..8 {
        sweep.walk(&timeline, &mut |ended| {
            if ended.is_sampled() {
                ended.each(|view| spans.push(to_span(view, &resource, &scope)));
            }
        });
        sweep.acknowledge(false);
    }
    spans.sort_by_key(|span| (span.start_unix_nano, span.end_unix_nano));
    recorder.pool.shared().close(recorder.pool);
    sweep.let_all_go();
    if sweep.is_empty() {
        recorder.give_back();
    }
    Captured { output, spans }
}

/// Has what `f` does on this thread recorded in a pool.
fn record_into<R>(pool: &'static Pool, f: impl FnOnce() -> R) -> R {
    let mine = Local::for_capture(pool);
    let output = {
        let _swapped = Swapped::new(&mine);
        f()
    };
    mine.close();
    output
}

/// Blocks of a capture's recorder.
const BLOCKS: usize = if cfg!(miri) { 16 } else { 128 };
/// Recorders of captures that are over. They are never freed: a request that outlives its capture still has its slot.
static IDLE: Mutex<Vec<&'static Pool>> = Mutex::new(Vec::new());

/// Has no capture begin or end until the value is dropped.
#[cfg(unix)]
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(IDLE.lock().unwrap_or_else(PoisonError::into_inner))
}

struct Lent {
    pool: &'static Pool,
}

impl Lent {
    fn new() -> Lent {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let pool = idle.unwrap_or_else(|| {
            let pool = Space::in_memory(BLOCKS)
                .and_then(|space| Pool::new(space, Clock::Steps, "{}"))
                .expect("there is memory for a test");
            Box::leak(Box::new(pool))
        });
        while pool.grow_to_reserve(u32::MAX).is_ok_and(|grew| grew) {}
        Lent { pool }
    }

    /// For the next capture. One in which something is still open is not used again: it would show up there.
    fn give_back(self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.pool);
    }
}

/// A capture's state in the place of the thread's own.
struct Swapped<'a>(&'a Local);

impl<'a> Swapped<'a> {
    fn new(state: &'a Local) -> Swapped<'a> {
        local::with(|local| local.swap(state));
        crate::clock::restart_steps();
        Swapped(state)
    }
}

impl Drop for Swapped<'_> {
    fn drop(&mut self) {
        local::with(|local| {
            local.swap(self.0);
            local.leave_capture();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Ended;
    use crate::stage::{Site, SpanKind, Stage, StageInfo};

    static STAGE: StageInfo = StageInfo::new("", "plain", 1, None);
    static SITE: Site = Site::new(Stage::new(&STAGE), SpanKind::Internal, &[], "", "", 0);

    /// How many spans went to the sinks in runs, and how many by themselves.
    fn walked(f: impl FnOnce()) -> (usize, usize) {
        let _open = Capturing::new();
        let recorder = Lent::new();
        record_into(recorder.pool, f);
        let timeline = Timeline::default();
        let mut sweep = Sweep::new(recorder.pool, SpanLimits::default());
        let (mut plain, mut others) = (0, 0);
        for _ in 0..8 {
            sweep.walk(&timeline, &mut |ended| match ended {
                Ended::Plain(run) => plain += run.spans(),
                Ended::One(_) => others += 1,
            });
        }
        (plain, others)
    }

    #[test]
    fn what_one_span_has_beside_its_record_makes_no_other_one_less_plain() {
        let recorded = walked(|| {
            let open = crate::span!("open");
            open.add_event("event", &[]);
            open.in_scope(|| (0..100).for_each(|_| drop(crate::record::enter::<0>(&SITE))));
            open.in_scope(|| {
                let _plain = crate::record::enter::<0>(&SITE);
                crate::add_event("event", &[]);
            });
            std::mem::forget(open);
        });
        assert_eq!(recorded, (100, 1));
    }
}
