//! Stages that are futures: current while polled, ended when ready, and known to be cancelled when dropped before.

use super::context::State;
use super::local::{self, Local};
use super::polling::Polling;
use super::slab::SlabSpan;
use super::write::{self, SlotRef};
use super::{Context, Position, recorder};
use crate::clock::Clock;
use crate::request::{Judged, Outcome};
use crate::stage::{Site, Stage, level};
use std::mem;
use std::pin::Pin;
use std::ptr;
use std::task::{Context as TaskContext, Poll};

/// A stage that is going to run: where it goes and at what level were read when this was made.
#[derive(Debug)]
pub struct Prepared {
    site: &'static Site,
    state: Progress,
}

/// Small, since it lies in every staged future.
#[derive(Debug)]
enum Progress {
    /// Nothing is recorded, and the context stays as it is.
    Off,
    /// Nothing is recorded, but the context is set.
    Unrecorded(Under),
    /// Begins at the first poll.
    Waiting(Under),
    /// Has begun in the thread's chunk, in its first poll, and perhaps ends there.
    Fresh(SlotRef, State),
    /// Has begun. All but the state stands in the span's slot.
    Running(SlabSpan, State),
}

/// A context without its slot: the future may outlive the span that is current now, and run on another thread.
#[derive(Clone, Copy, Debug)]
struct Under {
    trace: [u64; 2],
    span: u64,
    state: State,
    stage: Option<Stage>,
}

impl Under {
    fn new(context: &Context) -> Under {
        let Context { trace, span, state, stage, .. } = *context;
        // SAFETY: a context's stage is that of a site, or null.
        Under { trace, span, state, stage: unsafe { Stage::from_address(stage) } }
    }

    /// What is current, for a stage of this site: its own stage need not be known where nobody asks.
    #[inline]
    fn current(local: &Local, site: &'static Site) -> Under {
        let stage = if site.within().is_some() { local.stage() } else { ptr::null() };
        let (trace, span, state) = (local.trace(), local.span(), local.state.get());
        // SAFETY: a thread's stage is that of a site, or null.
        Under { trace, span, state, stage: unsafe { Stage::from_address(stage) } }
    }

    fn context(&self) -> Context {
        let Under { trace, span, state, stage } = *self;
        let stage = stage.map_or(ptr::null(), Stage::address);
        Context { trace, span, state, stage, slot: ptr::null() }
    }
}

/// Reads what is current now.
#[inline]
pub fn prepare(site: &'static Site) -> Prepared {
    if level::in_use() < site.level() {
        return Prepared { site, state: Progress::Off };
    }
    let local = local::here();
    match local.state.get().is_active() {
        true => Prepared::under(site, Under::current(local, site), false),
        false => Prepared::own(local, site),
    }
}

/// Reads where the request at `position` is now.
pub fn prepare_of(site: &'static Site, position: impl FnOnce() -> Position) -> Prepared {
    if level::in_use() < site.level() {
        return Prepared { site, state: Progress::Off };
    }
    let position = position();
    if position.is_null() {
        return prepare(site);
    }
    if site.level() == 1 {
        super::live::note_stage(&position, site);
    }
    let local = local::here();
    if local.trace() == position.trace && !position.state.outranks(local.state.get()) {
        Prepared::under(site, Under::current(local, site), false)
    } else {
        Prepared::under(site, Under::new(&Context::at(position)), true)
    }
}

/// A stage in a trace of its own, whatever is current.
pub fn prepare_detached(site: &'static Site) -> Prepared {
    if level::in_use() < site.level() {
        return Prepared { site, state: Progress::Off };
    }
    local::with(|local| Prepared::own(local, site))
}

impl Prepared {
    /// A stage of that context. If it is not recorded there, the context is only set where it `differs` from what is
    /// current.
    #[inline]
    fn under(site: &'static Site, under: Under, differs: bool) -> Prepared {
        let state = match under.state.level() >= site.level() {
            true => Progress::Waiting(under),
            false if differs => Progress::Unrecorded(under),
            false => Progress::Off,
        };
        Prepared { site, state }
    }

    #[cold]
    fn own(local: &Local, site: &'static Site) -> Prepared {
        let own = local.pool().and_then(|_| recorder::own_trace(local, site.level()));
        let state = match own {
            None => Progress::Off,
            Some(own) if own.state.level() == 0 => Progress::Unrecorded(Under::new(&own)),
            Some(own) => Progress::Waiting(Under::new(&Context { span: 0, ..own })),
        };
        Prepared { site, state }
    }

