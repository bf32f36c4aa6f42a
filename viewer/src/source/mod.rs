//! Where spans come from: files and recordings, as they grow.

use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};

mod blocks;
mod cursor;
mod files;
mod follow;
mod jaeger;
mod line;
mod live;
mod parse;
mod recording;
mod report;
mod scan;

use follow::{FileId, Follower, file_id};
use parse::Reader;
use recording::Recorded;
pub use recording::{DeclaredStage, RecordingReport};
pub use report::{FileReport, SourceReport};

use crate::store::{Store, TraceNumber};

/// Files and recordings that are read into a store, again and again.
///
/// Each [`poll`](Sources::poll) reads what was appended since the last one, and no more: from files
/// what follows the last whole line, from recordings what they have open. New files in a run's
/// directory are found, a file that was renamed is known by its number, and one that was cut short or
/// written anew is read from its beginning.
#[derive(Debug, Default)]
pub struct Sources {
    roots: Vec<PathBuf>,
    followers: Vec<Follower>,
    /// Places in `followers`.
    known: HashMap<FileId, usize>,
    recordings: Vec<Recorded>,
    known_recordings: HashSet<PathBuf>,
    reader: Reader,
}

/// Why a path cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing to be read.
    #[error("cannot read {}: {error}; name a run's directory, a .jsonl, a .json or a .recording", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A directory that holds runs.
    #[error("{} holds {} runs; name one of them, for example {}", path.display(), runs.len(), newest(runs))]
    Runs {
        /// The path.
        path: PathBuf,
        /// The runs in it, by name.
        runs: Vec<PathBuf>,
    },
    /// A directory without anything to read.
    #[error("{} holds neither .jsonl files nor recordings; name the directory of a run", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
}

impl Sources {
    /// Sources of these paths: directories of runs, or single files with what was rotated away from
    /// them. Nothing is read yet.
    ///
    /// # Errors
    /// If a path stands for nothing that could be read.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, OpenError> {
        let mut sources = Self::default();
        for path in paths {
            let path = path.as_ref();
            let found = files::find(path)
                .map_err(|error| OpenError::Io { path: path.to_owned(), error })?;
            if !found.runs.is_empty() {
                return Err(OpenError::Runs { path: path.to_owned(), runs: found.runs });
            }
            if found.texts.is_empty() && found.recordings.is_empty() {
                return Err(OpenError::Empty { path: path.to_owned() });
            }
            for file in &found.texts {
                sources
                    .add_text(file)
                    .map_err(|error| OpenError::Io { path: file.clone(), error })?;
            }
            sources.add_recordings(found.recordings);
            sources.roots.push(path.to_owned());
        }
        Ok(sources)
    }

    /// Reads what is new into the store.
    pub fn poll(&mut self, store: &mut Store) {
        self.look_for_files();
        // A span that has ended since is in a file that is read afterwards.
        for recording in &mut self.recordings {
            recording.poll(&mut self.reader, store);
        }
        for (number, follower) in self.followers.iter_mut().enumerate() {
            self.reader.file = number as u32;
            follower.poll(&mut self.reader, store);
        }
    }

    /// Reads the details of a trace again that made room for others. What a store gives of a span whose
    /// details are not there has no attributes, events and links.
    pub fn restore(&mut self, store: &mut Store, trace: TraceNumber) {
        for (chunk, place) in store.missing(trace) {
            let Some(follower) = self.followers.get_mut(place.file as usize) else { continue };
            // What cannot be read now may be read the next time.
            if let Ok(batch) = follower.again(place, &mut self.reader, store) {
                store.put_back(chunk, batch);
            }
        }
    }

    /// What each source says of itself, as it was read last.
    pub fn report(&self) -> SourceReport {
        SourceReport {
            files: self.followers.iter().map(|file| file.report().clone()).collect(),
            recordings: self.recordings.iter().map(|one| one.report().clone()).collect(),
        }
    }

    fn look_for_files(&mut self) {
        for root in std::mem::take(&mut self.roots) {
            // What is gone may come back; what is open is read on.
            if let Ok(found) = files::find(&root) {
                for file in found.texts {
                    let _ = self.add_text(&file);
                }
                self.add_recordings(found.recordings);
            }
            self.roots.push(root);
        }
    }

    fn add_text(&mut self, path: &Path) -> std::io::Result<()> {
        let id = file_id(path, &std::fs::metadata(path)?);
        if let Some(&at) = self.known.get(&id) {
            if self.followers[at].path() != path {
                self.followers[at].rename(path);
            }
            return Ok(());
        }
        let (id, follower) = Follower::open(path)?;
        self.known.insert(id, self.followers.len());
        self.followers.push(follower);
        Ok(())
    }

    fn add_recordings(&mut self, paths: Vec<PathBuf>) {
        for path in paths {
            if self.known_recordings.insert(path.clone()) {
                self.recordings.push(Recorded::new(&path));
            }
        }
    }
}

/// The last by name, as run ids begin with the time.
fn newest(runs: &[PathBuf]) -> String {
    runs.last().map_or_else(String::new, |run| run.display().to_string())
}
