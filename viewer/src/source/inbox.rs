//! Spans that other threads give, on their way into the store.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stagetrace_wire::span::Span;

/// Takes spans from any thread, for [`Sources::poll`](super::Sources::poll) to put into the store.
///
/// What waits in it takes no more than about [`Inbox::MAX_BYTES`] of memory. What does not fit is given
/// back, and counted in [`InboxReport::deferred_spans`](super::InboxReport::deferred_spans).
///
/// ```
/// use stagetrace_viewer::{Sources, Store};
/// # use stagetrace_wire::{id::{SpanId, TraceId}, span::Span};
/// # let spans = vec![Span::new(TraceId::from_u128(1).unwrap(), SpanId::from_u64(1).unwrap())];
/// let (mut sources, mut store) = (Sources::default(), Store::default());
/// let inbox = sources.inbox("my program");
/// std::thread::spawn(move || inbox.offer(spans)).join().unwrap()?;
/// sources.poll(&mut store);
/// assert_eq!(store.stats().spans, 1);
/// # Ok::<(), stagetrace_viewer::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is more room, or it was closed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    deferred: u64,
    is_closed: bool,
}

/// Spans that came together.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) spans: Vec<Span>,
    /// They may have been given before, and then are no duplicates of the sender's.
    pub(super) is_repeated: bool,
    bytes: usize,
}

/// Spans that an [`Inbox`] did not take.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Too many wait already.
    #[error("the viewer's inbox is full; send the spans again later")]
    Full(Vec<Span>),
    /// The sources are gone.
    #[error("nobody reads the viewer's inbox any more; send no more spans")]
    Closed(Vec<Span>),
}

impl Inbox {
    /// Most bytes of memory of the spans that wait, about. A single parcel that is larger is taken when
    /// nothing else waits.
    pub const MAX_BYTES: usize = 64 << 20;

    pub(super) fn new() -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Gives spans, if there is room for all of them. A span without an end is open.
    ///
    /// # Errors
    /// If there is too little room, or the sources are gone. The spans are given back.
    pub fn offer(&self, spans: Vec<Span>) -> Result<(), Refused> {
        self.give(spans, false, Duration::ZERO)
    }

    /// Gives spans, and waits for room.
    ///
    /// # Errors
    /// If there is too little room for so long, or the sources are gone. The spans are given back.
    pub fn send(&self, spans: Vec<Span>, wait: Duration) -> Result<(), Refused> {
        self.give(spans, false, wait)
    }

    pub(super) fn give(
        &self,
        spans: Vec<Span>,
        is_repeated: bool,
        wait: Duration,
    ) -> Result<(), Refused> {
        let bytes = spans.iter().map(Span::memory_bytes).sum::<usize>();
        let has_no_room = |state: &mut State| {
            !state.is_closed && state.bytes > 0 && state.bytes + bytes > Self::MAX_BYTES
        };
        let waited = self.0.changed.wait_timeout_while(self.lock(), wait, has_no_room);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_closed {
            return Err(Refused::Closed(spans));
        }
        if has_no_room(&mut state) {
            state.deferred += spans.len() as u64;
            return Err(Refused::Full(spans));
        }
        if !spans.is_empty() {
            state.bytes += bytes;
            state.parcels.push_back(Parcel { spans, is_repeated, bytes });
        }
        Ok(())
    }

    /// Takes the next parcel out.
    pub(super) fn take(&self) -> Option<Parcel> {
        let mut state = self.lock();
        let parcel = state.parcels.pop_front()?;
        state.bytes -= parcel.bytes;
        drop(state);
        self.0.changed.notify_all();
        Some(parcel)
    }

    /// How many parcels wait.
    pub(super) fn len(&self) -> usize {
        self.lock().parcels.len()
    }

    /// Spans that were given back.
    pub(super) fn deferred(&self) -> u64 {
        self.lock().deferred
    }

    /// Takes nothing more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.bytes = 0;
        drop(mem::take(&mut state.parcels));
        drop(state);
        self.0.changed.notify_all();
    }

    /// Waits so long, or until it is closed; whether it is.
    pub(super) fn pause(&self, wait: Duration) -> bool {
        let is_open = |state: &mut State| !state.is_closed;
        let waited = self.0.changed.wait_timeout_while(self.lock(), wait, is_open);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
