//! The command line.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};

use crate::rules::{Samples, StuckRule};
use crate::source::{OpenError, SourceReport, Sources};
use crate::store::Store;

mod serve;
mod summary;
mod table;
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
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

/// Runs the command that the program's arguments name.
pub fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Summary(arguments) => summary::run(&arguments),
        Command::Tree(arguments) => tree::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough.
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("stagetrace-viewer: {}", crate::query::printable(&failure.to_string()));
            ExitCode::FAILURE
        }
    }
}

impl Input {
    /// Reads all of it.
    fn load(&self) -> Result<Loaded, Failure> {
        let mut sources = Sources::open(&self.paths)?;
        let mut store = Store::new(self.memory_limit.saturating_mul(1 << 20));
        sources.poll(&mut store);
        let report = sources.report();
        check(&report)?;
        let mut samples = Samples::default();
        samples.refresh(&mut store);
        let now = self.now.unwrap_or_else(now);
        Ok(Loaded { sources, store, samples, report, now })
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
    let is_foreign = |file: &crate::FileReport| file.bytes > 0 && file.known_lines == 0;
    match &report.files[..] {
        [only] if is_foreign(only) && report.recordings.is_empty() => {
            Err(Failure::Foreign(only.name.clone()))
        }
        _ => Ok(()),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos() as u64)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
