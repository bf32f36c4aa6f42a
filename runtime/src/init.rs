//! Starting and stopping: configuration → guard.

mod identity;
mod status;

use crate::adopt;
use crate::chunk::Pool;
use crate::clock::{Clock, ClockSource, Clocks};
use crate::collect::{Anchors, Collector, Flushed, OpenSink, Opening, Parts, Sink, Sweep};
use crate::complain;
use crate::config::{Settings, TraceConfig};
use crate::error::{FlushError, InitError};
use crate::export::{Exporter, JsonLines};
use crate::record::{live, recorder, register};
use crate::request::trust_callers;
use crate::run::Place;
use crate::stage::level;
use crate::stats::{SinkStatus, Stats};
use crate::viewer::Viewer;
use identity::{identity, scope};
use stagetrace_wire::id::RunId;
use std::ffi::OsString;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use status::{Status, status};

/// What `init` started, for the life of the process.
#[derive(Debug)]
struct Started {
    settings: Settings,
    /// `None` if tracing is switched off.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    place: Place,
    clock: ClockSource,
    pool: &'static Pool,
    collector: Collector,
    adopting: Mutex<Option<JoinHandle<()>>>,
    viewer: Option<Viewer>,
    stopped: AtomicBool,
    /// The counters when it was stopped.
    last: OnceLock<Stats>,
}

/// Where this process keeps what it started. Null before the first `init`, and again in the child of a fork; never freed.
static STARTED: AtomicPtr<OnceLock<Started>> = AtomicPtr::new(ptr::null_mut());
/// In the child of a fork, what its parent started.
static OF_PARENT: AtomicPtr<Started> = AtomicPtr::new(ptr::null_mut());

/// Keeps tracing going; dropping it flushes, within the configured time, and stops.
///
/// In the child of a `fork` a guard that was inherited does nothing: the recorder is the parent's.
#[derive(Debug)]
#[must_use = "tracing stops when the guard is dropped: bind it to a name, `let _trace = ..`"]
pub struct TraceGuard(&'static Started);

/// Starts tracing for this process: once, early in `main`.
///
/// The child of a `fork` records nothing until it calls `init` itself. It then has a recording of its own, in its parent's
/// run unless its configuration names another.
///
/// What the environment does not allow (no space, no directory to write to) is said once on standard error and in
/// [`status`](crate::status); the program goes on and records what it can. Built with `--cfg stagetrace_off` nothing is
/// started, and nothing said.
///
/// # Errors
/// Only for what the program can correct: a second call, or a setting that makes no sense.
pub fn init(config: TraceConfig) -> Result<TraceGuard, InitError> {
    init_with(config, [])
}

/// [`init`], with ways out of the program's own beside the local file. They get the resource of this process, are flushed
/// by [`flush`] and shut down with the guard.
///
/// # Errors
/// Those of [`init`]. An exporter is never one: see [`status`].
pub fn init_with(
    config: TraceConfig,
    exporters: impl IntoIterator<Item = Exporter>,
) -> Result<TraceGuard, InitError> {
    start(config, exporters.into_iter().map(Exporter::into_open).collect())
}

fn start(config: TraceConfig, mut more: Vec<OpenSink>) -> Result<TraceGuard, InitError> {
    let mut settings = config.settings()?;
    #[cfg(feature = "_network")]
    let otlp = crate::export::over_network(&mut settings)?;
    #[cfg(not(feature = "_network"))]
    let otlp: Option<OpenSink> = None;
    let sends = otlp.is_some();
    more.extend(otlp);
    settings.run_id = settings.run_id.or_else(run_of_parent);
    let mut is_first = false;
    let started = cell().get_or_init(|| {
        is_first = true;
        if cfg!(stagetrace_off) {
            return Started { settings, running: None };
        }
        complain::set_level(settings.log_level);
        for warning in &settings.warnings {
            // Not by the variable alone, of which several members may be wrong.
            let line = warning.to_string();
            complain::warn(&line, &line);
        }
        let running = settings.enabled.then(|| run(&settings, more, sends)).flatten();
        Started { settings, running }
    });
    if is_first { Ok(TraceGuard(started)) } else { Err(InitError::AlreadyInitialised) }
}

/// Where this process keeps what it starts.
fn cell() -> &'static OnceLock<Started> {
    let mut cell = STARTED.load(Ordering::Acquire);
    if cell.is_null() {
        let new = Box::into_raw(Box::default());
        let set = STARTED.compare_exchange(cell, new, Ordering::AcqRel, Ordering::Acquire);
        cell = match set {
            Ok(_) => new,
            // Another thread was faster.
            Err(first) => {
                // SAFETY: nobody else knows it.
                drop(unsafe { Box::from_raw(new) });
                first
            }
        };
    }
    // SAFETY: from a box that is never freed once it is there.
    unsafe { &*cell }
}

/// What this process started, if it did.
fn started() -> Option<&'static Started> {
    // SAFETY: null, or from a box that is never freed.
    unsafe { STARTED.load(Ordering::Acquire).as_ref() }?.get()
}

