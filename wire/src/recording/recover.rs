//! Recovering what a dead process had not written yet: from its recording, and the spool beside it, to JSON lines.
//!
//! Nothing that exists is changed but, if asked, removed; each step can be repeated, and an
//! interruption between any two of them loses nothing and doubles nothing for readers, to whom a
//! span is its trace and its id.

use super::read::{self, Damage, ReadError, RecordedSpan, Recording, Snapshot, State};
use crate::id::{SpanId, TraceId};
use crate::otlp::json::{LineReader, ReadOptions, write_spans};
use crate::span::{Span, Value};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The keys of attributes that only recovered spans have.
pub mod key {
    /// True on a span that was open when its process died. Its end is the last sign of life.
    pub const OPEN: &str = "stagetrace.open";
    /// True on a span whose times are only estimated.
    pub const UNCERTAIN: &str = "stagetrace.time.uncertain";
    /// How many late attributes, events, links and the like of the span are gone.
    pub const MISSING_DETAILS: &str = "stagetrace.missing_details";
}

/// Whether the recording and its spool go when all that they held is in the run's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remove {
    /// It goes, and the link to it.
    Yes,
    /// It stays.
    No,
}

/// What was recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The file with all that was ever recovered from this recording; `None` if that is nothing.
    pub file: Option<PathBuf>,
    /// Ended spans that were written to it now.
    pub ended: usize,
    /// Open spans that were written to it now.
    pub open: usize,
    /// Spans that were left out: marked as written, or found in a .jsonl of the process.
    pub known: usize,
    /// Spans that were left out since their traces are not sampled.
    pub unsampled: usize,
    /// Whether the recording was removed.
    pub removed: bool,
    /// What of the recording could not be read.
    pub damage: Damage,
}

/// Why a recording was not recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its writer lives, or another process recovers it.
    #[error("the recording is in use: its process lives, or another one recovers it")]
    InUse,
    /// The file system knows no locks.
    #[error("cannot tell whether the recording's process lives: {error}")]
    Unknown {
        /// What it said.
        error: io::Error,
    },
    /// It does not say what its process's files are called.
    #[error("the recording does not say what its process's files are called")]
    Stem,
    /// A .jsonl of the process cannot be read, so that what is missing in it is not known.
    #[error("cannot read {}: {error}", path.display())]
    Lines {
        /// The file, or the run's directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What is missing cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// All is recovered, but the recording cannot be removed.
    #[error("cannot remove {}: {error}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Writes what only the recording of a dead process, or its spool in the run's directory, holds to `<stem>.recovered.jsonl` in the run's
/// directory: every ended span that is neither marked nor in one of the process's .jsonl files, and
/// every open one, with [`key::OPEN`]. Spans of traces that are not sampled are left out.
///
/// # Errors
/// If the process lives, or a file cannot be read, written or removed. Then all that was there is
/// still there.
pub fn recover(
    recording: impl AsRef<Path>,
    run_dir: impl AsRef<Path>,
    remove: Remove,
) -> Result<Recovered, RecoverError> {
    let (path, run_dir) = (recording.as_ref(), run_dir.as_ref());
    if remove == Remove::Yes && is_dangling(path) {
        // An earlier recovery was interrupted between the recording and the link to it.
        remove_file(path)?;
        return Ok(Recovered { removed: true, ..Recovered::default() });
    }
    let (file, len) = read::open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(RecoverError::InUse),
        Err(TryLockError::Error(error)) => return Err(RecoverError::Unknown { error }),
    }
    let file = Locked(file);
    let mut recording = Recording::of_dead(path, &file.0, len)?;
    let mut recovered = Recovered::default();
    let stem = recording.identity().stem.clone();
    let spool = run_dir.join(format!("{stem}.spool"));
    let has_spool = is_stem(&stem) && is_plain_file(&spool);
    if recording.state() == State::Closed && !recording.has_span_blocks() && !has_spool {
        return Ok(recovered);
    }
    if !is_stem(&stem) {
        return Err(RecoverError::Stem);
    }
    if has_spool {
        recording.add_spool(&spool)?;
    }
    let target = run_dir.join(format!("{stem}.recovered.jsonl"));
    let snapshot = recording.snapshot();
    recovered.damage = snapshot.damage;
    let missing = missing(&snapshot, run_dir, &stem)?;
    recovered.open = missing.iter().filter(|span| span.is_open()).count();
    recovered.ended = missing.len() - recovered.open;
    recovered.unsampled = snapshot.spans.iter().filter(|span| !span.is_sampled()).count();
    recovered.known = snapshot.spans.len() - missing.len() - recovered.unsampled;
    if !missing.is_empty() {
        let failed = |error| RecoverError::Write { path: target.clone(), error };
        write(&recording, &snapshot, &missing, &target).map_err(failed)?;
    }
    recovered.file = target.exists().then_some(target);
    if remove == Remove::Yes {
        // Before the recording, without which nobody would find it.
        if has_spool {
            remove_file(&spool)?;
        }
        remove_recording(path, run_dir, &recording)?;
        recovered.removed = true;
    }
    // Until here nobody else recovers the same recording.
    drop(file);
    Ok(recovered)
}

/// A file whose lock we hold. Closing it is not enough: a process that is just being forked has it too.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing, which follows, is the second try.
        let _ = self.0.unlock();
    }
}

