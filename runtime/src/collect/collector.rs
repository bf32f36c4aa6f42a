//! A running collector as other threads see it: what they ask for, and how long they wait for the answer.

use super::anchors::Anchors;
use super::sink::Sink;
use super::sweep::Sweep;
use super::worker::Worker;
use crate::chunk::Pool;
use crate::config::TailSampling;
use crate::error::SinkError;
use crate::signals;
use crate::stats::Stats;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Blocks that shall be free at the start, before the collector's thread has come to run.
const FIRST: u32 = 16;
/// How much longer than its deadline a flush is waited for, so that it can say what failed.
const GRACE: Duration = Duration::from_millis(40);

/// A running collector, as other threads see it.
#[derive(Debug)]
pub(crate) struct Collector {
    messages: Mutex<Sender<Message>>,
    thread: Thread,
    join: Mutex<Option<JoinHandle<()>>>,
}

/// What a collector is made of.
pub(crate) struct Parts {
    pub(crate) sweep: Sweep,
    pub(crate) anchors: Anchors,
    pub(crate) tail: Option<TailSampling>,
    pub(crate) sinks: Vec<Box<dyn Sink>>,
    /// Where no sink is a file: the path for what must make room before the sinks have let it go. Without one nothing
    /// waits for them.
    pub(crate) spool: Option<PathBuf>,
}

/// What other threads ask for.
pub(super) enum Message {
    Flush { deadline: Instant, reply: SyncSender<Flushed> },
    Stats { reply: SyncSender<Stats> },
    Stop { deadline: Instant, reply: SyncSender<Flushed> },
}

/// The answer to a flush: the counters at its cut, and every failure.
#[derive(Clone, Debug)]
pub(crate) struct Flushed {
    pub(crate) stats: Stats,
    pub(crate) failures: Vec<SinkError>,
    /// Nothing that ended is in the recording alone.
    pub(crate) is_safe: bool,
    /// What ended and bears no mark in the recording has come to nobody.
    pub(crate) marks_tell: bool,
}

impl Collector {
    /// Starts the thread.
    pub(crate) fn start(pool: &'static Pool, parts: Parts) -> std::io::Result<Collector> {
        // A program may begin with a burst. An error is the collector's, whose next attempt says it.
        let _ = pool.grow_to_reserve(FIRST);
        let (sender, messages) = channel();
        let worker = Worker::new(pool, parts);
        let join = std::thread::Builder::new().name("stagetrace".into()).spawn(move || {
            signals::block();
            worker.run(&messages);
        })?;
        pool.set_collector(join.thread().clone());
        Ok(Collector {
            messages: Mutex::new(sender),
            thread: join.thread().clone(),
            join: Mutex::new(Some(join)),
        })
    }

    /// Has everything that ended before this call leave the process. `None` if the deadline passed first.
    pub(crate) fn flush(&self, deadline: Instant) -> Option<Flushed> {
        self.ask(deadline, |reply| Message::Flush { deadline, reply })
    }

    /// The counters now.
    pub(crate) fn stats(&self, deadline: Instant) -> Option<Stats> {
        self.ask(deadline, |reply| Message::Stats { reply })
    }

    /// Flushes and ends the thread. `None` if the deadline passed first; the thread then ends when it can.
    pub(crate) fn stop(&self, deadline: Instant) -> Option<Flushed> {
        let flushed = self.ask(deadline, |reply| Message::Stop { deadline, reply });
        if flushed.is_some() {
            let join = self.join.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(join) = join {
                let _ = join.join();
            }
        }
        flushed
    }

    fn ask<T>(
        &self,
        deadline: Instant,
        message: impl FnOnce(SyncSender<T>) -> Message,
    ) -> Option<T> {
        if std::thread::current().id() == self.thread.id() {
            // An exporter that asks from the collector's own thread would wait for itself.
            return None;
        }
        let (reply, answer) = sync_channel(1);
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner).clone();
        messages.send(message(reply)).ok()?;
        self.thread.unpark();
        answer.recv_timeout(deadline.saturating_duration_since(Instant::now()) + GRACE).ok()
    }
}
