//! Spans out of a Jaeger, asked for again and again on a thread of its own.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hashbrown::{HashMap, HashSet};
use stagetrace_wire::id::TraceId;
use stagetrace_wire::span::Span;

use super::inbox::Inbox;

mod client;
#[cfg(feature = "tls")]
mod tls;
mod windows;

use client::{Cause, Client, Failed, Found};
use windows::Window;

/// What to ask a Jaeger for, and how.
///
/// At most one request is under way at a time. Windows of time whose answers are full or too long are
/// halved and asked for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JaegerQuery {
    /// Where it answers queries, such as `http://localhost:16686`, with a base path if it has one.
    pub url: String,
    /// The service; `None` for all but Jaeger's own.
    pub service: Option<String>,
    /// How far back traces are asked for.
    pub lookback: Duration,
    /// Traces per answer.
    pub limit: u32,
    /// How long it is left alone after a round.
    pub interval: Duration,
    /// How much of what was asked for is asked for again, to find spans that came late: in every round
    /// so much, in every second one twice, in every fourth one four times as much, and so on.
    pub overlap: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Longest answer that is read, in bytes.
    pub max_answer_bytes: usize,
}

/// Why a Jaeger cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum JaegerError {
    /// The URL is none of a Jaeger.
    #[error(
        "cannot ask a Jaeger at `{url}`: {why}; name its query port, such as http://localhost:16686"
    )]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system refuses a thread.
    #[error("cannot start a thread to ask {url}: {error}; end some other program")]
    Thread {
        /// The URL.
        url: String,
        /// Why.
        error: io::Error,
    },
}

/// What was asked, in numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) refused_spans: u64,
    pub(super) incomplete_windows: u64,
    pub(super) error: Option<String>,
}

/// Who asks.
struct Asker {
    query: JaegerQuery,
    client: Client,
    inbox: Inbox,
    asked: Arc<Mutex<Asked>>,
    limit: u32,
    /// In a row.
    failures: u32,
    /// What is still to be asked for in this round, the last first.
    open: Vec<(Arc<str>, Window)>,
    /// Windows that were halved in this round.
    halved: u32,
    refresh: Vec<TraceId>,
    /// Up to where all was asked for, in microseconds since 1970.
    done: Option<u64>,
    round: Option<u64>,
    /// Rounds that were begun.
    rounds: u64,
    /// Traces that lack a root or a parent: since when, and when they were asked for last.
    unfinished: HashMap<TraceId, (u64, u64)>,
}

/// Most traces whose end is waited for.
const MAX_UNFINISHED: usize = 10_000;
/// Of these, those that are asked for in one round.
const REFRESHED: usize = 20;
/// Most windows that are halved in a round: where one trace is too long, each of its spans would cost as
/// many requests as there are halves.
const MAX_HALVED: u32 = 2000;
/// Failures after which a window is divided.
const PATIENCE: u32 = 3;
/// How often the overlap is doubled at most.
const MAX_DOUBLED: u32 = 20;
/// The shortest pause between rounds.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait after failures.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Longer than anybody waits for room.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// What Jaeger calls itself.
const OWN: &[&str] = &["jaeger", "jaeger-query", "jaeger-all-in-one"];

impl JaegerQuery {
    /// Asks for the last hour of all services, 200 traces and 32 MiB at most at a time, every five
    /// seconds, and each time for the last two minutes again. An answer may take 30 seconds.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            service: None,
            lookback: Duration::from_secs(3600),
            limit: 200,
            interval: Duration::from_secs(5),
            overlap: Duration::from_secs(120),
            timeout: Duration::from_secs(30),
            max_answer_bytes: 32 << 20,
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        let rest = match (self.url.strip_prefix("http://"), self.url.strip_prefix("https://")) {
            (Some(rest), _) => rest,
            (_, Some(rest)) if cfg!(feature = "tls") => rest,
            (_, Some(_)) => return Err("this viewer was built without TLS"),
            _ => return Err("it begins with neither http:// nor https://"),
        };
        match rest.starts_with('/') || rest.is_empty() || rest.contains(['?', '#', ' ']) {
            true => Err("it is no base URL"),
            false => Ok(()),
        }
    }
}

/// Asks until the inbox is closed.
pub(super) fn start(query: JaegerQuery, inbox: Inbox) -> Result<Arc<Mutex<Asked>>, JaegerError> {
    let url = query.url.clone();
    query.check().map_err(|why| JaegerError::Url { url: url.clone(), why })?;
    let asked = Arc::new(Mutex::new(Asked::default()));
    let asker = Asker {
        client: Client::new(&query),
        limit: query.limit.max(1),
        failures: 0,
        query,
        inbox,
        asked: asked.clone(),
        open: Vec::new(),
        halved: 0,
        refresh: Vec::new(),
        done: None,
        round: None,
        rounds: 0,
        unfinished: HashMap::new(),
    };
    let thread = thread::Builder::new().name("jaeger-query".to_owned());
    let started = thread.spawn(move || asker.run());
    started.map(|_| asked).map_err(|error| JaegerError::Thread { url, error })
}

