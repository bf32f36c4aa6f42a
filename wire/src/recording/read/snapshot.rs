//! All spans of a recording at one time: slabs first, then chunks; the ended copy wins.

use super::clock::Times;
use super::damage::Damage;
use super::record::{Detail, Record};
use super::span::RecordedSpan;
use super::table::Table;
use super::view::View;
use super::walk::{Place, chunks, slabs};
use crate::id::{SpanId, TraceId};
use crate::recording::layout::slot;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// What a recording held when it was read: every span that had ended and was still there, and every
/// span that was open.
///
/// A span that ends while the snapshot is taken may still be in it as open. A later snapshot, or
/// the .jsonl, has it as ended: ended beats open.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The spans, ended and open, in order of their begin; none of them twice.
    pub spans: Vec<RecordedSpan>,
    /// The stage table.
    pub table: Table,
    /// When this was, in nanoseconds since 1970: now, or the last sign of life of a process that
    /// has gone.
    pub at: u64,
    /// What could not be read.
    pub damage: Damage,
    /// Where the roots of requests are, by trace and number.
    roots: HashMap<(TraceId, u64), usize>,
}

/// A span is its trace and itself.
type Id = (TraceId, SpanId);

/// What is being found.
#[derive(Default)]
struct Found {
    spans: HashMap<Id, Record>,
    details: BTreeMap<Place, (Id, Detail)>,
    /// Records and slots that are neither.
    senseless: u64,
    /// Spans that have left a chunk for the slab.
    moved: Vec<Id>,
}

impl Snapshot {
    /// Reads what is there. `is_live` says that it may change meanwhile, `is_here` that its writer
    /// lives on this machine.
    pub(super) fn read(words: View<'_>, is_live: bool, is_here: bool) -> Snapshot {
        let mut damage = Damage::default();
        let mut found = Found::default();
        slabs(words, &mut damage, |span| found.add_span(span));
        chunks(words, &mut damage, |place, record| found.add(place, record));
        if is_live && found.lacks_moved() {
            slabs(words, &mut Damage::default(), |span| found.add_span(span));
        }
        damage.records += found.senseless;
        if is_live && found.lacks_details() {
            // A span may have details behind tails that were read before it was.
            chunks(words, &mut Damage::default(), |place, record| found.add_detail(place, record));
        }
        let table = Table::read(words, &mut damage);
        let times = Times::read(words, is_here);
        let mut details = by_span(found.details);
        let spans = found.spans.into_iter().filter(|(_, span)| !span.mark(slot::DISCARDED));
        let spans = spans.map(|(identity, record)| {
            let details = details.remove(&identity).unwrap_or_default();
            let site = table.site(record.site()).cloned();
            RecordedSpan::new(identity, record, details, site, &times)
        });
        let mut spans: Vec<_> = spans.collect();
        spans.sort_by_key(|span| (span.begin(), span.identity()));
        let at = match is_live {
            true => times.now(is_here),
            false => spans.iter().map(RecordedSpan::last_sign).fold(times.last(), u64::max),
        };
        let roots = spans.iter().enumerate().filter(|(_, span)| span.is_root());
        let roots = roots.map(|(at, span)| ((span.identity().0, span.root()), at)).collect();
        Snapshot { spans, table, at, damage, roots }
    }

    /// The spans that are open.
    pub fn open(&self) -> impl Iterator<Item = &RecordedSpan> {
        self.spans.iter().filter(|span| span.is_open())
    }

    /// The spans that have ended.
    pub fn ended(&self) -> impl Iterator<Item = &RecordedSpan> {
        self.spans.iter().filter(|span| !span.is_open())
    }

    /// How long ago a span began, in nanoseconds.
    pub fn age(&self, span: &RecordedSpan) -> u64 {
        self.at.saturating_sub(span.begin())
    }

    /// The root of the request that a span is of, itself if it is one; `None` if it is of none, or
    /// the root has ended and gone.
    pub fn root_of(&self, span: &RecordedSpan) -> Option<&RecordedSpan> {
        let number = Some(span.root()).filter(|number| *number != 0)?;
        self.spans.get(*self.roots.get(&(span.identity().0, number))?)
    }

    /// The id of the request that a span is of.
    pub fn request_id(&self, span: &RecordedSpan) -> Option<&str> {
        self.root_of(span)?.request_id()
    }
}

impl Found {
    fn add(&mut self, place: Place, record: &[u64]) {
        if is_side(record) {
            self.add_detail(place, record);
        } else if record.get(slot::LIFE).is_some_and(|life| life & slot::TAKEN != 0) {
            self.moved.extend(Record(record[..slot::WORDS].into()).identity());
        } else {
            self.add_span(record);
        }
    }

    /// Whether a span went on in the slab after that was looked at.
    fn lacks_moved(&self) -> bool {
        self.moved.iter().any(|identity| !self.spans.contains_key(identity))
    }

    fn add_detail(&mut self, place: Place, record: &[u64]) {
        if !is_side(record) {
            return;
        }
        let owner = Record(record[..slot::WORDS].into()).identity();
        match owner {
            Some(owner) => drop(self.details.insert(place, (owner, Detail::new(record)))),
            None => self.senseless += 1,
        }
    }

    fn add_span(&mut self, words: &[u64]) {
        let record = Record(words.into());
        let identity = record.identity().filter(|_| {
            record.word(slot::BEGIN) != 0 && !record.flag(slot::SIDE) && record.site() != 0
        });
        match identity.map(|identity| self.spans.entry(identity)) {
            None => self.senseless += 1,
            Some(Entry::Vacant(entry)) => drop(entry.insert(record)),
            Some(Entry::Occupied(mut entry)) => {
                if entry.get().is_open() && !record.is_open() {
                    entry.insert(record);
                }
            }
        }
    }

    /// Whether a span that is only here lacks some of its details.
    fn lacks_details(&self) -> bool {
        let mut counts: HashMap<_, usize> = HashMap::new();
        for (owner, _) in self.details.values() {
            *counts.entry(owner).or_default() += 1;
        }
        self.spans.iter().any(|(identity, span)| {
            let is_done = span.mark(slot::EXPORTED | slot::DISCARDED);
            !is_done && span.sides() > counts.get(identity).copied().unwrap_or(0)
        })
    }
}

/// The details of each span, in the order of their places.
fn by_span(details: BTreeMap<Place, (Id, Detail)>) -> HashMap<Id, Vec<Detail>> {
    let mut by_span: HashMap<_, Vec<_>> = HashMap::new();
    for (owner, detail) in details.into_values() {
        by_span.entry(owner).or_default().push(detail);
    }
    by_span
}

fn is_side(record: &[u64]) -> bool {
    record.get(slot::META).is_some_and(|meta| (meta >> 56) as u8 & slot::SIDE != 0)
}
