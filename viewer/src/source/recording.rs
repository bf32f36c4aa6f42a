//! Recordings: what is open in a process, and what has ended and is not in its `.jsonl` yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hashbrown::HashSet;
use stagetrace_wire::recording::read::{ReadError, Recording, State};

use super::parse::Reader;
use crate::store::{SpanNumber, Standing, Store};

/// A recording that is looked at again and again.
#[derive(Debug)]
pub(super) struct Recorded {
    path: PathBuf,
    /// The spans that it had open when it was looked at last.
    open: HashSet<SpanNumber>,
    /// What the file of a dead process looked like when it was read, since it does not change.
    dead: Option<(u64, SystemTime)>,
    report: RecordingReport,
}

/// What a recording says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingReport {
    /// The file's name, without its directory.
    pub name: String,
    /// Whether its process lives; `None` if that cannot be known.
    pub is_alive: Option<bool>,
    /// Whether its process closed it.
    pub is_closed: bool,
    /// What its process is called among those of all runs, as spans of it say in `stagetrace.process.id`.
    pub process_id: String,
    /// Its service.
    pub service: String,
    /// Its run, if it says so.
    pub run_id: Option<String>,
    /// The number that the system gave it.
    pub pid: u32,
    /// Spans that it has open.
    pub open_spans: usize,
    /// Spans that were lost, since there was no room for them.
    pub lost_spans: u64,
    /// Events, links and late attributes that were lost.
    pub lost_details: u64,
    /// Stages that the program declares, whether they were ever executed or not.
    pub stages: Vec<DeclaredStage>,
    /// What the last attempt to read it said.
    pub error: Option<String>,
}

/// A stage as its program declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredStage {
    /// The set that it is declared in.
    pub set: String,
    /// What its spans are called.
    pub name: String,
    /// How detailed it is: 1 important, 2 normal, 3 detail.
    pub level: u8,
    /// The stage that it is declared to lie within.
    pub within: Option<String>,
}

impl Recorded {
    pub(super) fn new(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self {
            path: path.to_owned(),
            open: HashSet::new(),
            dead: None,
            report: RecordingReport { name, ..RecordingReport::default() },
        }
    }

    pub(super) fn report(&self) -> &RecordingReport {
        &self.report
    }

    /// Looks at it.
    pub(super) fn poll(&mut self, reader: &mut Reader, store: &mut Store) {
        let seen = fs::metadata(&self.path).and_then(|meta| Ok((meta.len(), meta.modified()?)));
        let seen = seen.ok();
        if self.dead.is_some() && self.dead == seen {
            return;
        }
        self.report.error = None;
        match Recording::open(&self.path) {
            Ok(mut recording) => {
                self.report.error = self.add_spool(&mut recording).err();
                self.read(&recording, reader, store);
                let is_dead = recording.is_alive() == Some(false);
                self.dead = seen.filter(|_| is_dead);
            }
            // Its process is just making it.
            Err(ReadError::Unfinished | ReadError::TooShort { .. }) => {}
            Err(error) => {
                self.report.error = Some(error.to_string());
                self.report.open_spans = 0;
                // Adopted by another process, which writes what was open into a `.recovered.jsonl`.
                for span in self.open.drain() {
                    store.lose(span);
                }
            }
        }
    }

    /// Reads what the process put into a spool beside its recording.
    fn add_spool(&self, recording: &mut Recording) -> Result<(), String> {
        let stem = &recording.identity().stem;
        // What a file says of itself must not lead elsewhere.
        let is_name = !stem.is_empty() && Path::new(stem).file_name() == Some(stem.as_ref());
        let spool = self.path.with_file_name(format!("{stem}.spool"));
        match is_name && fs::metadata(&spool).is_ok_and(|spool| spool.is_file()) {
            true => recording.add_spool(&spool).map_err(|error| error.to_string()),
            false => Ok(()),
        }
    }

    fn read(&mut self, recording: &Recording, reader: &mut Reader, store: &mut Store) {
        let snapshot = recording.snapshot();
        let is_dead = recording.is_alive() == Some(false) && recording.state() == State::Running;
        let mut encoder = reader.encoder(store);
        let mut open = Vec::new();
        for span in snapshot.spans.iter().filter(|span| span.is_sampled()) {
            let (trace, id) = span.identity();
            if span.is_open() {
                encoder.span(&span.to_span(recording.identity()), Standing::Recorded);
                if let Some(span) = encoder.last() {
                    span.is_lost = is_dead;
                }
                open.push((trace, id));
            } else if !store.has_end(trace, id) {
                encoder.span(&span.to_span(recording.identity()), Standing::RecordedEnd);
            }
        }
        let batch = encoder.take();
        store.take_news(&batch);
        let open: HashSet<_> =
            open.into_iter().filter_map(|(trace, id)| store.find_span(trace, id)).collect();
        for gone in self.open.difference(&open) {
            store.end_unknown(*gone, snapshot.at);
        }
        self.open = open;
        let report = &mut self.report;
        report.is_alive = recording.is_alive();
        report.is_closed = recording.state() != State::Running;
        let identity = recording.identity();
        if report.process_id != identity.process_id {
            let service = identity.resource.attribute("service.name");
            report.service = service.and_then(|name| name.as_str()).unwrap_or_default().to_owned();
            report.process_id.clone_from(&identity.process_id);
            report.run_id = identity.run_id.as_ref().map(|run| run.as_str().to_owned());
            report.pid = identity.pid;
        }
        report.open_spans = self.open.len();
        (report.lost_spans, report.lost_details) = (0, 0);
        for (cause, lost) in recording.losses() {
            let is_detail = cause.starts_with("detail");
            let count = if is_detail { &mut report.lost_details } else { &mut report.lost_spans };
            *count = count.saturating_add(lost);
        }
        if report.stages.len() != snapshot.table.stages.len() {
            let stages = snapshot.table.stages.iter();
            let declared = stages.map(|stage| DeclaredStage {
                set: stage.set.clone(),
                name: stage.name.clone(),
                level: stage.level,
                within: stage.within.clone(),
            });
            report.stages = declared.collect();
        }
    }
}
