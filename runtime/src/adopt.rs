//! Adopting what dead processes left: recordings of the same user that nobody writes any more.
//!
//! Done once, at start, on a thread of its own: what they held goes to `<name>.recovered.jsonl` in their run's
//! directory, and their memory is given back.

use crate::complain;
use crate::run;
use stagetrace_wire::recording::layout::BLOCK;
use stagetrace_wire::recording::read::{ReadError, Recording};
use stagetrace_wire::recording::recover::{RecoverError, Recovered, Remove, recover};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

/// Recordings that are looked at, at most.
const MOST: usize = 256;

/// How long a directory has been empty that nobody will use any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// Bytes of a mapped recording at least.
const MAPPED: u64 = (crate::chunk::STEP_BLOCKS * BLOCK) as u64;

/// Starts adopting in the background. `None` if there is no thread for it; then the next start will do it.
pub(crate) fn in_background(output_dir: PathBuf) -> Option<JoinHandle<()>> {
    let adopt = move || {
        for path in candidates(&output_dir).into_iter().take(MOST) {
            // Living processes, and those that closed their recordings, are nothing to speak of.
            match adopt(&path) {
                Ok(Some(Recovered { ended, open, file: Some(file), .. })) if ended + open > 0 => {
                    complain::info(format_args!(
                        "recovered {ended} spans and {open} open ones of a dead process into {}",
                        file.display()
                    ));
                }
                Ok(_) | Err(RecoverError::InUse) => {}
                // Another process was faster.
                Err(_) if !path.exists() => {}
                Err(error) => complain::warn(
                    "adopt",
                    format_args!("cannot recover {}: {error}", path.display()),
                ),
            }
        }
    };
    std::thread::Builder::new().name("stagetrace-adopt".into()).spawn(adopt).ok()
}

/// `None` if its process lives.
fn adopt(path: &Path) -> Result<Option<Recovered>, RecoverError> {
    let recording = match Recording::open(path) {
        Err(ReadError::Unfinished) => {
            // Its process died before it had written anything.
            let is_dead = |file: File| file.try_lock().is_ok_and(|()| file.unlock().is_ok());
            if File::open(path).is_ok_and(is_dead) {
                let _ = fs::remove_file(path);
            }
            return Ok(None);
        }
        recording => recording?,
    };
    let run_dir = recording.identity().run_dir.clone();
    let (Some(false), Some(run_dir)) = (recording.is_alive(), run_dir) else { return Ok(None) };
    drop(recording);
    // If it cannot be made, what follows says so.
    let _ = fs::create_dir_all(&run_dir);
    recover(path, &run_dir, Remove::Yes).map(Some)
}

/// Recordings in shared memory, and mapped ones below the output directory.
fn candidates(output_dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in run::shared_memory_dir().iter().map(PathBuf::as_path).chain([output_dir]) {
        // What cannot be listed holds nothing that we could adopt.
        let _ = recordings_below(dir, &mut found);
    }
    found
}

fn recordings_below(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for run in fs::read_dir(dir)? {
        let run = run?;
        if !run.file_type()?.is_dir() {
            continue;
        }
        let mut is_empty = true;
        for file in fs::read_dir(run.path())?.flatten() {
            is_empty = false;
            let path = file.path();
            // A closed recording is small.
            let is_mapped =
                file.metadata().is_ok_and(|file| file.is_file() && file.len() >= MAPPED);
            if is_mapped && path.extension().is_some_and(|extension| extension == "recording") {
                found.push(path);
            }
        }
        let age =
            run.metadata().and_then(|run| run.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_empty && age.is_some_and(|age| age > ABANDONED) {
            // Of a process that died between its directory and its recording. Fails if it is not empty after all.
            let _ = fs::remove_dir(run.path());
        }
    }
    Ok(())
}
