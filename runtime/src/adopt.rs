//! Adopting what dead processes left: recordings of the same user that nobody writes any more.
//!
//! Done once, at start, on a thread of its own: what they held goes to `<name>.recovered.jsonl` in their run's
//! directory, and their memory is given back.

use crate::complain;
use crate::files::separate_descriptors;
use crate::run;
use crate::signals;
use stagetrace_wire::recording::layout::BLOCK;
use stagetrace_wire::recording::read::{ReadError, Recording};
use stagetrace_wire::recording::recover::{RecoverError, Recovered, Remove, recover};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

/// Recordings that are looked at, at most.
const MOST: usize = 256;

/// How long a directory or a recording has been empty that nobody will use any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// Bytes of a mapped recording at least.
const MAPPED: u64 = (crate::chunk::STEP_BLOCKS * BLOCK) as u64;

/// Starts adopting in the background. `None` if there is no thread for it; then the next start will do it.
pub(crate) fn in_background(output_dir: PathBuf) -> Option<JoinHandle<()>> {
    let adopt = move || {
        signals::block();
        // It opens many files, at a time when daemons close all that they find open.
        separate_descriptors();
        for candidate in candidates(&output_dir).into_iter().take(MOST) {
            let path = &candidate.path;
            // Living processes, and those that closed their recordings, are nothing to speak of.
            match adopt(&candidate) {
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
fn adopt(Candidate { path, run_dir }: &Candidate) -> Result<Option<Recovered>, RecoverError> {
    let recording = match Recording::open(path) {
        Err(ReadError::Unfinished) => {
            // Its process died before it had written anything.
            if is_unlocked(path) {
                let _ = fs::remove_file(path);
            }
            return Ok(None);
        }
        recording => recording?,
    };
    let run_dir = run_dir.clone().or_else(|| recording.identity().run_dir.clone());
    // Without its directory the run is of another file system, a container's perhaps, or was thrown away.
    let Some(run_dir) = run_dir.filter(|dir| dir.is_dir()) else { return Ok(None) };
    if recording.is_alive() != Some(false) {
        return Ok(None);
    }
    drop(recording);
    recover(path, &run_dir, Remove::Yes).map(Some)
}

/// A recording that may be that of a dead process.
struct Candidate {
    path: PathBuf,
    /// Where its run is; what the recording itself says if it lies elsewhere.
    run_dir: Option<PathBuf>,
}

/// Recordings in shared memory, where nobody but this user can put any, and mapped ones below the output directory.
fn candidates(output_dir: &Path) -> Vec<Candidate> {
    let mut found = Vec::new();
    // What cannot be listed holds nothing that we could adopt.
    if let Some(own) = run::shared_memory_dir().filter(|dir| run::is_ours_alone(dir)) {
        let _ = runs_below(&own, &mut |run| {
            if run::is_ours_alone(run) {
                let before = found.len();
                let add = |path| found.push(Candidate { path, run_dir: None });
                let is_empty = recordings_in(run, add)? == 0;
                if is_empty && before == found.len() && is_abandoned(run) {
                    // Of a process that died between its directory and its recording. Fails if it is not empty.
                    let _ = fs::remove_dir(run);
                }
            }
            Ok(())
        });
    }
    let _ = runs_below(output_dir, &mut |run| {
        let add = |path| found.push(Candidate { path, run_dir: Some(run.to_owned()) });
        recordings_in(run, add).map(drop)
    });
    found
}

fn runs_below(dir: &Path, with: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for run in fs::read_dir(dir)? {
        let run = run?;
        if run.file_type()?.is_dir() {
            // One that cannot be listed keeps nobody from the others.
            let _ = with(&run.path());
        }
    }
    Ok(())
}

/// Hands over the mapped recordings of this user; gives how many files there are of any kind.
fn recordings_in(run: &Path, mut found: impl FnMut(PathBuf)) -> io::Result<usize> {
    let mut files = 0;
    for file in fs::read_dir(run)?.flatten() {
        files += 1;
        let path = file.path();
        let is_recording = path.extension().is_some_and(|extension| extension == "recording");
        // A link leads to one that is found where it lies.
        let is_our_file = |file: &Metadata| file.is_file() && run::is_ours(file);
        let Some(file) = file.metadata().ok().filter(|file| is_recording && is_our_file(file))
        else {
            continue;
        };
        // A closed recording is small.
        if file.len() >= MAPPED {
            found(path);
        } else if file.len() == 0 && is_old(&file) && is_unlocked(&path) {
            // Its process died between making it and giving it its length.
            files -= usize::from(fs::remove_file(&path).is_ok());
        }
    }
    Ok(files)
}

fn is_abandoned(run: &Path) -> bool {
    fs::metadata(run).is_ok_and(|run| is_old(&run))
}

/// Whether nobody has changed it for so long that its maker would have.
fn is_old(file: &Metadata) -> bool {
    let age = file.modified().ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED)
}

/// Whether nobody holds the file's lock: then whoever would write it is dead.
fn is_unlocked(path: &Path) -> bool {
    let is_free = |file: File| file.try_lock().is_ok_and(|()| file.unlock().is_ok());
    File::open(path).is_ok_and(is_free)
}