    /// Begins now and not at the first poll.
    pub fn begun(mut self) -> Prepared {
        self.begin_in_slab(local::here());
        self
    }

    /// Runs `f` inside the stage, which has begun; if it unwinds, the stage ends with it.
    pub fn prelude<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let _entered = self.enter();
        f()
    }

    /// The future as this stage; `judge` looks at what it returns.
    pub fn run<F, J>(self, future: F, judge: J) -> StageFuture<F, J>
    where
        F: Future,
        J: FnOnce(&F::Output) -> Judged,
    {
        StageFuture { future, judge: Some(judge), stage: self }
    }

    /// Begins where a stage of a function would, and is current: most futures are ready at the end of their first poll, or
    /// never leave their thread's chunk for long enough to matter. `None` if it cannot begin there.
    #[inline]
    fn begin(&mut self, local: &Local, under: Under) -> Option<Polling> {
        if self.site.within().is_some() {
            return None;
        }
        if under.span != local.span() {
            local.arrive_at(under.span);
        }
        let Under { trace, span: parent, state, .. } = under;
        let place = write::Under { parent, trace: Some(trace), state, is_current: false };
        let slot = write::begin::<0, ()>(local, self.site, place, &(), Clock::counter)?;
        let state = state.of_local();
        self.state = Progress::Fresh(slot, state);
        Some(Polling::within(local, slot, trace, state))
    }

    #[inline(never)]
    fn begin_in_slab(&mut self, local: &Local) {
        let Progress::Waiting(under) = self.state else { return };
        self.state = match SlabSpan::begin(local, self.site, 0, &under.context()) {
            None => Progress::Off,
            Some(span) => {
                span.publish();
                Progress::Running(span, under.state.of_local())
            }
        };
    }

    /// Makes the stage current until the returned value is dropped.
    #[inline]
    fn enter(&mut self) -> Polling {
        let local = local::here();
        if let Progress::Waiting(under) = self.state {
            if let Some(polling) = self.begin(local, under) {
                return polling;
            }
            self.begin_in_slab(local);
        }
        match &self.state {
            Progress::Fresh(slot, state) => Polling::span(local, *slot, *state),
            Progress::Running(span, state) => Polling::span(local, span.slot(), *state),
            Progress::Unrecorded(under) => Polling::context(local, &under.context()),
            Progress::Off | Progress::Waiting(_) => Polling::NOTHING,
        }
    }

    #[inline]
    fn end(&mut self, judged: &Judged) {
        let local = local::here();
        match mem::replace(&mut self.state, Progress::Off) {
            Progress::Running(span, _) => span.end(local, judged),
            Progress::Fresh(slot, _) if judged.outcome() == Outcome::Ok => slot.end(local.ticks()),
            Progress::Fresh(slot, _) => write::end_failed(local, slot, judged),
            _ => {}
        }
    }

    /// A span that goes on after its first poll goes to the slab, where it does not hold a chunk. If there is no room it
    /// stays.
    #[inline]
    fn settle(&mut self) {
        if let Progress::Fresh(slot, state) = self.state
            && let Some(span) = SlabSpan::taken_over(local::here(), slot)
        {
            self.state = Progress::Running(span, state);
        }
    }
}

impl Prepared {
    #[cold]
    #[inline(never)]
    fn end_early(&mut self) {
        let outcome = if std::thread::panicking() { Outcome::Panic } else { Outcome::Cancelled };
        self.end(&Judged::from(outcome));
    }
}

impl Drop for Prepared {
    #[inline]
    fn drop(&mut self) {
        if let Progress::Fresh(..) | Progress::Running(..) = self.state {
            self.end_early();
        }
    }
}

/// A future that is a stage.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct StageFuture<F, J> {
    future: F,
    judge: Option<J>,
    stage: Prepared,
}

impl<F, J> Future for StageFuture<F, J>
where
    F: Future,
    J: FnOnce(&F::Output) -> Judged,
{
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<F::Output> {
        // SAFETY: only the future is pinned structurally; the other fields are `Unpin` and moved nowhere from here.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the future is never moved out of the pinned `this`.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Progress::Off = this.stage.state {
            return future.poll(task);
        }
        let entered = this.stage.enter();
        let polled = match future.poll(task) {
            Poll::Ready(output) => output,
            Poll::Pending => {
                drop(entered);
                this.stage.settle();
                return Poll::Pending;
            }
        };
        if let Some(judge) = this.judge.take() {
            let judged = judge(&polled);
            drop(entered);
            this.stage.end(&judged);
        }
        Poll::Ready(polled)
    }
}
