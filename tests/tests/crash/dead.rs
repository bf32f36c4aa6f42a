//! What a victim left, and whether that is right.

use stagetrace_tests::ended::file;
use stagetrace_tests::ledger::{Ledger, WORKERS};
use stagetrace_tests::rounds::{Kind, Label};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::{Contents, ReadOptions, read_lines};
use stagetrace_wire::recording::layout::{BLOCK, SMALL_CHUNK, chunk, header};
use stagetrace_wire::recording::read::{ReadError, Recording, State};
use stagetrace_wire::recording::recover::{Recovered, Remove, recover};
use stagetrace_wire::span::{Span, StatusCode, Value, find};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use tempfile::TempDir;

/// A victim that has ended.
pub(crate) struct Dead {
    pub(crate) status: ExitStatus,
    pub(crate) dir: TempDir,
    pub(crate) ledger: Ledger,
    pub(crate) said: Vec<u8>,
}

/// What was found, after all was found right.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The spans of all .jsonl files and those that were recovered, by what they say of themselves.
    pub(crate) spans: HashMap<Label, Span>,
    /// How many the victim had acknowledged as ended.
    pub(crate) acknowledged: usize,
    /// How many were in its .jsonl files.
    pub(crate) written: usize,
    /// Whether the last line of one of these is torn.
    pub(crate) is_torn: bool,
    pub(crate) recovered: Recovered,
}

/// A span is its trace and its id.
type Id = (TraceId, SpanId);

impl Dead {
    /// The directory of its run; `None` if it did not get so far.
    pub(crate) fn run_dir(&self) -> Option<PathBuf> {
        let mut runs: Vec<_> = fs::read_dir(self.dir.path().join("traces"))
            .ok()?
            .map(|run| run.expect("it can be read").path())
            .collect();
        assert!(runs.len() < 2, "one run: {runs:?}");
        runs.pop()
    }

    /// Its recording.
    pub(crate) fn recording(&self) -> Option<PathBuf> {
        file(&self.run_dir()?, "recording")
    }

    /// Checks what its recording lists as open, recovers it, and checks that nothing is lost, torn or
    /// doubled.
    pub(crate) fn recovered(&self, remove: Remove) -> Found {
        let (Some(run_dir), Some(recording)) = (self.run_dir(), self.recording()) else {
            assert_eq!(self.acknowledged().len(), 0, "nothing is recorded without a recording");
            return Found::default();
        };
        if let Err(ReadError::Unfinished) = Recording::open(&recording) {
            assert_eq!(self.acknowledged().len(), 0, "nothing is recorded before the header");
            return Found::default();
        }
        let (open, lost_details) = listed_in(&recording);
        let recovered = recover(&recording, &run_dir, remove).expect("it can be recovered");
        assert!(recovered.damage.is_none(), "{:?}", recovered.damage);
        let again = recover(&recording, &run_dir, Remove::No);
        match remove {
            Remove::Yes => assert!(again.is_err() && !recording.exists(), "it is removed"),
            Remove::No => {
                let again = again.expect("it can be recovered twice");
                assert_eq!((again.ended, again.open), (0, 0), "nothing is recovered twice");
            }
        }
        let found = Found { recovered, ..self.found(&run_dir) };
        if !lost_details {
            found.spans.iter().for_each(|(label, span)| check_details(*label, span));
        }
        let listed: HashSet<_> =
            found.spans.values().filter(|span| is_open(span)).map(Span::identity).collect();
        assert_eq!(listed, open, "what the recording lists as open is what recovery marks as that");
        found
    }

    /// Checks the files of its run, to which all was recovered.
    pub(crate) fn found(&self, run_dir: &Path) -> Found {
        let mut found = self.found_so_far(run_dir);
        let acknowledged = self.acknowledged();
        for label in &acknowledged {
            match found.spans.get(label) {
                None => panic!("{label:?} had ended and is lost"),
                Some(span) => assert!(!is_open(span), "{label:?} had ended and is open"),
            }
        }
        found.acknowledged = acknowledged.len();
        found
    }

