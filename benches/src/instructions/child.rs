//! A case in a process of its own, since a process has one recorder, and callgrind counts processes.

use super::cases::{CASES, Case, Setup};
use super::counted::{Counted, PIECE};
use crate::peers::Null;
use stagetrace::{Exporter, TraceConfig, init, init_with, otel};
use std::convert::Infallible;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Spans that are counted under callgrind, which is slow, and by itself.
const UNDER_CALLGRIND: usize = 5_000;
const BY_ITSELF: usize = 50_000;

/// What tracing adds per span.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    pub(crate) instructions: f64,
    /// Allocations on the thread that records.
    pub(crate) here: f64,
    /// Allocations on all threads, until the span was written.
    pub(crate) everywhere: f64,
}

/// Counts a case.
pub(crate) fn count(case: &Case) -> Result<Count, String> {
    let count = |which| {
        let instructions = instructions(case, which)?;
        let [here, everywhere] = allocations(case.name, which)?;
        Ok::<_, String>(Count { instructions, here, everywhere })
    };
    let spans = count("spans")?;
    if case.bare.is_none() {
        return Ok(spans);
    }
    let bare = count("bare")?;
    Ok(Count {
        instructions: spans.instructions - bare.instructions,
        here: spans.here - bare.here,
        everywhere: spans.everywhere - bare.everywhere,
    })
}

/// Instructions per span.
fn instructions(case: &Case, which: &str) -> Result<f64, String> {
    let name = case.name;
    let out = std::env::temp_dir().join(format!("callgrind-{}.out", std::process::id()));
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args([
            "--tool=callgrind",
            "--fair-sched=yes",
            &format!("--toggle-collect={}", case.collected),
        ])
        .arg(format!("--callgrind-out-file={}", out.display()));
    let output = run_in(valgrind, name, which, UNDER_CALLGRIND);
    let _ = std::fs::remove_file(&out);
    let (_, errors) = output?;
    let collected = errors.lines().find_map(|line| line.split_once("Collected :"));
    match collected.and_then(|(_, number)| number.trim().parse::<f64>().ok()) {
        // On other threads the first piece is not told from the rest.
        Some(collected) if collected > 0.0 && case.bare.is_none() => {
            Ok(collected / (UNDER_CALLGRIND + PIECE) as f64)
        }
        Some(collected) if collected > 0.0 => Ok(collected / UNDER_CALLGRIND as f64),
        _ => Err(format!("{name}: callgrind collected nothing:\n{errors}")),
    }
}

/// Allocations per span, on the thread that records and in all.
fn allocations(name: &str, which: &str) -> Result<[f64; 2], String> {
    let (printed, _) = run_in(Command::new("env"), name, which, BY_ITSELF)?;
    let numbers: Vec<f64> = printed.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [here, everywhere] => Ok([here, everywhere].map(|count| count / BY_ITSELF as f64)),
        _ => Err(format!("{name}: printed {printed:?} instead of two numbers")),
    }
}

/// Runs a case behind another command and gives what it printed, and said on standard error.
fn run_in(
    mut command: Command,
    name: &str,
    which: &str,
    times: usize,
) -> Result<(String, String), String> {
    let this = std::env::current_exe().map_err(|error| format!("no path of its own: {error}"))?;
    let output = command.arg(this).args(["case", name, which, &times.to_string()]).output();
    let output = output.map_err(|error| {
        format!("{:?} does not run: {error} (`apt-get install valgrind`)", command.get_program())
    })?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    if !output.status.success() {
        return Err(format!("{name}: {}:\n{errors}", output.status));
    }
    Ok((printed, errors))
}

/// Runs a case: the child's side.
pub(crate) fn run(name: &str, which: &str, times: &str) -> ExitCode {
    let case = CASES.iter().find(|case| case.name == name);
    let (Some(case), Ok(times)) = (case, times.parse()) else {
        eprintln!("no case {name:?}, or {times:?} is no number");
        return ExitCode::from(2);
    };
    let mut counted = Counted::new(times);
    if let ("bare", Some(bare)) = (which, case.bare) {
        bare(&mut counted);
    } else if let Err(problem) = record(case, &mut counted) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    assert_eq!(counted.times, times, "the case did all of its work");
    println!("{} {}", counted.allocations.here, counted.allocations.everywhere);
    ExitCode::SUCCESS
}

/// Runs it with a recorder, if it wants one, and sees to it that nothing was dropped, which would cost less.
fn record(case: &Case, counted: &mut Counted) -> Result<(), String> {
    if case.setup == Setup::Nothing {
        (case.run)(counted);
        return Ok(());
    }
    let dir = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let config = TraceConfig::new().service_name("benches").output_dir(dir.path());
    let trace = match case.setup {
        Setup::SpanData => init_with(config.jsonl(false), [otel::exporter("null", Null)]),
        Setup::Otlp => {
            let null = Exporter::otlp("null", |request: &[u8]| {
                black_box(request);
                Ok::<_, Infallible>(())
            });
            init_with(config.jsonl(false), [null])
        }
        Setup::Recorder | Setup::Nothing => init(config),
    };
    let trace = trace.map_err(|error| error.to_string())?;
    (case.run)(counted);
    let stats = trace.shutdown(Duration::from_secs(60)).map_err(|error| error.to_string())?;
    match stats.dropped_spans() {
        0 => Ok(()),
        dropped => Err(format!("{dropped} spans were dropped, so the rest says nothing")),
    }
}