/// In the child of a fork, its parent's run.
fn run_of_parent() -> Option<RunId> {
    // SAFETY: null, or a part of what is never freed.
    let parent = unsafe { OF_PARENT.load(Ordering::Acquire).as_ref() }?;
    Some(parent.running.as_ref()?.place.run_id.clone())
}

/// Starts everything; `sends` if spans go over the network.
fn run(settings: &Settings, more: Vec<OpenSink>, sends: bool) -> Option<Running> {
    let source = ClockSource::of_this_machine();
    let clock = Clock::of(&source);
    let origin = clock.read();
    let mut place = Place::new(settings);
    let resource =
        settings.resource(&crate::config::Process::this(), &place.run_id, &place.process_id);
    let identity = identity(&place, &resource);
    let pool = place.space(settings).and_then(|space| Pool::new(space, clock, &identity));
    let pool: &'static Pool = match pool {
        Ok(pool) => Box::leak(Box::new(pool)),
        Err(error) => {
            let what = "no memory for the recording";
            complain::error("space", format_args!("{what}: {error}; nothing is traced"));
            place.give_up();
            return None;
        }
    };
    #[cfg(unix)]
    crate::fork::watch(pool);
    let opening = Opening {
        resource: &resource,
        scope: &scope(),
        batching: &settings.batching,
        dir: place.dir.as_deref(),
        stem: &place.stem,
    };
    let mut sinks: Vec<Box<dyn Sink>> = more.into_iter().map(|open| open(&opening)).collect();
    if settings.jsonl
        && let Some(path) = place.file("jsonl")
    {
        match JsonLines::create(path.clone(), settings.jsonl_max_bytes, &resource, &scope()) {
            Ok(sink) => {
                let is_sampled = settings.tail.is_some_and(|tail| tail.jsonl);
                let sink = if is_sampled { sink.behind_sampling() } else { sink };
                sinks.insert(0, Box::new(sink));
            }
            Err(error) => {
                complain::warn("jsonl", format_args!("cannot make {}: {error}", path.display()));
            }
        }
    }
    trust_callers(settings.trust_callers);
    let measures = sinks.iter().any(|sink| sink.takes_unsampled());
    register::show_in(pool);
    let anchors = Anchors::new(clock, pool, origin, clock.read());
    let parts = Parts {
        sweep: Sweep::new(pool, settings.limits),
        anchors,
        tail: settings.tail,
        sinks,
        spool: place.spool(),
    };
    let collector = match Collector::start(pool, parts) {
        Ok(collector) => collector,
        Err(error) => {
            let what = "cannot start the collector's thread";
            complain::error("thread", format_args!("{what}: {error}; nothing is traced"));
            place.give_up();
            return None;
        }
    };
    let adopting = Mutex::new(adopt::in_background(settings.output_dir.clone(), sends));
    recorder::install(pool, settings.sampler, measures);
    level::set_process(settings.level);
    let viewer = settings.viewer.zip(place.dir.clone());
    let viewer = viewer.and_then(|(port, dir)| Viewer::start(dir, port));
    Some(Running {
        place,
        clock: source,
        pool,
        collector,
        adopting,
        viewer,
        stopped: AtomicBool::new(false),
        last: OnceLock::new(),
    })
}

impl TraceGuard {
    /// Flushes and stops, and says what failed. Afterwards nothing more is recorded; open spans still end.
    ///
    /// # Errors
    /// If `within` passed first, or a sink could not let go of its spans.
    pub fn shutdown(self, within: Duration) -> Result<Stats, FlushError> {
        stop(self.0, within)
    }

    /// The run's directory; `None` if tracing is off or it could not be made.
    pub fn run_dir(&self) -> Option<&Path> {
        run_dir()
    }
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        match stop(self.0, self.0.settings.shutdown_timeout) {
            Ok(_) | Err(FlushError::NotRunning) => {}
            Err(error) => match run_dir().filter(|_| self.0.has_only_outboxes_left(&error)) {
                Some(dir) => {
                    let (what, dir) =
                        ("the next start, or stagetrace::recover, sends them from", dir.display());
                    complain::warn("shutdown", format_args!("{error}; {what} {dir}"));
                }
                None => complain::error("shutdown", error),
            },
        }
    }
}

impl Started {
    /// Whether nothing went wrong but that spans wait in outboxes.
    fn has_only_outboxes_left(&self, error: &FlushError) -> bool {
        let FlushError::Sinks(errors) = error else { return false };
        let Some(stats) = self.running.as_ref().and_then(|running| running.last.get()) else {
            return false;
        };
        errors.iter().all(|error| {
            let waits = |sink: &SinkStatus| {
                let begin = format!("{} spans wait in the outbox", sink.outbox);
                sink.name == error.sink && sink.queued == 0 && error.problem.starts_with(&begin)
            };
            stats.sinks.iter().any(waits)
        })
    }
}

