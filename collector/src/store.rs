//! What arrived, and what is to be answered.

use std::collections::VecDeque;
use std::mem::{self, size_of};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::collector::Stats;
use crate::reply::Reply;
use crate::request::Request;
use crate::spans::Spans;
use stagetrace_wire::span::Span;

/// Shared by the handle and the server.
pub(crate) struct Store {
    state: Mutex<State>,
    arrived: Condvar,
    /// The same for who waits without blocking.
    version: watch::Sender<()>,
    max_bytes: usize,
    /// Whether requests are remembered.
    is_kept: bool,
}

/// What arrived.
#[derive(Clone, Default)]
pub(crate) struct Arrivals {
    pub(crate) spans: Spans,
    pub(crate) requests: Arc<Vec<Request>>,
    pub(crate) stats: Stats,
}

struct State {
    arrivals: Arrivals,
    /// Memory of each span.
    weights: VecDeque<usize>,
    span_bytes: usize,
    request_bytes: usize,
    script: VecDeque<Reply>,
    standing: Reply,
}

/// What a request brought.
pub(crate) struct Delivery {
    pub(crate) request: Request,
    /// Those to keep.
    pub(crate) spans: Vec<Span>,
    /// Those, or as many that somebody else took.
    pub(crate) accepted: u64,
    /// Spans that could not be read or were not to be kept.
    pub(crate) rejected: u64,
}

impl Delivery {
    pub(crate) fn without_spans(request: Request) -> Self {
        Self { request, spans: Vec::new(), accepted: 0, rejected: 0 }
    }
}

/// Most requests that are remembered.
pub(crate) const MAX_REQUESTS: usize = 4096;

impl Store {
    pub(crate) fn new(max_bytes: usize, is_kept: bool) -> Self {
        Self {
            state: Mutex::new(State {
                arrivals: Arrivals::default(),
                weights: VecDeque::new(),
                span_bytes: 0,
                request_bytes: 0,
                script: VecDeque::new(),
                standing: Reply::success(),
            }),
            arrived: Condvar::new(),
            version: watch::Sender::new(()),
            max_bytes,
            is_kept,
        }
    }

    pub(crate) fn arrivals(&self) -> Arrivals {
        self.lock().arrivals.clone()
    }

    /// Tells of everything that arrives from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.version.subscribe()
    }

    /// Blocks until the condition holds or the time is over; whether it holds, and what had arrived
    /// then.
    pub(crate) fn wait(
        &self,
        until: Instant,
        mut condition: impl FnMut(&Arrivals) -> bool,
    ) -> Result<Arrivals, Arrivals> {
        let mut state = self.lock();
        loop {
            // The condition is the user's, so it runs without the lock.
            let (arrivals, requests) = (state.arrivals.clone(), state.arrivals.stats.requests);
            drop(state);
            if condition(&arrivals) {
                return Ok(arrivals);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(arrivals);
            }
            drop(arrivals);
            let nothing_new = |state: &mut State| state.arrivals.stats.requests == requests;
            let waited = self.arrived.wait_timeout_while(self.lock(), left, nothing_new);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn add(&self, delivery: Delivery) {
        let mut state = self.lock();
        state.add(delivery, self.max_bytes, self.is_kept);
        drop(state);
        self.arrived.notify_all();
        self.version.send_replace(());
    }

    pub(crate) fn clear(&self) -> Spans {
        let mut state = self.lock();
        state.weights.clear();
        (state.span_bytes, state.request_bytes) = (0, 0);
        state.arrivals.requests = Arc::default();
        mem::take(&mut state.arrivals.spans)
    }

    pub(crate) fn next_reply(&self) -> Reply {
        let mut state = self.lock();
        state.script.pop_front().unwrap_or_else(|| state.standing.clone())
    }

    pub(crate) fn set_reply(&self, reply: Reply) {
        let mut state = self.lock();
        state.script.clear();
        state.standing = reply;
    }

    pub(crate) fn script(&self, replies: impl Iterator<Item = Reply>) {
        self.lock().script.extend(replies);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, delivery: Delivery, max_bytes: usize, is_kept: bool) {
        let stats = &mut self.arrivals.stats;
        stats.requests += 1;
        stats.failed_requests += u64::from(delivery.request.error.is_some());
        stats.spans += delivery.accepted;
        stats.rejected_spans += delivery.rejected;

        if is_kept {
            self.add_request(delivery.request, max_bytes / 4);
        }
        if !delivery.spans.is_empty() {
            self.add_spans(delivery.spans, max_bytes);
        }
    }

    fn add_request(&mut self, request: Request, max_bytes: usize) {
        self.request_bytes += of_request(&request);
        let requests = Arc::make_mut(&mut self.arrivals.requests);
        requests.push(request);
        while requests.len() > MAX_REQUESTS || self.request_bytes > max_bytes && requests.len() > 1
        {
            // A quarter at once, so that it does not move all the others each time.
            let dropped = requests.drain(..requests.len().div_ceil(4));
            self.request_bytes -= dropped.map(|request| of_request(&request)).sum::<usize>();
        }
    }

    fn add_spans(&mut self, new: Vec<Span>, max_bytes: usize) {
        let weights: Vec<usize> = new.iter().map(Span::memory_bytes).collect();
        self.span_bytes += weights.iter().sum::<usize>();
        self.weights.extend(weights);
        let spans = Arc::make_mut(&mut self.arrivals.spans.0);
        spans.extend(new);
        if self.span_bytes > max_bytes {
            let mut dropped = 0;
            while self.span_bytes > max_bytes / 8 * 7 {
                let Some(weight) = self.weights.pop_front() else { break };
                self.span_bytes -= weight;
                dropped += 1;
            }
            spans.drain(..dropped);
            self.arrivals.stats.dropped_spans += dropped as u64;
        }
    }
}

fn of_request(request: &Request) -> usize {
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
    let error = request.error.as_ref().map_or(0, String::len);
    size_of::<Request>() + request.path.len() + error + headers.sum::<usize>()
}
