//! The collector's thread: walks, lets sinks go, answers, and never lets trouble out.

use super::anchors::Anchors;
use super::clock_report;
use super::collector::{Flushed, Message, Parts};
use super::ended::Ended;
use super::held::Held;
use super::loss::LossReport;
use super::sink::{Sink, Standing};
use super::spool::Spool;
use super::sweep::Sweep;
use super::tail::Tail;
use crate::chunk::{DropCause, Pool};
use crate::complain;
use crate::record::{live, recorder};
use crate::request::UNREADABLE;
use crate::stage::level;
use crate::stats::Stats;
use stagetrace_wire::recording::layout::{BLOCK, header};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Shortest and longest time between walks while spans come, and the longest when nothing does.
const BUSY: Duration = Duration::from_millis(5);
const CALM: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_secs(1);
/// Blocks that shall be free after each walk.
const RESERVE: u32 = 48;
/// How often the recording's file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes that may wait in a sink that cannot let them go.
const BACKLOG: usize = 64 << 20;
/// How long a batch that cannot be let go is tried again at least.
const PATIENCE: Duration = Duration::from_secs(2);
/// After so many rounds of a flush everything that ended before it has been handed out, if only at its deadline.
const ROUNDS: u32 = 4;
/// Hands what has ended to those of the sinks that shall have it, and lets those go that are full.
fn hand(
    ended: &Ended<'_>,
    sinks: &mut [Box<dyn Sink>],
    failed: &mut [bool],
    panics: &AtomicU64,
    shall_have: impl Fn(&dyn Sink) -> bool,
) {
    for (sink, failed) in sinks.iter_mut().zip(failed) {
        if !shall_have(&**sink) {
            continue;
        }
        let add = AssertUnwindSafe(|| {
            let is_full = match ended {
                Ended::One(span) => sink.add(span),
                Ended::Plain(run) => sink.add_run(run),
            };
            if is_full && !*failed {
                // An error stays in the sink, and comes again at the end of the turn.
                *failed = sink.commit().is_err();
            }
        });
        if catch_unwind(add).is_err() {
            panics.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(super) struct Worker {
    pool: &'static Pool,
    sweep: Sweep,
    anchors: Anchors,
    /// What waits for the decision about its trace, if there is one.
    tail: Option<Tail>,
    sinks: Vec<Box<dyn Sink>>,
    losses: LossReport,
    pause: Duration,
    last_news: Instant,
    /// Since when the sinks could not let go of their batches.
    stuck_since: Option<Instant>,
    /// When the recording was last looked at.
    looked_at: Instant,
    handed: u64,
    /// Spans of traces that are not sampled.
    unsampled: u64,
    panics: AtomicU64,
    /// Which sinks could not let go of a batch in this walk.
    failed: Vec<bool>,
    /// How far the sinks were when they were last asked.
    standings: Vec<Standing>,
}

impl Worker {
    pub(super) fn new(pool: &'static Pool, parts: Parts) -> Worker {
        let Parts { mut sweep, anchors, tail, sinks, spool } = parts;
        // A file that gets only what is wanted has nothing of what is undecided.
        let has_all = |sink: &dyn Sink| sink.is_before_sampling() || tail.is_none();
        let is_durable = sinks.iter().any(|sink| sink.is_durable() && has_all(&**sink));
        sweep.mark_if(is_durable);
        if let Some(path) = spool.filter(|_| !is_durable && !sinks.is_empty()) {
            sweep.hold(Held::new(Spool::new(path)));
        }
        Worker {
            pool,
            tail: tail.map(|rules| Tail::new(rules, *sweep.limits())),
            sweep,
            anchors,
            losses: LossReport::new(pool),
            pause: BUSY,
            last_news: Instant::now(),
            stuck_since: None,
            looked_at: Instant::now(),
            handed: 0,
            unsampled: 0,
            panics: AtomicU64::new(0),
            failed: vec![false; sinks.len()],
            standings: Vec::new(),
            sinks,
        }
    }

    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        loop {
            match messages.try_recv() {
                Ok(Message::Stats { reply }) => {
                    self.contained(Self::turn);
                    let _ = reply.send(self.stats());
                }
                Ok(Message::Flush { deadline, reply }) => {
                    let _ = reply.send(self.flush(deadline, false));
                }
                Ok(Message::Stop { deadline, reply }) => {
                    self.losses.is_last();
                    let flushed = self.flush(deadline, true);
                    if flushed.is_safe {
                        self.sweep.remove_spool();
                        self.pool.header(header::STATE).store(header::CLOSED, Ordering::Release);
                    }
                    drop(self);
                    let _ = reply.send(flushed);
                    return;
                }
                Err(_) => {
                    self.contained(Self::turn);
                    std::thread::park_timeout(self.pause);
                }
            }
        }
    }

    /// Runs `f`; a panic in it is counted and reported, and the collector goes on.
    fn contained(&mut self, f: impl FnOnce(&mut Self)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| f(self))) {
            self.panics.fetch_add(1, Ordering::Relaxed);
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            complain::error("panic", format_args!("contained a panic: {}", text.unwrap_or("?")));
        }
    }

    /// One walk, and what follows from it.
    fn turn(&mut self) {
        self.anchors.refresh();
        self.look_at_recording();
        self.pool.reset_waiting();
        self.provide();
        let news = self.walk();
        self.losses.report(&mut self.sinks, self.anchors.timeline());
        if let Some(change) = self.anchors.take_change() {
            clock_report::report(&change, &mut self.sinks, self.anchors.timeline());
        }
        self.commit();
        self.provide();
        if level::in_use() > level::of_process() {
            level::settle(|| live::survey().0);
        }
        self.pause = self.next_pause(news);
    }

    fn walk(&mut self) -> usize {
        let Worker { sweep, anchors, tail, sinks, handed, unsampled, panics, pool, failed, .. } =
            self;
        failed.fill(false);
        let timeline = anchors.timeline();
        let news = sweep.walk(timeline, &mut |ended| {
            let count = if ended.is_sampled() { &mut *handed } else { &mut *unsampled };
            let before = std::mem::replace(count, *count + ended.spans());
            if before / 1024 != *count / 1024 {
                // A long walk must not starve the callers; an error is reported at the end of the turn.
                let _ = pool.grow_to_reserve(RESERVE);
            }
            if !ended.is_sampled() {
                return hand(&ended, sinks, failed, panics, |sink| sink.takes_unsampled());
            }
            let Some(tail) = tail else { return hand(&ended, sinks, failed, panics, |_| true) };
            hand(&ended, sinks, failed, panics, |sink| sink.is_before_sampling());
            tail.take(&ended, timeline, &mut |wanted| {
                hand(&wanted, sinks, failed, panics, |sink| !sink.is_before_sampling());
            });
        });
        self.look_after_tail(false);
        news
    }

    /// Decides what has waited too long for the decision about its trace; with `all`, all of it.
    fn look_after_tail(&mut self, all: bool) {
        let Worker { anchors, tail: Some(tail), sinks, panics, failed, .. } = self else { return };
        tail.look_after(all, anchors.timeline(), &mut |wanted| {
            hand(&wanted, sinks, failed, panics, |sink| !sink.is_before_sampling());
        });
    }

    /// Has every sink let its batch go; if all do, what they were handed is safe.
    fn commit(&mut self) {
        let mut durable = None;
        let mut stuck = false;
        for sink in &mut self.sinks {
            match sink.commit() {
                Ok(()) if sink.is_durable() => durable = Some(sink.acknowledged()),
                Ok(()) => {}
                Err(error) => {
                    complain::warn(error.sink, &error);
                    let since = *self.stuck_since.get_or_insert_with(Instant::now);
                    // As long as there is room the recording keeps what cannot be written.
                    let needs_room = self.pool.is_short() || sink.backlog() > BACKLOG;
                    if needs_room && since.elapsed() > PATIENCE {
                        sink.abandon();
                        // The next batch has its own time.
                        self.stuck_since = None;
                    } else {
                        stuck = true;
                    }
                }
            }
        }
        if stuck {
            // What every sink has let go need not wait for the one that fails.
            return self.settle();
        }
        if !self.sweep.holds() {
            self.sweep.acknowledge(durable.is_some());
        }
        if let Some((rotation, length)) = durable {
            self.stuck_since = None;
            let word = u64::from(rotation) << 48 | length;
            self.pool.header(header::ACKNOWLEDGED).store(word, Ordering::Release);
        }
        self.settle();
    }

    /// Asks the sinks how far they are, and recycles the chunks that nothing waits for any more.
    fn settle(&mut self) {
        if !self.sweep.holds() {
            return;
        }
        self.standings.clear();
        self.standings.extend(self.sinks.iter().map(|sink| sink.standing()));
        if let Some(tail) = &mut self.tail {
            self.standings.push(tail.standing(&self.standings));
        }
        self.sweep.settle(&self.standings);
    }

    /// Once a second: whether somebody has removed the recording, which nobody finds then.
    fn look_at_recording(&mut self) {
        if self.looked_at.elapsed() < LOOK {
            return;
        }
        self.looked_at = Instant::now();
        if !self.pool.space().has_name() {
            let what = "somebody removed the recording of this process";
            let then =
                "from here on a kill loses what is not written elsewhere; start again to have one";
            complain::warn("recording", format_args!("{what}: {then}"));
        }
    }

    /// Grows the pool ahead of need.
    fn provide(&mut self) {
        loop {
            match self.pool.grow_to_reserve(RESERVE) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let what = "the recording cannot grow, and when it is full spans are dropped";
                    let remedy = "make room where it lies";
                    return complain::warn("growth", format_args!("{what}: {error}; {remedy}"));
                }
            }
        }
    }

    fn next_pause(&mut self, news: usize) -> Duration {
        if news > 0 {
            self.last_news = Instant::now();
            return BUSY;
        }
        match self.last_news.elapsed() {
            calm if calm < IDLE => (self.pause * 2).min(CALM),
            _ => (self.pause * 2).min(IDLE),
        }
    }

    /// Everything that ended before is handed out within a few walks from now; then the sinks are waited for, while
    /// the walks go on, so that a slow one holds up nobody.
    fn flush(&mut self, deadline: Instant, last: bool) -> Flushed {
        self.sinks.iter_mut().for_each(|sink| sink.hurry());
        let mut rounds = 0;
        let mut asked = false;
        loop {
            self.contained(Self::turn);
            self.contained(Self::turn);
            rounds += 1;
            let late = Instant::now() >= deadline;
            let handed = self.sweep.waiting() == 0 || rounds >= ROUNDS;
            if !asked && (handed || late) {
                if last {
                    self.contained(|worker| {
                        worker.look_after_tail(true);
                        worker.commit();
                    });
                }
                self.sinks.iter_mut().for_each(|sink| sink.begin_flush(deadline, last));
                asked = true;
            }
            // What cannot be written for so long stays in the recording.
            let stuck = self.stuck_since.is_some_and(|since| since.elapsed() < PATIENCE);
            let waits = stuck || self.sinks.iter().any(|s| s.is_flushing());
            if late || asked && !waits {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let failures = self.sinks.iter_mut().filter_map(|sink| sink.flush(deadline).err());
        let failures = failures.collect();
        self.contained(Self::settle);
        let stats = self.stats();
        let is_safe = self.stuck_since.is_none() && stats.waiting == 0 && self.sweep.is_out();
        // Without a sink, too: all that has ended is there.
        let marks_tell = self.sweep.marks() || self.sinks.is_empty();
        Flushed { stats, failures, is_safe, marks_tell }
    }

    fn stats(&self) -> Stats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let dropped: Vec<_> =
            DropCause::ALL.into_iter().map(|cause| (cause, self.pool.dropped(cause))).collect();
        let lost: u64 = dropped.iter().filter(|(cause, _)| cause.is_span()).map(|(_, n)| n).sum();
        let waiting = self.sweep.waiting();
        let ended = waiting + self.sweep.discarded + self.unsampled + self.handed;
        let open = self.sweep.open();
        let sinks: Vec<_> = self.sinks.iter().map(|sink| sink.status()).collect();
        let tail = self.tail.as_ref().map(|tail| tail.counts).unwrap_or_default();
        let panics = sinks.iter().map(|sink| sink.panics).sum::<u64>() + count(&self.panics);
        Stats {
            begun: lost + open + ended,
            open,
            ended,
            waiting,
            discarded: self.sweep.discarded,
            unsampled: self.unsampled,
            handed: self.handed,
            undecided: tail.undecided,
            sampled_out: tail.sampled_out,
            decided_early: tail.decided_early,
            dropped,
            sinks,
            misplaced: count(&recorder::MISPLACED),
            out_of_order: count(&recorder::OUT_OF_ORDER),
            begun_twice: count(&recorder::BEGUN_TWICE),
            finished_twice: count(&recorder::FINISHED_TWICE),
            without_span: count(&recorder::NO_SPAN),
            orphaned_details: self.sweep.orphaned_details(),
            unreadable_carriers: count(&UNREADABLE),
            memory: (self.pool.blocks() * BLOCK) as u64,
            contained_panics: panics,
            clock: self.anchors.stats(),
            spool: self.sweep.spool_stats(),
        }
    }
}
