//! The walk over blocks, slab slots and chunks, by the rules that let their writer go on meanwhile.
//!
//! A chunk is read whole or not at all: its sequence number and its kind must be the same after it
//! was copied, and the number even. So is a slab slot, by its generation. No offset, size or count
//! that is found is followed beyond the chunk it stands in.

use super::damage::Damage;
use super::view::View;
use crate::recording::layout::{BLOCK, SMALL_CHUNK, chunk, slab, slot};
use std::ops::Range;

/// How often a chunk or slot that changes while it is read is tried. A model need not explore the same again.
const ATTEMPTS: u32 = if cfg!(loom) { 1 } else { 4 };

/// Where a record stands, and when: a place is used anew with another sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// Index of the record's first word in the file.
    at: usize,
    sequence: u64,
}

/// What a block or small chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Records, in a chunk of so many words.
    Records(usize),
    /// Slab slots.
    Slab,
    /// Entries of the stage table.
    Table,
}

/// The head of a block or of a small chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Index of its first word.
    pub(super) at: usize,
    pub(super) kind: Kind,
}

/// The heads of all blocks, and of the small chunks in them, as they are found on the way.
pub(super) fn heads<'a>(
    words: View<'a>,
    damage: &'a mut Damage,
) -> impl Iterator<Item = Head> + use<'a> {
    const SMALL: usize = SMALL_CHUNK / 8;
    let blocks = 1..words.blocks();
    blocks.flat_map(move |block| {
        let first = block * (BLOCK / 8);
        let head = head(words, first, damage);
        let is_small = head.is_some_and(|head| head.kind == Kind::Records(SMALL));
        let last = if is_small { first + BLOCK / 8 } else { first + 1 };
        let others: Vec<Head> = (first..last)
            .step_by(SMALL)
            .skip(1)
            .filter_map(|at| self::head(words, at, damage))
            .filter(|head| head.kind == Kind::Records(SMALL))
            .collect();
        head.into_iter().chain(others)
    })
}

fn head(words: View<'_>, at: usize, damage: &mut Damage) -> Option<Head> {
    let word = words.load_first(at + chunk::KIND);
    let kind = match (word as u32, (word >> 32) as usize) {
        (chunk::UNUSED, _) => return None,
        (chunk::RECORDS, size @ (SMALL_CHUNK | BLOCK)) => Kind::Records(size / 8),
        (chunk::SLAB, _) => Kind::Slab,
        (chunk::TABLE, _) => Kind::Table,
        _ => {
            damage.heads += 1;
            return None;
        }
    };
    Some(Head { at, kind })
}

/// Hands over every slab slot that holds a span: its slot's words and its attributes', as in a
/// record.
pub(super) fn slabs(words: View<'_>, damage: &mut Damage, mut with: impl FnMut(&[u64])) {
    let mut copy = Vec::with_capacity(slab::WORDS);
    // What is wrong with heads, the walk over chunks counts.
    let mut counted = Damage::default();
    for head in heads(words, &mut counted).filter(|head| head.kind == Kind::Slab) {
        for number in 0..slab::SLOTS {
            let at = head.at + chunk::HEAD / 8 + number * slab::WORDS;
            if at + slab::WORDS > words.len() {
                break;
            }
            match (0..ATTEMPTS).find_map(|_| copy_slot(words, at, &mut copy)) {
                Some(Slot::Span) => with(&copy),
                Some(Slot::Empty) => {}
                Some(Slot::Senseless) => damage.records += 1,
                None => damage.busy += 1,
            }
        }
    }
}

/// What a slab slot holds.
#[derive(Clone, Copy)]
enum Slot {
    Span,
    Empty,
    /// A size that no span has there.
    Senseless,
}

