//! What sources say of themselves, and what of them could not be read.

use super::line::Held;
use super::recording::RecordingReport;

/// What a file held, and what of it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file's name, without its directory.
    pub name: String,
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines that were read, blank ones included.
    pub lines: u64,
    /// Lines of which nothing could be read.
    pub damaged_lines: u64,
    /// The first of these, at most [`FileReport::KEPT`]: number from 1, and what is wrong.
    pub damaged: Vec<(u64, String)>,
    /// The last line, if it is torn: its writer was killed, or is writing it now.
    pub torn_line: Option<u64>,
    /// Spans that were left out for want of valid ids.
    pub refused_spans: u64,
    /// How often the file was cut short or written anew, and read from its beginning.
    pub restarts: u64,
    /// Lines of XTuner's live file, which tells of open spans.
    pub live_lines: u64,
    /// Lines of a form that the viewer knows.
    pub known_lines: u64,
    /// What the last attempt to read it said.
    pub error: Option<String>,
}

/// What came through an inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxReport {
    /// Who fills it.
    pub name: String,
    /// Spans that went into the store, or were known better there.
    pub spans: u64,
    /// Of these, those that stand for one that is open in its process.
    pub announced_spans: u64,
    /// Spans that were given back since there was no room for them, each time that they were.
    pub deferred_spans: u64,
    /// Spans that were left out for want of valid ids.
    pub refused_spans: u64,
    /// Requests that were received or made.
    pub requests: u64,
    /// Of these, those that failed or could be read in part only.
    pub failed_requests: u64,
    /// How often a Jaeger had more than one answer may hold, of a trace or of a time that was not divided
    /// any more.
    pub incomplete_windows: u64,
    /// What the last attempt to read it said.
    pub error: Option<String>,
}

/// What all sources say of themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceReport {
    /// What each file held.
    pub files: Vec<FileReport>,
    /// What each recording says.
    pub recordings: Vec<RecordingReport>,
    /// What came through each inbox.
    pub inboxes: Vec<InboxReport>,
}

impl SourceReport {
    /// The sources that could not be read: name, and why.
    pub fn unread(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|file| (&file.name, &file.error));
        let recordings = self.recordings.iter().map(|one| (&one.name, &one.error));
        let inboxes = self.inboxes.iter().map(|one| (&one.name, &one.error));
        let all = files.chain(recordings).chain(inboxes);
        all.filter_map(|(name, error)| Some((name.as_str(), error.as_deref()?)))
    }

    /// Whether there is a source that knows open spans: a live file, a recording, or a sender that
    /// announces them.
    pub fn has_live(&self) -> bool {
        !self.recordings.is_empty()
            || self.files.iter().any(|file| file.live_lines > 0)
            || self.inboxes.iter().any(|inbox| inbox.announced_spans > 0)
    }
}

impl FileReport {
    /// Most entries of [`FileReport::damaged`].
    pub const KEPT: usize = 100;

    /// Numbers of the lines that are damaged or torn, as far as they are kept.
    pub fn damaged_numbers(&self) -> impl Iterator<Item = u64> {
        self.damaged.iter().map(|(line, _)| *line).chain(self.torn_line)
    }

    pub(super) fn add_line(&mut self, held: Held) {
        self.lines += 1;
        self.refused_spans += held.refused;
        self.live_lines += u64::from(held.is_live);
        self.known_lines += u64::from(held.is_known);
    }

    pub(super) fn add_damaged(&mut self, damage: String) {
        self.lines += 1;
        self.damaged_lines += 1;
        if self.damaged.len() < Self::KEPT {
            self.damaged.push((self.lines, damage));
        }
    }

    /// Adds what was found in the lines that follow.
    pub(super) fn add(&mut self, next: Self) {
        let room = Self::KEPT - self.damaged.len();
        let damaged = next.damaged.into_iter().map(|(line, damage)| (self.lines + line, damage));
        self.damaged.extend(damaged.take(room));
        self.lines += next.lines;
        self.damaged_lines += next.damaged_lines;
        self.refused_spans += next.refused_spans;
        self.live_lines += next.live_lines;
        self.known_lines += next.known_lines;
    }
}