    /// Checks the files of its run, to which not all is recovered yet: nothing is torn or doubled.
    pub(crate) fn found_so_far(&self, run_dir: &Path) -> Found {
        let mut found = Found::default();
        let mut identities: HashMap<Id, PathBuf> = HashMap::new();
        for path in line_files(run_dir) {
            let contents = read(&path);
            let is_recovered = path.to_string_lossy().ends_with(".recovered.jsonl");
            let is_torn = contents.report.incomplete_line.is_some();
            assert!(!(is_torn && is_recovered), "{} is torn", path.display());
            found.is_torn |= is_torn;
            if !is_recovered {
                found.written += contents.spans.len();
            }
            for span in contents.spans {
                let other = identities.insert(span.identity(), path.clone());
                assert_eq!(other, None, "a span of {} is elsewhere, too: {span:?}", path.display());
                if span.name == "stagetrace.loss" {
                    continue;
                }
                assert!(is_recovered || !is_open(&span), "written while open: {span:?}");
                let label = check(&span);
                let other = found.spans.insert(label, span);
                assert!(other.is_none(), "{label:?} is there twice, once as {other:?}");
            }
        }
        self.check_order(&found);
        found
    }

    /// That nothing is there which was not begun, and that spans of a worker follow each other.
    fn check_order(&self, found: &Found) {
        let mut last = [0; WORKERS as usize];
        let mut outer: Vec<_> =
            found.spans.iter().filter(|(label, _)| label.kind == Kind::Outer).collect();
        outer.sort_by_key(|(label, _)| (label.worker, label.round));
        for (label, span) in outer {
            let last = &mut last[label.worker as usize];
            assert!(*last <= span.start_unix_nano, "{label:?} began before the one before ended");
            *last = if is_open(span) { u64::MAX } else { span.end_unix_nano };
        }
        for (label, span) in &found.spans {
            assert!(label.round < self.ledger.begun(label.worker), "{label:?} was never begun");
            let is_last = label.round + 1 == self.ledger.begun(label.worker);
            let may_be_open = is_last || label.kind == Kind::Carried;
            assert!(may_be_open || !is_open(span), "{label:?} is not that in which its worker was");
        }
    }

    /// Every span of which the victim said that it had ended, in the ledger or through the pipe.
    pub(crate) fn acknowledged(&self) -> Vec<Label> {
        let said = self.said_through_the_pipe();
        let mut all = Vec::new();
        for worker in 0..WORKERS {
            for round in 0..self.ledger.begun(worker) {
                let bits = self.ledger.acknowledged(worker, round);
                let said = said.get(&(worker, round)).copied().unwrap_or(0);
                assert_eq!(said & !bits, 0, "said through the pipe and not in the ledger");
                let ended = Kind::ALL.into_iter().filter(|kind| bits & kind.bit() != 0);
                all.extend(ended.map(|kind| Label { worker, round, kind }));
            }
        }
        all
    }

    /// Bits of rounds: messages of 32 rounds each, of which the last may be cut off.
    fn said_through_the_pipe(&self) -> HashMap<(u32, u32), u8> {
        let mut said = HashMap::new();
        for message in self.said.as_chunks::<40>().0 {
            let number = |at: usize| {
                u32::from_le_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]])
            };
            let (worker, first) = (number(0), number(4));
            said.extend((first..).zip(&message[8..]).map(|(round, bits)| ((worker, round), *bits)));
        }
        said
    }
}

/// Whether a span was open when its process died.
pub(crate) fn is_open(span: &Span) -> bool {
    find(&span.attributes, "stagetrace.open") == Some(&Value::Bool(true))
}

