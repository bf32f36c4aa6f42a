//! How much memory there may be, and what goes when it is used up.

use super::encode::lock;
use super::tables::table_bytes;
use super::{Kept, SpanNumber, Store};

/// The limit, and what is used of it elsewhere.
#[derive(Debug)]
pub(super) struct Room {
    max_bytes: usize,
    is_full: bool,
    /// Spans that may come before it is looked at again.
    unchecked: u32,
    /// Bytes of what rules have found, as they said last, and what there was then.
    found: usize,
    found_of: Counts,
}

/// What the memory of rules depends on.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    spans: usize,
    /// Samples, at most, and mostly just so many.
    samples: usize,
    labels: usize,
    classes: usize,
}

/// Bytes for each trace to which spans of others link, with a few of these.
const LINKED: usize = 80;
/// Spans that come between two looks.
const UNCHECKED: u32 = 1024;

/// Bytes that rules take of each, about, until they say it themselves: durations and owners of spans;
/// rows of samples; groups, steps and what few samples have; sums of stages and errors.
const FOUND: [usize; 4] = [24, 96, 160, 512];
/// Bytes that an answer takes of each class, about, as it has a row for each stage and error.
const ANSWER: usize = 2048;
/// Names that there are of each in memory, about: those in answers included.
const NAMES: usize = 3;

impl Room {
    pub(super) fn new(max_bytes: usize) -> Self {
        let found_of = Counts::default();
        Self { max_bytes, is_full: false, unchecked: 0, found: 0, found_of }
    }
}

/// Bytes of so much room that names may use until it is looked at again: those who read are ahead of the
/// spans whose names these are, which need room as well.
pub(super) fn names_of(rest: usize) -> usize {
    rest / 2 / NAMES
}

impl Store {
    /// Says how many bytes of memory there are of what was found in all that is there.
    pub(crate) fn set_found(&mut self, bytes: usize) {
        self.room.found = bytes;
        self.room.found_of = self.counts();
        self.make_room();
    }

    /// Whether another span may come.
    pub(super) fn has_room(&mut self) -> bool {
        if self.room.unchecked == 0 {
            self.make_room();
        }
        self.room.unchecked -= 1;
        !self.room.is_full
    }

    /// Lets the oldest details go that can be read again, while there is too little room.
    pub(crate) fn make_room(&mut self) {
        self.room.unchecked = UNCHECKED;
        let fixed = self.fixed_bytes() + self.expected_bytes();
        let is_over = |store: &Self| fixed + store.chunks.bytes() > store.room.max_bytes;
        while is_over(self) && self.chunks.evict() {}
        self.room.is_full = is_over(self);
        let rest = self.room.max_bytes.saturating_sub(fixed);
        lock(&self.tables).grow_by(names_of(rest));
    }

    /// Bytes of memory, about, what was found by rules included.
    pub(super) fn bytes(&self) -> usize {
        self.fixed_bytes() + self.chunks.bytes()
    }

    fn fixed_bytes(&self) -> usize {
        let places = self.trace_places.capacity() + self.span_places.capacity();
        self.spans.bytes()
            + self.traces.bytes()
            + self.classes.bytes()
            + self.marks.bytes()
            + table_bytes::<u32>(places)
            + table_bytes::<(SpanNumber, Kept)>(self.replaced.capacity())
            + 4 * self.changed.capacity()
            + LINKED * self.linked.capacity()
            + lock(&self.tables).bytes()
            + self.room.found
    }

    /// Bytes that rules will take of what is new, and answers of everything.
    fn expected_bytes(&self) -> usize {
        let (now, then) = (self.counts(), self.room.found_of);
        let new = [
            now.spans - then.spans,
            now.samples - then.samples,
            now.labels - then.labels,
            now.classes - then.classes,
        ];
        let new = new.into_iter().zip(FOUND).map(|(count, bytes)| count * bytes);
        new.sum::<usize>() + now.classes * ANSWER + (NAMES - 1) * lock(&self.tables).bytes()
    }

    fn counts(&self) -> Counts {
        Counts {
            spans: self.spans.len(),
            samples: self.labels.max(self.traces.len()),
            labels: self.labels,
            classes: self.classes.len(),
        }
    }
}
