//! The outbox: batches on disk that no server has taken yet, this process's own and those that dead processes left.
//!
//! It is a row of files, oldest first; new batches go to the last one. A file is removed when all in it has gone, and when
//! there is no room left the oldest one goes with what it holds.

mod adopt;
mod others;
mod segment;
#[cfg(all(test, unix, not(miri)))]
mod tests;

use crate::complain;
use crate::config::OutboxLimits;
use crate::files;
use adopt::{Left, Whose};
use segment::{Entry, Label, Segment};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) use others::Others;
pub(super) use segment::Encoding;

/// The row of files is cut into so many, so that little goes when the oldest does.
const FILES: u64 = 16;
/// Bytes of a file at least, before the next one is begun.
const LEAST: u64 = 64 << 10;

/// Batches that wait on disk.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The run's directory, or one of runs if it is of the dead alone; and the beginning of our files' names.
    dir: PathBuf,
    stem: String,
    label: Label,
    limits: OutboxLimits,
    /// Oldest first.
    segments: VecDeque<Segment>,
    /// Files of ours so far.
    made: u32,
    /// What is taken over, and whether there is more of it than was.
    whose: Whose,
    is_more_left: bool,
    /// What is not.
    others: Others,
}

/// The oldest batch.
#[derive(Debug)]
pub(super) struct Oldest {
    pub(super) place: Place,
    pub(super) body: Vec<u8>,
    pub(super) spans: u64,
}

/// Where a batch stands: in which file, and from which byte on. No other one ever stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    path: PathBuf,
    at: u64,
}

/// Spans that left the outbox: how many count as of this process, and how many do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) counted: u64,
    pub(super) inherited: u64,
}

impl Outbox {
    /// One in the run's directory, if that is there and it may hold anything.
    pub(super) fn new(
        dir: Option<&Path>,
        stem: &str,
        encoding: Encoding,
        endpoint: String,
        limits: OutboxLimits,
    ) -> Option<Outbox> {
        let dir = dir.filter(|_| limits.max_bytes > 0)?.to_owned();
        let label = Label { version: Label::VERSION, encoding, endpoint };
        Some(Outbox::empty(dir, stem, label, limits, Whose::OfRun))
    }

    /// Where it lies.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// An empty one with what dead processes left in this directory of runs.
    pub(super) fn of_the_dead(
        output_dir: PathBuf,
        encoding: Encoding,
        limits: OutboxLimits,
    ) -> Outbox {
        let label = Label { version: Label::VERSION, encoding, endpoint: String::new() };
        let mut outbox = Outbox::empty(output_dir, "", label, limits, Whose::Below);
        outbox.adopt();
        outbox
    }

    fn empty(dir: PathBuf, stem: &str, label: Label, limits: OutboxLimits, whose: Whose) -> Outbox {
        let (stem, segments) = (stem.to_owned(), VecDeque::new());
        let others = Others::default();
        Outbox { dir, stem, label, limits, segments, made: 0, whose, is_more_left: false, others }
    }

    /// Takes over what dead processes of this run left and, if it was to go to the same endpoint, those of other runs. Of
    /// many files some are taken over when these have gone.
    pub(super) fn adopt(&mut self) {
        let left = adopt::left_by_the_dead(self.whose, &self.dir, &self.label);
        let Left { segments, is_all, others } = left;
        self.is_more_left = !is_all;
        self.others = others;
        for segment in segments.into_iter().rev() {
            self.segments.push_front(segment);
        }
    }

    /// Spans that wait.
    pub(super) fn spans(&self) -> u64 {
        let entries = self.segments.iter().flat_map(Segment::entries);
        entries.map(|entry| u64::from(entry.spans)).sum()
    }

    /// Whether anything waits.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether dead processes left more than was taken over so far.
    pub(super) fn is_more_left(&self) -> bool {
        self.is_more_left
    }

    /// What dead processes left that is not taken over.
    pub(super) fn others(&self) -> &Others {
        &self.others
    }

    /// The same, where nothing is: all that they left in this directory of runs.
    pub(super) fn all_below(output_dir: &Path) -> Others {
        adopt::all_below(output_dir)
    }

    /// Whether anything of this process waits.
    pub(super) fn has_ours(&self) -> bool {
        self.segments.back().is_some_and(|last| last.is_ours)
    }

