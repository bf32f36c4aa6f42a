//! `recover PATH…`: what dead processes left in their recordings goes to `<name>.recovered.jsonl`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stagetrace_wire::recording::read::{Damage, ReadError, Recording};
use stagetrace_wire::recording::recover::{RecoverError, Recovered, Remove, recover};

use super::{Failure, print};
use crate::query::printable;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Directories of runs, or single recordings.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Removes each recording, and the spool beside it, once all that it held is in the run's directory.
    /// Without it they stay, and recovering again adds nothing.
    #[arg(long)]
    remove: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let remove = if arguments.remove { Remove::Yes } else { Remove::No };
    let (mut text, mut failed) = (String::new(), 0);
    for path in &arguments.paths {
        let found = recordings(path).map_err(|error| Failure::Read {
            name: path.display().to_string(),
            error: error.to_string(),
        })?;
        if found.is_empty() {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{}: no recordings", shown(path));
        }
        for recording in found {
            let told = match recover(&recording, run_dir(&recording), remove) {
                Ok(recovered) => tell(&recovered),
                Err(RecoverError::InUse) => {
                    "left alone: its process lives, or another one recovers it".to_owned()
                }
                Err(RecoverError::Read(ReadError::Unfinished)) => {
                    "empty: it is still being made, or its process died before it recorded anything"
                        .to_owned()
                }
                Err(error) => {
                    failed += 1;
                    format!("not recovered: {error}")
                }
            };
            let _ = writeln!(text, "{}: {}", shown(&recording), printable(&told));
        }
    }
    print(&text)?;
    match failed {
        0 => Ok(()),
        _ => Err(Failure::NotRecovered(failed)),
    }
}

fn tell(recovered: &Recovered) -> String {
    let Recovered { file, ended, open, known, unsampled, removed, damage } = recovered;
    let mut parts = vec![match (ended + open, file) {
        (0, _) => "nothing is missing elsewhere".to_owned(),
        (_, Some(file)) => format!("{ended} ended and {open} open spans to {}", file.display()),
        (_, None) => format!("{ended} ended and {open} open spans"),
    }];
    let counts = [(known, "were there already"), (unsampled, "are of traces that are not sampled")];
    let counts = counts.into_iter().filter(|(count, _)| **count > 0);
    parts.extend(counts.map(|(count, what)| format!("{count} {what}")));
    let Damage { heads, chunks, records, entries, busy } = *damage;
    let damaged = heads + chunks + records + entries + busy;
    if damaged > 0 {
        parts.push(format!("{damaged} parts of the recording could not be read"));
    }
    if *removed {
        parts.push("recording removed".to_owned());
    }
    parts.join("; ")
}

/// The recordings that a path stands for, by name.
fn recordings(path: &Path) -> io::Result<Vec<PathBuf>> {
    // A link that leads nowhere is what an interrupted removal leaves.
    let metadata = fs::metadata(path).or_else(|_| fs::symlink_metadata(path))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("recording")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The directory of a recording's run: where it lies, or where it says if it lies in shared memory, to
/// which a link there leads.
fn run_dir(recording: &Path) -> PathBuf {
    let here = match recording.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let told = Recording::open(recording).ok().and_then(|open| {
        let identity = open.identity();
        let directory = identity.run_dir.clone()?;
        let link = directory.join(format!("{}.recording", identity.stem));
        let is_here = fs::canonicalize(link).ok()? == fs::canonicalize(recording).ok()?;
        is_here.then_some(directory)
    });
    told.unwrap_or(here)
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}
