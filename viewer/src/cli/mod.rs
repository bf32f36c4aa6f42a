//! The command line.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};

use stagetrace_wire::id::TraceId;

use crate::query::{ExportError, printable};
use crate::rules::{Samples, StuckRule};
use crate::source::{FileReport, OpenError, SourceReport, Sources};
use crate::store::Store;

mod diff;
mod export;
mod progress;
mod recover;
mod serve;
mod summary;
mod table;
mod tail;
mod tree;

/// Says which sample is stuck in which stage.
#[derive(Debug, Parser)]
#[command(name = "stagetrace-viewer", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the pages in a browser, while the sources grow.
    Serve(serve::Arguments),
    /// Sums up samples, stages, and what is open, stuck, lost or failed.
    Summary(summary::Arguments),
    /// Prints one trace as an indented tree.
    Tree(tree::Arguments),
    /// Writes spans in the form of another tool.
    Export(export::Arguments),
    /// Compares two runs, stage by stage.
    Diff(diff::Arguments),
    /// Tells what happens to samples, while it happens.
    Tail(tail::Arguments),
    /// Writes what dead processes left in their recordings to `<name>.recovered.jsonl`.
    Recover(recover::Arguments),
}

/// What is read, and when it is asked.
#[derive(Args, Debug)]
struct Input {
    /// Directories of runs, or single files: OTLP/JSON, traces.jsonl, live.jsonl, Jaeger's JSON,
    /// recordings.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Takes this instant for now, in nanoseconds since 1970.
    #[arg(long, value_name = "UNIX_NANO")]
    now: Option<u64>,
    /// Keeps no more than about these MiB of spans; their details are read again when needed.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    memory_limit: usize,
}

/// When an open span counts as stuck.
#[derive(Args, Debug)]
struct Stuck {
    /// An open span is stuck beyond this multiple of its stage's median…
    #[arg(long, value_name = "TIMES", default_value_t = StuckRule::default().factor)]
    stuck_factor: f64,
    /// … and beyond these seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = StuckRule::default().floor_ns as f64 / 1e9)]
    stuck_floor: f64,
}

/// Everything that was read.
struct Loaded {
    sources: Sources,
    store: Store,
    samples: Samples,
    report: SourceReport,
    now: u64,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Step(#[from] crate::query::UnknownStep),
    #[error("`{0}` is no trace id: give its 32 hex digits")]
    TraceId(String),
    #[error(
        "there is no trace {0} in what was read; `summary --json` names those that are open or stuck"
    )]
    UnknownTrace(String),
    #[error("cannot read {name}: {error}")]
    Read { name: String, error: String },
    #[error(
        "{0} is no trace file: it holds neither OTLP, nor lines of XTuner, nor an answer of Jaeger"
    )]
    Foreign(String),
    #[error("nothing to show: name a run's directory or a file, or a source by an option")]
    NoSource,
    #[error(transparent)]
    Receive(#[from] crate::source::ReceiveError),
    #[error(transparent)]
    Jaeger(#[from] crate::source::JaegerError),
    #[error(transparent)]
    Serve(#[from] crate::serve::ServeError),
    #[error("the system gives no random numbers for a token: {0}")]
    Token(getrandom::Error),
    #[error("cannot start the thread that reads: {0}")]
    Thread(io::Error),
    #[error(
        "Perfetto's form is binary and would upset the terminal; name a file with `-o`, or pipe the output"
    )]
    Terminal,
    #[error("cannot write {}: {error}", path.display())]
    Output { path: PathBuf, error: io::Error },
    #[error("{0} recordings were not recovered; all that they held is still there")]
    NotRecovered(usize),
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Step(error) => Self::Step(error),
            ExportError::Write(error) => Self::Write(error),
        }
    }
}

/// Runs the command that the program's arguments name.
pub fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Summary(arguments) => summary::run(&arguments),
        Command::Tree(arguments) => tree::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Tail(arguments) => tail::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough.
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("stagetrace-viewer: {}", printable(&failure.to_string()));
            ExitCode::FAILURE
        }
    }
}

impl Input {
    /// Reads all of it.
    fn load(&self) -> Result<Loaded, Failure> {
        let mut sources = Sources::open(&self.paths)?;
        let mut store = Store::new(self.memory_limit.saturating_mul(1 << 20));
        progress::shown(&sources.progress(), || sources.poll(&mut store));
        let report = sources.report();
        check(&report)?;
        let mut samples = Samples::default();
        samples.refresh(&mut store);
        Ok(Loaded { sources, store, samples, report, now: self.now() })
    }

    fn now(&self) -> u64 {
        self.now.unwrap_or_else(now)
    }
}

impl Loaded {
    /// Says on the standard error what could not be read or kept.
    fn tell_losses(&self) {
        let files = &self.report.files;
        let torn = |file: &FileReport| file.damaged_lines + u64::from(file.torn_line.is_some());
        let counts = [
            (files.iter().map(torn).sum(), "lines could not be read"),
            (files.iter().map(|file| file.refused_spans).sum(), "spans have no valid ids"),
            (self.store.stats().refused, "spans did not fit into the memory limit"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            eprintln!("note: {count} {what}");
        }
        for (name, error) in self.report.unread() {
            eprintln!("note: cannot read {}", printable(&format!("{name}: {error}")));
        }
    }
}

impl Stuck {
    fn rule(&self) -> StuckRule {
        StuckRule {
            factor: self.stuck_factor,
            floor_ns: (self.stuck_floor * 1e9) as u64,
            ..StuckRule::default()
        }
    }
}

/// If nothing could be read, that is an error rather than an empty answer. A recording that is gone, as
/// after a restart of the machine, says nothing against the files beside it.
fn check(report: &SourceReport) -> Result<(), Failure> {
    let is_readable = |error: &Option<String>| error.is_none();
    let readable = report.files.iter().filter(|file| is_readable(&file.error)).count()
        + report.recordings.iter().filter(|one| is_readable(&one.error)).count();
    if let (0, Some((name, error))) = (readable, report.unread().next()) {
        return Err(Failure::Read { name: name.to_owned(), error: error.to_owned() });
    }
    let is_foreign = |file: &FileReport| file.bytes > 0 && file.known_lines == 0;
    match &report.files[..] {
        [only] if is_foreign(only) && report.recordings.is_empty() => {
            Err(Failure::Foreign(only.name.clone()))
        }
        _ => Ok(()),
    }
}

/// The id of a trace: 32 hex digits, or 16 as Jaeger prints short ones.
fn trace_id(text: &str) -> Result<TraceId, Failure> {
    let is_id = matches!(text.len(), 16 | 32);
    let id = TraceId::from_hex(format!("{text:0>32}")).ok().filter(|_| is_id);
    id.ok_or_else(|| Failure::TraceId(text.to_owned()))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos() as u64)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