/// Says that what was started belongs to another process. A start that is under way on another thread is not there either.
#[cfg(unix)]
pub(crate) fn cut_off() {
    if let Some(started) = started() {
        if let Some(running) = &started.running {
            running.stopped.store(true, Ordering::Release);
        }
        OF_PARENT.store(ptr::from_ref(started).cast_mut(), Ordering::Release);
    }
    STARTED.store(ptr::null_mut(), Ordering::Release);
}

fn running() -> Option<&'static Running> {
    let running = started()?.running.as_ref()?;
    (!running.stopped.load(Ordering::Acquire)).then_some(running)
}

fn stop(started: &'static Started, within: Duration) -> Result<Stats, FlushError> {
    let running = started.running.as_ref().ok_or(FlushError::NotRunning)?;
    if running.stopped.swap(true, Ordering::AcqRel) {
        return Err(FlushError::NotRunning);
    }
    level::set_process(0);
    let deadline = deadline(within);
    let flushed = running.collector.stop(deadline);
    if let Some(viewer) = &running.viewer {
        viewer.stop();
    }
    let flushed = flushed.ok_or(FlushError::Deadline(within))?;
    let _ = running.last.set(flushed.stats.clone());
    running.finish_adopting(deadline);
    // Without a file for it that anybody finds, what nobody has is no reason to keep a recording.
    let unwritten = flushed.marks_tell && started.settings.jsonl && running.place.dir.is_some();
    // Else the recording stays, and what only it holds is recovered by the next process.
    if flushed.is_safe
        && let Err(error) = running.place.close(&running.pool.closed_image(unwritten))
    {
        complain::warn("close", format_args!("cannot close the recording: {error}"));
    }
    outcome(flushed)
}

impl Running {
    /// The mapped recording, as long as it can be found.
    fn recording(&self) -> Option<std::path::PathBuf> {
        self.place.recording.clone().filter(|_| self.pool.space().has_name())
    }

    /// Lets the recovery of dead processes' spans come to its end, which short-lived processes would otherwise cut off.
    fn finish_adopting(&self, deadline: Instant) {
        let adopting = self.adopting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(adopting) = adopting {
            while !adopting.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// When that much time will have passed; in a year if that is beyond what can be told.
pub(crate) fn deadline(within: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + within.min(YEAR)
}

fn outcome(flushed: Flushed) -> Result<Stats, FlushError> {
    let Flushed { stats, failures, .. } = flushed;
    if failures.is_empty() { Ok(stats) } else { Err(FlushError::Sinks(failures)) }
}

/// Has every span that ended before this call leave the process: written to the file, handed to each exporter and
/// acknowledged by it. Gives the counters at that cut.
///
/// # Errors
/// If `within` passed first, if a sink failed, or if tracing is not running.
pub fn flush(within: Duration) -> Result<Stats, FlushError> {
    let running = running().ok_or(FlushError::NotRunning)?;
    let flushed = running.collector.flush(deadline(within));
    outcome(flushed.ok_or(FlushError::Deadline(within))?)
}

/// The counters, as the collector sees them now; `None` if tracing is not running or it does not answer in a second.
pub fn stats() -> Option<Stats> {
    running()?.collector.stats(Instant::now() + Duration::from_secs(1))
}

/// The counters when tracing was stopped; `None` while it runs.
#[cfg(feature = "metrics")]
pub(crate) fn last_stats() -> Option<Stats> {
    started()?.running.as_ref()?.last.get().cloned()
}

/// How many spans may wait for each exporter; `None` if only their bytes are bounded.
#[cfg(feature = "metrics")]
pub(crate) fn queue_capacity() -> Option<usize> {
    started()?.settings.batching.max_queue_size
}

/// How many requests are open, by name.
#[cfg(feature = "metrics")]
pub(crate) fn open_requests() -> Vec<(&'static str, u64)> {
    running().map(|running| crate::collect::open_requests(running.pool)).unwrap_or_default()
}

/// Sets the level of later requests and of spans without one: 0 stops recording at once, though open spans still end.
/// A request that has begun keeps its level. A greater level than 3 acts as 3.
pub fn set_level(level: u8) {
    if running().is_some() {
        level::set_process(level);
        if level > 0 {
            // Requests that began before a pause keep their level, which may be a greater one.
            level::settle(|| live::survey().0);
        }
    }
}

/// The level now; 0 if tracing is off.
pub fn level() -> u8 {
    level::of_process()
}

/// The environment by which a child process joins this run: `Command::new(..).envs(stagetrace::child_env())`. Empty if
/// tracing was not started.
pub fn child_env() -> Vec<(&'static str, OsString)> {
    match started() {
        Some(Started { settings, running: Some(running) }) => {
            settings.child_env(&running.place.run_id, level())
        }
        _ => Vec::new(),
    }
}

/// The run's directory; `None` if tracing is off or it could not be made.
fn run_dir() -> Option<&'static Path> {
    started()?.running.as_ref()?.place.dir.as_deref()
}
