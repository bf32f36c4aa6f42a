//! One case of one peer, in a process of its own, since a process has one recorder: the child's side, and the parent's.

use super::case::{BARE, Case, LEAN, TRACING};
use super::sample::Samples;
use super::{Size, bursts, tail};
use crate::peers::{
    Bare, DIRECTORY, Fastrace, OpenTelemetry, Peer, Setup, Stagetrace, TracingOpenTelemetry,
    TracingOpenTelemetryLean,
};
use std::process::{Command, ExitCode, Stdio};

/// The child's side: measures and prints one line.
pub(crate) fn run(case: &str, peer: &str, size: &str) -> ExitCode {
    let (Some(found), Some(size)) = (Case::named(case), Size::named(size)) else {
        eprintln!("no case {case:?}, or no size {size:?}");
        return ExitCode::from(2);
    };
    let samples = match peer {
        BARE => measure::<Bare>(found, size),
        "stagetrace" => measure::<Stagetrace>(found, size),
        "fastrace" => measure::<Fastrace>(found, size),
        "opentelemetry" => measure::<OpenTelemetry>(found, size),
        TRACING => measure::<TracingOpenTelemetry>(found, size),
        LEAN => measure::<TracingOpenTelemetryLean>(found, size),
        _ => {
            eprintln!("no peer {peer:?}");
            return ExitCode::from(2);
        }
    };
    println!("{}", samples.to_json());
    ExitCode::SUCCESS
}

fn measure<P: Peer>(case: Case, size: Size) -> Samples {
    P::start(setup(case));
    let samples = match case {
        Case::Tail => tail::measure::<P>(size),
        Case::Flood | Case::FloodOtlp => tail::flood::<P>(size),
        _ => bursts::measure::<P>(case, size),
    };
    P::stop();
    samples
}

fn setup(case: Case) -> Setup {
    match case {
        Case::Off => Setup::Off,
        Case::NotSampled => Setup::NotSampled,
        Case::AboveLevel => Setup::AboveLevel,
        Case::SpanData { .. } => Setup::SpanData,
        Case::Otlp { .. } => Setup::Otlp,
        Case::Flood => Setup::Defaults,
        Case::FloodOtlp => Setup::DefaultsOtlp,
        _ => Setup::Plain,
    }
}

/// The parent's side: starts a child and reads its line.
pub(super) fn start(case: Case, peer: &str, size: Size) -> Result<Samples, String> {
    let failed = |problem: String| format!("{case} of {peer}: {problem}");
    let this = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let directory = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(this)
        .args(["one", &case.to_string(), peer, size.name])
        .env(DIRECTORY, directory.path())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
    line.as_ref().and_then(Samples::from_json).ok_or_else(|| failed(format!("printed {printed}")))
}
