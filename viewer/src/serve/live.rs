//! What was read, kept up to date by a thread of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use crate::rules::{Samples, StuckRule};
use crate::source::{Progress, SourceReport, Sources};
use crate::store::{Store, TraceNumber};

/// How long the thread rests between two looks at the sources.
const REST: Duration = Duration::from_millis(150);

/// What was read, as it grows.
#[derive(Debug)]
pub(crate) struct Live {
    data: RwLock<Data>,
    sources: std::sync::Mutex<Sources>,
    pub(crate) progress: Arc<Progress>,
    /// 0 until all was read for the first time; rises with each change.
    version: watch::Sender<u64>,
    /// An instant that stands for now, or 0.
    fixed_now: AtomicU64,
    pub(crate) stuck: StuckRule,
}

/// What queries are asked of.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) store: Store,
    pub(crate) samples: Samples,
    pub(crate) report: SourceReport,
    pub(crate) version: u64,
}

/// What every query needs.
pub(crate) struct Question<'a> {
    pub(crate) data: &'a Data,
    pub(crate) now: u64,
    pub(crate) stuck: StuckRule,
}

impl Live {
    /// Of what was read so far. `now` stands for the clock, if it is given.
    pub(crate) fn new(
        sources: Sources,
        store: Store,
        samples: Samples,
        now: Option<u64>,
        stuck: StuckRule,
    ) -> Self {
        let report = SourceReport::default();
        Self {
            data: RwLock::new(Data { store, samples, report, version: 0 }),
            progress: sources.progress(),
            sources: sources.into(),
            version: watch::Sender::new(0),
            fixed_now: now.unwrap_or(0).into(),
            stuck,
        }
    }

    /// Reads the sources for as long as the process lives.
    pub(crate) fn follow(self: &Arc<Self>) -> std::io::Result<()> {
        let live = Arc::clone(self);
        let reader = move || {
            loop {
                live.look();
                thread::sleep(REST);
            }
        };
        thread::Builder::new().name("sources".to_owned()).spawn(reader).map(drop)
    }

    /// Reads what is new.
    pub(crate) fn look(&self) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        let Data { store, samples, report, version } = &mut *data;
        let before = store.version();
        sources.poll(store);
        samples.refresh(store);
        let seen = sources.report();
        if store.version() != before || *report != seen || *version == 0 {
            *report = seen;
            *version += 1;
            self.version.send_replace(*version);
        }
    }

    /// Reads the details of a trace again that made room for others. What has not made room is not waited
    /// for.
    pub(crate) fn restore(&self, trace: TraceNumber) {
        if self.data().store.missing(trace).is_empty() {
            return;
        }
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let mut data = self.data.write().unwrap_or_else(PoisonError::into_inner);
        sources.restore(&mut data.store, trace);
    }

    /// What was read so far.
    pub(crate) fn data(&self) -> RwLockReadGuard<'_, Data> {
        self.data.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a query.
    pub(crate) fn ask<R>(&self, query: impl FnOnce(&Question<'_>) -> R) -> R {
        let data = self.data();
        query(&Question { data: &data, now: self.now(), stuck: self.stuck })
    }

    /// Whether all was read at least once.
    pub(crate) fn is_loaded(&self) -> bool {
        *self.version.borrow() > 0
    }

    /// Tells of versions as they come.
    pub(crate) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Now, in nanoseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        match self.fixed_now.load(Ordering::Relaxed) {
            0 => std::time::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos() as u64),
            now => now,
        }
    }
}