/// Copies a slot. `None` if it changed meanwhile.
fn copy_slot(words: View<'_>, at: usize, copy: &mut Vec<u64>) -> Option<Slot> {
    let generation = words.load_first(at + slab::GENERATION);
    if !generation.is_multiple_of(2) || words.load(at + slot::BEGIN) == 0 {
        return Some(Slot::Empty);
    }
    copy.clear();
    copy_span(words, at..at + slot::WORDS, copy);
    words.copy(at + slab::ATTRIBUTES..at + slab::WORDS, copy);
    let used = size_in(copy[slot::META]);
    copy.truncate(used);
    let is_sound = (slot::WORDS..slab::WORDS).contains(&used);
    let found = if is_sound { Slot::Span } else { Slot::Senseless };
    (words.load_last(at + slab::GENERATION) == generation).then_some(found)
}

/// Hands over every record of every chunk, with its place.
pub(super) fn chunks(words: View<'_>, damage: &mut Damage, mut with: impl FnMut(Place, &[u64])) {
    let mut copied = Copied::default();
    let mut counted = Damage::default();
    for head in heads(words, damage) {
        match copied.take(words, head) {
            Taken::Nothing => {}
            Taken::Busy => counted.busy += 1,
            Taken::Records { sequence, is_sound } => {
                counted.chunks += u64::from(!is_sound);
                for (at, range) in &copied.records {
                    with(Place { at: *at, sequence }, &copied.words[range.clone()]);
                }
            }
        }
    }
    damage.chunks += counted.chunks;
    damage.busy += counted.busy;
}

/// Records copied out of a chunk.
#[derive(Debug, Default)]
struct Copied {
    words: Vec<u64>,
    /// Where each stood in the file, and stands in `words`.
    records: Vec<(usize, Range<usize>)>,
}

enum Taken {
    /// There is no chunk, or none any more.
    Nothing,
    /// It changed each time.
    Busy,
    Records {
        sequence: u64,
        /// Whether all of it made sense.
        is_sound: bool,
    },
}

impl Copied {
    /// Copies a chunk while it does not change.
    fn take(&mut self, words: View<'_>, mut head: Head) -> Taken {
        for _ in 0..ATTEMPTS {
            let Kind::Records(size) = head.kind else { return Taken::Nothing };
            self.words.clear();
            self.records.clear();
            let sequence = words.load_first(head.at + chunk::SEQUENCE);
            let is_sound = self.copy(words, head.at, size);
            let is_same = words.load_last(head.at + chunk::SEQUENCE) == sequence;
            let now = self::head(words, head.at, &mut Damage::default());
            if is_same && now == Some(head) && sequence.is_multiple_of(2) {
                return Taken::Records { sequence, is_sound };
            }
            let Some(now) = now else { return Taken::Nothing };
            head = now;
        }
        Taken::Busy
    }

    /// Copies records up to the tail; whether they all made sense.
    fn copy(&mut self, words: View<'_>, start: usize, size: usize) -> bool {
        let tail = words.load_first(start + chunk::TAIL);
        let told = usize::try_from(tail / 8).unwrap_or(usize::MAX);
        let end = start + told.min(size).min(words.len().saturating_sub(start));
        let mut at = start + chunk::HEAD / 8;
        while at + slot::WORDS <= end {
            let record = size_in(words.load(at + slot::META));
            if record < slot::WORDS || !record.is_multiple_of(slot::WORDS) || at + record > end {
                return false;
            }
            let from = self.words.len();
            copy_span(words, at..at + record, &mut self.words);
            self.records.push((at, from..self.words.len()));
            at += record;
        }
        at - start == told && tail.is_multiple_of(8)
    }
}

/// Copies a slot and what follows it, the end first: what its writer stored before it is seen then.
fn copy_span(words: View<'_>, range: Range<usize>, copy: &mut Vec<u64>) {
    let end = words.load_first(range.start + slot::END);
    let from = copy.len();
    words.copy(range, copy);
    if let Some(word) = copy.get_mut(from + slot::END) {
        *word = end;
    }
}

/// Words of a record.
fn size_in(meta: u64) -> usize {
    usize::from((meta >> 32) as u16)
}