/// The spans that are only in the recording.
fn missing<'a>(
    snapshot: &'a Snapshot,
    run_dir: &Path,
    stem: &str,
) -> Result<Vec<&'a RecordedSpan>, RecoverError> {
    let unmarked = snapshot.spans.iter().filter(|span| span.is_sampled() && !span.is_exported());
    let mut missing: HashMap<_, _> = unmarked.map(|span| (span.identity(), span)).collect();
    let failed = |path: &Path, error| RecoverError::Lines { path: path.to_owned(), error };
    let files = lines_of(run_dir, stem).map_err(|error| failed(run_dir, error))?;
    for path in files {
        if !missing.is_empty() {
            let mut forget = |id| {
                missing.remove(&id);
            };
            each_span(&path, &mut forget).map_err(|error| failed(&path, error))?;
        }
    }
    let mut missing: Vec<_> = missing.into_values().collect();
    missing.sort_by_key(|span| (span.begin(), span.identity()));
    Ok(missing)
}

/// The .jsonl files of a process, what was recovered before included.
fn lines_of(run_dir: &Path, stem: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(run_dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_prefix('.'));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_lines = match rest {
            Some("jsonl" | "recovered.jsonl") => true,
            Some(rest) => rest.strip_suffix(".jsonl").is_some_and(is_number),
            None => false,
        };
        if is_lines && entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Hands over every span of a file's whole lines; a torn last one does not count.
fn each_span(path: &Path, mut with: impl FnMut((TraceId, SpanId))) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut lines = LineReader::new(ReadOptions::default());
    let mut bytes = vec![0; 64 * 1024];
    let mut spans = Vec::new();
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(read) => lines.feed(&bytes[..read], &mut spans),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        for span in spans.drain(..) {
            with(span.identity());
        }
    }
}

/// Words of records in one line, and spans in it, at most.
const LINE: (usize, usize) = (32 * 1024, 512);

/// Writes spans behind what the file already holds, by way of another file that takes its place.
fn write(
    recording: &Recording,
    snapshot: &Snapshot,
    spans: &[&RecordedSpan],
    target: &Path,
) -> io::Result<()> {
    let part = target.with_extension("jsonl.part");
    // Left by a recovery that was interrupted: we have the lock now.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&part)?;
    let written = write_to(&file, recording, snapshot, spans, target)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, target));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written?;
    sync_dir_of(target);
    Ok(())
}

fn write_to(
    file: &File,
    recording: &Recording,
    snapshot: &Snapshot,
    spans: &[&RecordedSpan],
    target: &Path,
) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    match File::open(target) {
        Ok(mut before) => drop(io::copy(&mut before, &mut out)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let identity = recording.identity();
    let mut line = Vec::new();
    let mut words = 0;
    for span in spans {
        words += span.words();
        line.push(as_recovered(span, recording, snapshot));
        if words >= LINE.0 || line.len() >= LINE.1 {
            out.write_all(&write_spans(&identity.resource, &identity.scope, &line))?;
            line.clear();
            words = 0;
        }
    }
    out.write_all(&write_spans(&identity.resource, &identity.scope, &line))?;
    out.flush()
}

/// The span as it is written: with an end, since backends take one without for one of 1970.
fn as_recovered(recorded: &RecordedSpan, recording: &Recording, snapshot: &Snapshot) -> Span {
    let mut span = recorded.to_span(recording.identity());
    let mut add = |key: &str, value| span.attributes.push((key.to_owned(), value));
    if recorded.is_open() {
        add(key::OPEN, Value::Bool(true));
        span.end_unix_nano = snapshot.at.max(span.start_unix_nano);
    }
    if recorded.is_uncertain() {
        add(key::UNCERTAIN, Value::Bool(true));
    }
    if recorded.missing_details() > 0 {
        add(key::MISSING_DETAILS, Value::I64(recorded.missing_details() as i64));
    }
    span
}

/// Removes the recording first, the link to it last.
fn remove_recording(
    path: &Path,
    run_dir: &Path,
    recording: &Recording,
) -> Result<(), RecoverError> {
    let link = run_dir.join(format!("{}.recording", recording.identity().stem));
    let real = fs::canonicalize(path)
        .map_err(|error| RecoverError::Remove { path: path.to_owned(), error })?;
    let is_link_to_it = |link: &Path| {
        fs::symlink_metadata(link).is_ok_and(|metadata| metadata.is_symlink())
            && fs::canonicalize(link).is_ok_and(|target| target == real)
    };
    let links = [path, &link].map(|link| is_link_to_it(link).then_some(link));
    remove_file(&real)?;
    for link in links.into_iter().flatten() {
        remove_file(link)?;
    }
    // The small recording that a process was writing when it was killed while it closed.
    remove_file(&link.with_extension("recording.closing"))?;
    let run = recording.identity().run_id.as_ref();
    if let (Some(parent), Some(run)) = (real.parent(), run)
        && parent.file_name().is_some_and(|name| name == run.as_str())
        && fs::canonicalize(run_dir).is_ok_and(|run_dir| run_dir != parent)
    {
        // Fails as long as anything else of the run is there.
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

fn remove_file(path: &Path) -> Result<(), RecoverError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(RecoverError::Remove { path: path.to_owned(), error })
        }
        _ => Ok(()),
    }
}

/// Makes a renamed file's new name last, where that can be done.
fn sync_dir_of(path: &Path) {
    if let Some(dir) = path.parent() {
        let _ = File::open(dir).and_then(|dir| dir.sync_all());
    }
}

/// Whether a file is there, and no link to one.
fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Whether a link points to what is no longer there.
fn is_dangling(path: &Path) -> bool {
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    let gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    is_link && fs::metadata(path).is_err_and(gone)
}

/// Whether a text can be what the names of files begin with, and lead nowhere else.
fn is_stem(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(allowed) && !text.starts_with('.')
}