impl Asker {
    fn run(mut self) {
        loop {
            let result = self.step();
            let wait = match &result {
                Ok(wait) => {
                    self.failures = 0;
                    *wait
                }
                Err(failed) => {
                    let wait = Duration::from_millis(500 << self.failures);
                    self.failures = (self.failures + 1).min(7);
                    failed.retry_after.map_or(wait, |asked| asked.max(wait)).min(MAX_WAIT)
                }
            };
            let mut asked = lock(&self.asked);
            asked.failed += u64::from(result.is_err());
            asked.error = result.err().map(|failed| failed.why);
            drop(asked);
            if self.inbox.pause(wait) {
                return;
            }
        }
    }

    /// Makes one request, and returns how long to wait until the next.
    fn step(&mut self) -> Result<Duration, Failed> {
        if self.round.is_none() {
            self.begin()?;
        } else if let Some((service, window)) = self.open.last().cloned() {
            self.ask(service, window)?;
        } else if let Some(trace) = self.refresh.pop() {
            self.count();
            if let Some((_, asked)) = self.unfinished.get_mut(&trace) {
                *asked = now();
            }
            match self.client.trace(trace)? {
                Found::Spans(spans, _) if spans.is_empty() => _ = self.unfinished.remove(&trace),
                Found::Spans(spans, refused) => _ = self.take(spans, refused),
                Found::TooLarge => lock(&self.asked).incomplete_windows += 1,
            }
        } else {
            self.done = self.round.take();
            return Ok(self.query.interval.max(MIN_INTERVAL));
        }
        Ok(Duration::ZERO)
    }

    fn begin(&mut self) -> Result<(), Failed> {
        self.count();
        let known = self.client.services()?;
        let now = now();
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let oldest = now.saturating_sub(microseconds(self.query.lookback));
        let from = match self.done {
            // What took long came late, and there is less of it.
            Some(done) => {
                let times = 1 << self.rounds.trailing_zeros().min(MAX_DOUBLED);
                let overlap = microseconds(self.query.overlap).saturating_mul(times);
                done.saturating_sub(overlap).max(oldest)
            }
            None => oldest,
        };
        let services = match &self.query.service {
            Some(service) => vec![service.clone()],
            None => known.into_iter().filter(|name| !OWN.contains(&&**name)).collect(),
        };
        let window = Window { from, to: now };
        self.open = services.into_iter().map(|service| (service.into(), window)).collect();
        self.unfinished.retain(|_, (since, _)| *since >= oldest);
        let mut waiting: Vec<_> =
            self.unfinished.iter().map(|(trace, (_, asked))| (*asked, *trace)).collect();
        waiting.sort_unstable();
        self.refresh = waiting.into_iter().take(REFRESHED).map(|(_, trace)| trace).collect();
        self.halved = 0;
        self.round = Some(now);
        self.rounds += 1;
        Ok(())
    }

    fn ask(&mut self, service: Arc<str>, window: Window) -> Result<(), Failed> {
        self.count();
        let found = match self.client.find(&service, window, self.limit) {
            Err(failed) if failed.cause == Cause::Limit && self.limit > 1 => {
                self.limit /= 2;
                return Ok(());
            }
            Err(failed) => {
                let is_hopeless = failed.cause == Cause::Answer && self.failures >= PATIENCE;
                // Half as much may take half as long, or be what it can answer.
                if is_hopeless || failed.cause == Cause::Slow {
                    self.divide(&service, window);
                }
                return Err(failed);
            }
            Ok(found) => found,
        };
        let is_whole = match found {
            Found::TooLarge => false,
            Found::Spans(spans, refused) => self.take(spans, refused) < self.limit as usize,
        };
        if is_whole {
            self.open.pop();
        } else {
            self.divide(&service, window);
        }
        Ok(())
    }

    /// Asks for the halves of a window instead, if that is worth it.
    fn divide(&mut self, service: &Arc<str>, window: Window) {
        self.open.pop();
        let is_worth = self.halved < MAX_HALVED;
        match window.halves().filter(|_| is_worth) {
            Some(halves) => {
                self.halved += 1;
                self.open.extend(halves.map(|half| (service.clone(), half)));
            }
            None => lock(&self.asked).incomplete_windows += 1,
        }
    }

    /// Hands over what was found, whole traces; returns how many.
    fn take(&mut self, spans: Vec<Span>, refused: u64) -> usize {
        lock(&self.asked).refused_spans += refused;
        let ids: HashSet<_> = spans.iter().map(|span| (span.trace_id, span.span_id)).collect();
        let mut traces: HashMap<TraceId, (bool, bool)> = HashMap::new();
        for span in &spans {
            let (has_root, lacks_parent) = traces.entry(span.trace_id).or_default();
            match span.parent_span_id {
                None => *has_root = true,
                Some(parent) => *lacks_parent |= !ids.contains(&(span.trace_id, parent)),
            }
        }
        let now = now();
        for (trace, (has_root, lacks_parent)) in &traces {
            if *has_root && !lacks_parent {
                self.unfinished.remove(trace);
            } else if let Some((_, asked)) = self.unfinished.get_mut(trace) {
                *asked = now;
            } else if self.unfinished.len() < MAX_UNFINISHED {
                self.unfinished.insert(*trace, (now, now));
            }
        }
        // It was closed, if this fails, and then nobody wants them.
        let _ = self.inbox.give(spans, true, FOREVER);
        traces.len()
    }

    fn count(&self) {
        lock(&self.asked).requests += 1;
    }
}

pub(super) fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In microseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_micros() as u64)
}
