//! Adopting what dead processes left: recordings of the same user that nobody writes any more.
//!
//! Done once, at start, on a thread of its own: what they held goes to `<name>.recovered.jsonl` in their run's
//! directory, and their memory is given back.

use crate::complain;
use crate::files::{self, separate_descriptors};
use crate::run;
use crate::signals;
use stagetrace_wire::recording::layout::BLOCK;
use stagetrace_wire::recording::read::{ReadError, Recording};
use stagetrace_wire::recording::recover::{RecoverError, Recovered, Remove, recover};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

#[cfg(test)]
mod tests;

/// Recordings that are recovered, at most.
const MOST: usize = 256;

/// How long a directory or a recording has been empty that nobody will use any more.
const ABANDONED: Duration = Duration::from_secs(60);

/// How long a dead process's recording waits for a process that sees its run's directory.
const FORGOTTEN: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of a mapped recording at least.
const MAPPED: u64 = (crate::chunk::STEP_BLOCKS * BLOCK) as u64;

/// What was adopted.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    /// Recordings that held something.
    pub(crate) recordings: usize,
    /// Spans that were written now, and those of them that were open.
    pub(crate) ended: usize,
    pub(crate) open: usize,
    /// What could not be recovered, and why.
    pub(crate) problems: Vec<String>,
}

/// Starts adopting in the background. `None` if there is no thread for it; then the next start will do it.
pub(crate) fn in_background(output_dir: PathBuf, sends: bool) -> Option<JoinHandle<()>> {
    let work = move || {
        signals::block();
        // It opens many files, at a time when daemons close all that they find open.
        separate_descriptors();
        adopt_below(&output_dir, sends);
    };
    std::thread::Builder::new().name("stagetrace-adopt".into()).spawn(work).ok()
}

/// Adopts what dead processes of this user left: all that lies in shared memory, and what is below this directory. With
/// `sends`, who reads of it may think that it was sent, too.
pub(crate) fn adopt_below(output_dir: &Path, sends: bool) -> Adopted {
    let unsent = if sends { "; no endpoint gets what is only there (docs/outbox.md)" } else { "" };
    let mut adopted = Adopted::default();
    let mut recovered = 0;
    for candidate in candidates(output_dir) {
        let path = &candidate.path;
        match adopt(&candidate) {
            Ok(Some(Recovered { ended, open, file, .. })) => {
                recovered += 1;
                let Some(file) = file.filter(|_| ended + open > 0) else { continue };
                adopted.recordings += 1;
                adopted.ended += ended;
                adopted.open += open;
                complain::info(format_args!(
                    "recovered {ended} spans and {open} open ones of a dead process into {}{unsent}",
                    file.display()
                ));
            }
            // Living processes, and those that closed their recordings, are nothing to speak of.
            Ok(None) | Err(RecoverError::InUse) => {}
            // Another process was faster.
            Err(_) if !path.exists() => {}
            Err(error) => {
                let problem = format!("cannot recover {}: {error}", path.display());
                complain::warn("adopt", &problem);
                adopted.problems.push(problem);
            }
        }
        if recovered == MOST {
            break;
        }
    }
    adopted
}

/// `None` if its process lives, or its run's directory is not here.
fn adopt(Candidate { path, run_dir }: &Candidate) -> Result<Option<Recovered>, RecoverError> {
    let head = match head(path) {
        Err(ReadError::Unfinished) => {
            // Its process died before it had written anything.
            if is_unlocked(path) {
                let _ = fs::remove_file(path);
            }
            return Ok(None);
        }
        head => head?,
    };
    if !is_unlocked(path) {
        return Ok(None);
    }
    let run_dir = run_dir.clone().or_else(|| head.identity().run_dir.clone());
    // Without its directory the run is of another file system, a container's perhaps, or was thrown away.
    let Some(run_dir) = run_dir.filter(|dir| dir.is_dir()) else {
        if is_forgotten(path, &head) {
            let what = "removes the recording of a dead process whose run is gone for a day";
            complain::info(format_args!("{what}: {}", path.display()));
            fs::remove_file(path)
                .map_err(|error| RecoverError::Remove { path: path.clone(), error })?;
        }
        return Ok(None);
    };
    recover(path, &run_dir, Remove::Yes).map(Some)
}

/// The beginning of a recording, which says whose it is. The rest is long, and mostly of others.
fn head(path: &Path) -> Result<Recording, ReadError> {
    let mut bytes = Vec::with_capacity(BLOCK);
    File::open(path)
        .and_then(|file| file.take(BLOCK as u64).read_to_end(&mut bytes))
        .map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
    Recording::from_bytes(&bytes)
}

/// Whether a dead process was last seen so long ago that whoever has its run's directory would have come. The file's time
/// alone does not say it: what is written through a mapping does not change it.
fn is_forgotten(path: &Path, head: &Recording) -> bool {
    let seen = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(head.snapshot().at));
    let changed = fs::metadata(path).and_then(|file| file.modified()).ok();
    let is_long_ago = |at: SystemTime| at.elapsed().is_ok_and(|age| age > FORGOTTEN);
    seen.is_some_and(is_long_ago) && changed.is_some_and(is_long_ago)
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
        let is_our_file = |file: &Metadata| file.is_file() && files::is_ours(file);
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