    /// Adds a batch at the end. Gives what had to go for it.
    ///
    /// # Errors
    /// If it cannot be written, or is larger than all may be. Then nothing has gone.
    pub(super) fn append(&mut self, body: &[u8], spans: u64, now: u64) -> io::Result<Gone> {
        let len = body.len() as u64;
        if len > self.limits.max_bytes {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it is larger than all may be",
            ));
        }
        let per_file = (self.limits.max_bytes / FILES).max(LEAST).min(self.limits.max_bytes);
        let is_full = |last: &Segment| !last.is_ours || last.len() + len > per_file;
        if self.segments.back().is_none_or(is_full) {
            let segment = self.begin()?;
            self.segments.push_back(segment);
        }
        let last = self.segments.back_mut().ok_or(io::ErrorKind::NotFound)?;
        let spans = u32::try_from(spans).unwrap_or(u32::MAX);
        last.append(body, spans, now).inspect_err(|_| self.tidy())?;
        let mut gone = Gone::default();
        while self.our_bytes() > self.limits.max_bytes && self.our_files() > 1 {
            let oldest = self.segments.iter().position(|segment| segment.is_ours);
            let Some(segment) = oldest.and_then(|at| self.segments.remove(at)) else { break };
            segment.entries().for_each(|entry| gone.add(entry, true));
            remove(segment);
        }
        Ok(gone)
    }

    /// So many spans of the newest batch count as waiting in this process.
    pub(super) fn newest_counts(&mut self, spans: u64) {
        if let Some(entry) = self.segments.back_mut().and_then(Segment::back_mut) {
            entry.counted = spans;
        }
    }

    /// Throws away what has waited too long.
    pub(super) fn expire(&mut self, now: u64) -> Gone {
        let oldest = now.saturating_sub(nanoseconds(self.limits.max_age));
        let mut gone = Gone::default();
        loop {
            let before = gone;
            for segment in &mut self.segments {
                while segment.front().is_some_and(|entry| entry.since < oldest) {
                    if let Some(entry) = segment.pop_front() {
                        gone.add(&entry, segment.is_ours);
                    }
                }
            }
            self.tidy();
            // What was taken over instead may have waited too long, too.
            if gone == before {
                return gone;
            }
        }
    }

    /// The oldest batch. What cannot be read is thrown away, and given besides.
    pub(super) fn oldest(&mut self) -> (Option<Oldest>, Gone) {
        let mut gone = Gone::default();
        while let Some(segment) = self.segments.front_mut() {
            let spans = segment.front().map_or(0, |entry| u64::from(entry.spans));
            match segment.read_front() {
                Ok(body) => {
                    let oldest = self.place().map(|place| Oldest { place, body, spans });
                    return (oldest, gone);
                }
                Err(error) => {
                    let path = segment.path().display();
                    complain::warn(
                        "outbox read",
                        format_args!("a batch in {path} is lost: {error}"),
                    );
                    let of_it = self.pop_front();
                    gone.counted += of_it.counted;
                    gone.inherited += of_it.inherited;
                }
            }
        }
        (None, gone)
    }

    /// Where the oldest batch stands.
    fn place(&self) -> Option<Place> {
        let segment = self.segments.front()?;
        Some(Place { path: segment.path().to_owned(), at: segment.front()?.at() })
    }

    /// The batch that stands there has been sent. Meanwhile it may have had to make room.
    pub(super) fn has_gone(&mut self, place: &Place) -> Gone {
        if self.is_oldest(place) { self.pop_front() } else { Gone::default() }
    }

    /// Whether the oldest batch stands there.
    pub(super) fn is_oldest(&self, place: &Place) -> bool {
        self.place().as_ref() == Some(place)
    }

    /// Takes out the oldest batch.
    fn pop_front(&mut self) -> Gone {
        let mut gone = Gone::default();
        if let Some(segment) = self.segments.front_mut()
            && let Some(entry) = segment.pop_front()
        {
            gone.add(&entry, segment.is_ours);
        }
        self.tidy();
        gone
    }

    /// Begins a file, if that leaves most of the disk's room to others.
    fn begin(&mut self) -> io::Result<Segment> {
        let free = files::free_bytes(&self.dir).unwrap_or(u64::MAX);
        if free / 4 < self.limits.max_bytes / FILES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.made += 1;
        let name = format!("{}.{:06}.{}", self.stem, self.made, adopt::EXTENSION);
        Segment::create(self.dir.join(name), &self.label)
    }

    /// Removes files in which nothing waits, and takes over others that there was no place for.
    fn tidy(&mut self) {
        let (kept, empty) = std::mem::take(&mut self.segments)
            .into_iter()
            .partition::<VecDeque<_>, _>(|segment| segment.front().is_some());
        self.segments = kept;
        for segment in empty {
            // What stays would be taken over again and again.
            self.is_more_left &= remove(segment);
        }
        if self.is_more_left && self.segments.iter().all(|segment| segment.is_ours) {
            self.adopt();
        }
    }

    fn our_bytes(&self) -> u64 {
        self.ours().map(Segment::len).sum()
    }

    fn our_files(&self) -> usize {
        self.ours().count()
    }

    fn ours(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.is_ours)
    }
}

impl Gone {
    fn add(&mut self, entry: &Entry, is_ours: bool) {
        self.counted += entry.counted;
        self.inherited += if is_ours { 0 } else { u64::from(entry.spans) };
    }
}

/// Whether it could be removed.
fn remove(segment: Segment) -> bool {
    let path = segment.path().to_owned();
    let removed = segment.remove();
    if let Err(error) = &removed {
        complain::warn("outbox removal", format_args!("cannot remove {}: {error}", path.display()));
    }
    removed.is_ok()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