/// What a span says of itself; it is whole.
fn check(span: &Span) -> Label {
    let label = Label::of(span, is_open(span)).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(span.start_unix_nano > 0 && span.end_unix_nano >= span.start_unix_nano, "{span:?}");
    assert_eq!(span.status.code, StatusCode::Unset, "{span:?}");
    let request_id = find(&span.attributes, "stagetrace.request.id");
    assert_eq!(request_id.is_some(), label.kind == Kind::Asked, "{span:?}");
    label
}

/// That what came to a span after its begin is there.
pub(crate) fn check_details(label: Label, span: &Span) {
    if label.kind == Kind::Talk && !is_open(span) {
        let has_all = span.events.len() == 1 && find(&span.attributes, "late").is_some();
        assert!(has_all, "{label:?} lacks details: {span:?}");
    }
}

/// The open spans that a recording lists, with stage, age and, for those of a request, its id; and
/// whether there was no room for some detail.
fn listed_in(recording: &Path) -> (HashSet<Id>, bool) {
    let recording = Recording::open(recording).expect("it can be read");
    if recording.state() == State::Running {
        assert_eq!(recording.is_alive(), Some(false));
    }
    let snapshot = recording.snapshot();
    assert!(snapshot.damage.is_none(), "{:?}", snapshot.damage);
    let open = snapshot.open().map(|span| {
        let whole = span.to_span(recording.identity());
        let label = Label::of(&whole, true).unwrap_or_else(|problem| panic!("{problem}"));
        let of_request = format!("{}-{}", label.worker, label.round);
        let is_of_request = matches!(label.kind, Kind::Asked | Kind::Served);
        let request_id = snapshot.request_id(span);
        assert_eq!(request_id, is_of_request.then_some(&*of_request), "{label:?}");
        assert_eq!(span.name(), label.kind.name());
        assert_eq!(snapshot.age(span), snapshot.at - span.begin(), "{label:?}");
        span.identity()
    });
    let lost = recording.losses().iter().any(|(cause, n)| *cause == "detail_full" && *n > 0);
    (open.collect(), lost)
}

/// How often chunks were recycled, and in how many that was going on.
pub(crate) fn recycled(recording: &Path) -> (u64, usize) {
    let bytes = fs::read(recording).expect("the recording can be read");
    if bytes.is_empty() {
        // Killed when the file was there and had no length yet.
        return (0, 0);
    }
    let word = |at: usize| u64::from_ne_bytes(bytes[at * 8..][..8].try_into().expect("eight"));
    let (mut recycled, mut going_on) = (0, 0);
    for block in 1..word(header::BLOCKS) as usize {
        let first = block * (BLOCK / 8);
        let kind = word(first + chunk::KIND);
        let size = (kind >> 32) as usize / 8;
        if kind as u32 != chunk::RECORDS {
            continue;
        }
        for at in (first..first + BLOCK / 8).step_by(size.max(SMALL_CHUNK / 8)) {
            let sequence = word(at + chunk::SEQUENCE);
            // Each use takes two, and so do making a chunk and splitting a large one.
            let made = if size == BLOCK / 8 { 1 } else { 2 };
            recycled += (sequence / 2).saturating_sub(made);
            going_on += usize::from(sequence % 2 == 1);
        }
    }
    (recycled, going_on)
}

/// Every .jsonl file of a run.
fn line_files(run_dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(run_dir).expect("the run's directory can be read");
    let paths = files.map(|file| file.expect("it can be read").path());
    paths.filter(|path| path.extension().is_some_and(|found| found == "jsonl")).collect()
}

fn read(path: &Path) -> Contents {
    let bytes = fs::read(path).expect("a trace file can be read");
    let contents = read_lines(&bytes, &ReadOptions::default());
    let torn = u64::from(contents.report.incomplete_line.is_some());
    let damaged = contents.report.damaged_lines;
    assert!(damaged <= torn, "{}: {:?}", path.display(), contents.report);
    assert_eq!(contents.report.refused_spans, 0, "{}: {:?}", path.display(), contents.report);
    assert_eq!(contents.duplicates, 0, "{}", path.display());
    contents
}
