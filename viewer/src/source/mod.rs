//! Where spans come from: files and recordings, as they grow, and what is sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

mod ask;
mod blocks;
mod cursor;
mod files;
mod follow;
mod inbox;
mod input;
mod jaeger;
mod line;
mod live;
mod message;
mod otlp;
mod parse;
mod progress;
mod received;
mod recording;
mod report;
mod scan;

pub use ask::{JaegerError, JaegerQuery};
use follow::{FileId, Follower, file_id};
pub use inbox::{Inbox, Refused};
pub use otlp::ReceiveError;
use parse::Reader;
pub use progress::Progress;
use received::{Feeder, Received};
use recording::Recorded;
pub use recording::{DeclaredStage, RecordingReport};
pub use report::{FileReport, InboxReport, SourceReport};

use crate::store::{Place, SpanNumber, Store, TraceNumber};

/// Files, recordings and what is sent, read into a store again and again.
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
    /// Files beside the others that could not be opened at the last look.
    unopened: BTreeMap<PathBuf, FileReport>,
    recordings: Vec<Recorded>,
    known_recordings: HashSet<PathBuf>,
    received: Vec<Received>,
    reader: Reader,
}

/// Why a path cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing to be read.
    #[error("cannot read {}: {error}; name a run's directory, a .jsonl, a .json, a .pb or a .recording", path.display())]
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
                match sources.add_text(file) {
                    Err(error) if file == path => {
                        return Err(OpenError::Io { path: file.clone(), error });
                    }
                    added => sources.note(file, added),
                }
            }
            sources.add_recordings(found.recordings);
            sources.roots.push(path.to_owned());
        }
        Ok(sources)
    }

    /// Reads what is new into the store.
    pub fn poll(&mut self, store: &mut Store) {
        self.look_for_files();
        self.reader.progress.expect(self.followers.iter().map(Follower::left).sum());
        // A span that has ended since is in a file that is read afterwards.
        for recording in &mut self.recordings {
            recording.poll(&mut self.reader, store);
        }
        for (number, follower) in self.followers.iter_mut().enumerate() {
            self.reader.file = number as u32;
            follower.poll(&mut self.reader, store);
        }
        for received in &mut self.received {
            received.poll(&mut self.reader, store);
        }
    }

    /// A way in for spans of this program. What comes through it is not in a file: its details stay in
    /// the store until that is dropped.
    pub fn inbox(&mut self, name: &str) -> Inbox {
        let inbox = Inbox::new();
        self.received.push(Received::new(name.to_owned(), inbox.clone(), Feeder::Program));
        inbox
    }

    /// Receives OTLP at these addresses, such as `127.0.0.1:4317`, until the sources are dropped. Each
    /// takes gRPC, and HTTP with protobuf and JSON, plain or packed. Returns the addresses that were
    /// bound: of port 0, with a free one; of one that is named twice, the same.
    ///
    /// Whoever can reach an address can send: there is neither encryption nor authentication. What finds
    /// no room is refused as *unavailable*, and its sender may try again after a second.
    ///
    /// # Errors
    /// If an address cannot be had. Then none of them is received at.
    pub fn receive_otlp<A: AsRef<str>>(
        &mut self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Vec<SocketAddr>, ReceiveError> {
        let mut bound = Vec::new();
        let mut named = HashMap::new();
        let mut received = Vec::new();
        for address in addresses {
            let address = address.as_ref();
            if let Some(known) = named.get(address) {
                bound.push(*known);
                continue;
            }
            let (at, one) = otlp::receive(address)?;
            named.insert(address.to_owned(), at);
            bound.push(at);
            received.push(one);
        }
        self.received.append(&mut received);
        Ok(bound)
    }

    /// Reads the details of a trace again that made room for others. What a store gives of a span whose
    /// details are not there has no attributes, events and links. Those of other traces make room, so that
    /// the store exceeds its limit by no more than this trace.
    pub fn restore(&mut self, store: &mut Store, trace: TraceNumber) {
        if store.missing(trace).is_empty() {
            return;
        }
        store.make_room();
        for (chunk, place) in store.missing(trace) {
            self.read_again(store, chunk, place);
        }
    }

    /// The same for one span, by which the store exceeds its limit by no more than a mebibyte or a line.
    pub(crate) fn restore_span(&mut self, store: &mut Store, span: SpanNumber) {
        if let Some((chunk, place)) = store.missing_of(span) {
            store.make_room();
            self.read_again(store, chunk, place);
        }
    }

    /// How far a poll is, for another thread.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.reader.progress)
    }

    /// Asks a Jaeger for its traces, again and again on a thread of its own, until the sources are
    /// dropped. That it does not answer is in the [report](Sources::report); it is asked again later.
    ///
    /// # Errors
    /// If the URL cannot be one of a Jaeger, or the system refuses the thread.
    pub fn jaeger(&mut self, query: JaegerQuery) -> Result<(), JaegerError> {
        let inbox = Inbox::new();
        let name = format!("Jaeger at {}", query.url);
        let asked = ask::start(query, inbox.clone())?;
        self.received.push(Received::new(name, inbox, Feeder::Jaeger(asked)));
        Ok(())
    }

    /// What each source says of itself, as it was read last.
    pub fn report(&self) -> SourceReport {
        let opened = self.followers.iter().map(Follower::report);
        SourceReport {
            files: opened.chain(self.unopened.values()).cloned().collect(),
            recordings: self.recordings.iter().map(|one| one.report().clone()).collect(),
            inboxes: self.received.iter().map(Received::report).collect(),
        }
    }

    fn read_again(&mut self, store: &mut Store, chunk: u32, place: Place) {
        let Some(follower) = self.followers.get_mut(place.file as usize) else { return };
        // What cannot be read now may be read the next time.
        if let Ok(batch) = follower.again(place, &mut self.reader, store) {
            store.put_back(chunk, batch);
        }
    }

    fn look_for_files(&mut self) {
        self.unopened.clear();
        for root in std::mem::take(&mut self.roots) {
            // What is gone may come back; what is open is read on.
            if let Ok(found) = files::find(&root) {
                for file in found.texts {
                    let added = self.add_text(&file);
                    self.note(&file, added);
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

    /// Keeps why a file could not be opened; one that is gone meanwhile has nothing to say.
    fn note(&mut self, path: &Path, added: std::io::Result<()>) {
        if let Err(error) = added
            && error.kind() != std::io::ErrorKind::NotFound
        {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let report = FileReport { name, error: Some(error.to_string()), ..Default::default() };
            self.unopened.insert(path.to_owned(), report);
        }
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
