//! What the start of a process costs. Each library has a program of its own for it, since what one of them does before
//! `main` every program that links it pays for.

use super::case::{BARE, TRACING};
use super::sample::Samples;
use crate::peers::DIRECTORY;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that starts a peer and nothing else.
fn program(peer: &str) -> Option<&'static str> {
    match peer {
        BARE => Some("start-nothing"),
        "stagetrace" => Some("start-stagetrace"),
        "fastrace" => Some("start-fastrace"),
        "opentelemetry" => Some("start-opentelemetry"),
        TRACING => Some("start-tracing-opentelemetry"),
        _ => None,
    }
}

/// Builds the programs beside this one, by the same profile.
pub(super) fn build() -> Result<(), String> {
    let (directory, profile) = place()?;
    let target = directory.parent().unwrap_or(&directory);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let profile = if profile == "debug" { "dev".to_owned() } else { profile };
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--bins", "--profile", &profile, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo does not build the programs: {status}")),
        Err(error) => Err(format!("cargo does not run: {error}")),
    }
}

/// Runs a peer's program once.
pub(super) fn measure(peer: &str) -> Result<Samples, String> {
    let program = program(peer).ok_or_else(|| format!("no program starts {peer}"))?;
    let path = place()?.0.join(program);
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let output = Command::new(&path)
        .env(DIRECTORY, directory.path())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = printed.split_whitespace().flat_map(str::parse).collect();
    let [before_main, start, cpu] = figures[..] else {
        return Err(format!("{program}: printed {printed:?} instead of three numbers"));
    };
    let mut samples = Samples::default();
    samples.note("before_main_cpu_ns", before_main);
    samples.note("init_ns", start);
    samples.note("init_cpu_ns", cpu);
    Ok(samples)
}

/// The directory of this program, and its name, which is the profile's.
fn place() -> Result<(PathBuf, String), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let directory = this.parent().unwrap_or(Path::new(".")).to_owned();
    let profile = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((directory, profile))
}
