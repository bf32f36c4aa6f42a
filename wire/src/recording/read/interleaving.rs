//! Every place at which a writer can come between two loads of a reader, one after the other.
//!
//! Threads meet where they like, and on a busy machine hardly ever; here the writer's steps run
//! before the reader's n-th load, for each n.

use super::Snapshot;
use super::damage::Damage;
use super::span::RecordedSpan;
use crate::recording::layout::{BLOCK, MAGIC, chunk, header, side, slab, slot};
use crate::recording::read::view::View;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// What runs before the load with this number from now on.
type Writer = (u64, Box<dyn FnOnce()>);

thread_local! {
    static WRITER: RefCell<Option<Writer>> = const { RefCell::new(None) };
}

/// Called before each load.
pub(super) fn step() {
    let due = WRITER.with_borrow_mut(|writer| {
        let (loads, _) = writer.as_mut()?;
        *loads = loads.checked_sub(1)?;
        if *loads == 0 { writer.take() } else { None }
    });
    if let Some((_, write)) = due {
        write();
    }
}

/// Memory of a recording that a test reads and writes.
type Memory = &'static [AtomicU64];

fn set(memory: Memory, at: usize, value: u64) {
    memory[at].store(value, Ordering::Relaxed);
}

fn add(memory: Memory, at: usize, value: u64) {
    memory[at].fetch_add(value, Ordering::Relaxed);
}

/// Runs `write` before the n-th load of a snapshot of what `make` made, for each n, or each of so
/// many, and hands every snapshot to `check`.
fn interleave(each: usize, make: fn(Memory), write: fn(Memory), check: fn(&Snapshot)) {
    const BLOCKS: usize = 3;
    let words: Box<[AtomicU64]> = (0..BLOCKS * BLOCK / 8).map(|_| AtomicU64::new(0)).collect();
    let memory: Memory = Box::leak(words);
    for load in (1..).step_by(each) {
        for block in 0..BLOCKS {
            (0..256).for_each(|at| set(memory, block * BLOCK / 8 + at, 0));
        }
        set(memory, header::MAGIC, MAGIC);
        set(memory, header::BLOCKS, BLOCKS as u64);
        make(memory);
        WRITER.set(Some((load, Box::new(move || write(memory)))));
        let snapshot = Snapshot::read(View::of(memory), true, false);
        let has_run = WRITER.take().is_none();
        check(&snapshot);
        if !has_run {
            assert!(load > 10, "only {load} loads were made");
            return;
        }
    }
}

const CHUNK: usize = BLOCK / 8;
const OTHER: usize = 2 * BLOCK / 8;
const FIRST: usize = CHUNK + chunk::HEAD / 8;

fn make_chunk(memory: Memory, at: usize) {
    set(memory, at + chunk::KIND, u64::from(chunk::RECORDS) | (BLOCK as u64) << 32);
    set(memory, at + chunk::TAIL, chunk::HEAD as u64);
}

/// A record all of whose numbers are the same, of so many words.
fn put_span(memory: Memory, at: usize, number: u64, words: usize, end: u64) {
    let meta = 1 | (words as u64) << 32;
    let values = [number, end, number, number, 1, number, meta, 0];
    for (word, value) in values.into_iter().enumerate() {
        set(memory, at + word, value);
    }
}

fn check_whole(span: &RecordedSpan) {
    let (trace, id) = span.identity();
    let parent = span.parent().map(|parent| parent.to_u64());
    assert_eq!((trace.to_u128() as u64, parent), (id.to_u64(), Some(id.to_u64())));
}

#[test]
fn a_chunk_that_is_recycled_is_never_mixed() {
    fn make(memory: Memory) {
        make_chunk(memory, CHUNK);
        for number in 0..3 {
            put_span(memory, FIRST + number * 8, 1 + number as u64, 8, 9);
        }
        set(memory, CHUNK + chunk::TAIL, (chunk::HEAD + 3 * 64) as u64);
    }
    fn recycle(memory: Memory) {
        set(memory, CHUNK + chunk::SEQUENCE, 2);
        // Larger ones, whose middles lie where others began.
        for number in 0..2 {
            put_span(memory, FIRST + number * 16, 0x100 + number as u64, 16, 9);
            put_span(memory, FIRST + number * 16 + 8, 0x1000, 8, 7);
        }
        set(memory, CHUNK + chunk::TAIL, (chunk::HEAD + 4 * 64) as u64);
    }
    interleave(1, make, recycle, |snapshot| {
        snapshot.spans.iter().for_each(check_whole);
        let numbers: Vec<u64> = snapshot.spans.iter().map(|s| s.identity().1.to_u64()).collect();
        let is_of_one = [vec![], vec![1, 2, 3], vec![0x100, 0x101]].contains(&numbers);
        assert!(is_of_one, "{numbers:x?}");
        assert_eq!(snapshot.damage, Damage::default());
    });
}

#[test]
fn a_chunk_that_becomes_something_else_is_never_read_as_records() {
    fn make(memory: Memory) {
        make_chunk(memory, CHUNK);
    }
    fn becomes_a_table(memory: Memory) {
        set(memory, CHUNK + chunk::KIND, u64::from(chunk::TABLE) | (BLOCK as u64) << 32);
        let entry = br#"{"site":1,"stage":{"name":"a-name","level":1}}  "#;
        set(memory, FIRST, entry.len() as u64);
        for (word, eight) in entry.as_chunks().0.iter().enumerate() {
            set(memory, FIRST + 1 + word, u64::from_ne_bytes(*eight));
        }
        set(memory, CHUNK + chunk::TAIL, (chunk::HEAD + 8 + entry.len()) as u64);
    }
    interleave(1, make, becomes_a_table, |snapshot| {
        assert!(snapshot.spans.is_empty());
        assert_eq!(snapshot.damage, Damage::default());
    });
}

#[test]
fn a_slab_slot_that_gets_another_span_is_never_mixed() {
    fn make(memory: Memory) {
        set(memory, CHUNK + chunk::KIND, u64::from(chunk::SLAB) | (BLOCK as u64) << 32);
        put_span(memory, FIRST, 1, 10, 0);
        set(memory, FIRST + slab::GENERATION, 2);
    }
    fn gets_another(memory: Memory) {
        put_span(memory, FIRST, 2, 12, 0);
        set(memory, FIRST + slab::GENERATION, 6);
    }
    interleave(1, make, gets_another, |snapshot| {
        snapshot.spans.iter().for_each(check_whole);
        assert_eq!(snapshot.spans.len(), 1);
        assert_eq!(snapshot.damage, Damage::default());
    });
}

#[test]
fn a_span_that_ends_while_it_is_looked_for_is_there_once_and_not_lost() {
    fn make(memory: Memory) {
        make_chunk(memory, OTHER);
        set(memory, CHUNK + chunk::KIND, u64::from(chunk::SLAB) | (BLOCK as u64) << 32);
        put_span(memory, FIRST, 1, 8, 0);
        set(memory, FIRST + slab::GENERATION, 2);
    }
    fn ends(memory: Memory) {
        // The ended copy first, then the slot is given back.
        put_span(memory, OTHER + chunk::HEAD / 8, 1, 8, 9);
        set(memory, OTHER + chunk::TAIL, (chunk::HEAD + 64) as u64);
        set(memory, FIRST + slab::GENERATION, 5);
    }
    interleave(1, make, ends, |snapshot| assert_eq!(snapshot.spans.len(), 1));
}

#[test]
fn a_span_is_seen_as_ended_only_with_its_outcome_and_its_failure() {
    fn make(memory: Memory) {
        // The chunk with the failure is read before the one with the span.
        make_chunk(memory, CHUNK);
        make_chunk(memory, OTHER);
        put_span(memory, OTHER + chunk::HEAD / 8, 1, 8, 0);
        set(memory, OTHER + chunk::TAIL, (chunk::HEAD + 64) as u64);
    }
    fn fails(memory: Memory) {
        put_span(memory, FIRST, 1, 16, side::FAILURE);
        set(memory, FIRST + slot::META, 16 << 32 | u64::from(slot::SIDE) << 56);
        for (word, value) in [2, u64::from_ne_bytes(*b"io\0\0\0\0\0\0"), 0].into_iter().enumerate()
        {
            set(memory, FIRST + slot::WORDS + word, value);
        }
        set(memory, CHUNK + chunk::TAIL, (chunk::HEAD + 128) as u64);
        let span = OTHER + chunk::HEAD / 8;
        add(memory, span + slot::LIFE, 1 << slot::SIDES_SHIFT | 5 << slot::OUTCOME_SHIFT);
        set(memory, span + slot::END, 9);
    }
    interleave(1, make, fails, |snapshot| {
        let span = &snapshot.spans[0];
        let outcome = span.outcome().zip(span.attributes().last().map(|(key, _)| *key));
        let whole = Some(("error", "error.type"));
        assert_eq!(outcome, if span.is_open() { None } else { whole });
        assert_eq!(span.missing_details(), 0, "open: {}", span.is_open());
    });
}

#[test]
fn a_ring_of_anchors_that_wraps_is_never_mixed() {
    const WALL: u64 = 1 << 60;
    fn put(memory: Memory, index: u64) {
        let at = header::ANCHOR_RING / 8 + (index as usize % header::ANCHORS) * 6;
        let ticks = index << 20;
        for (word, value) in [ticks, ticks, 1 << 32, WALL, 0, 0].into_iter().enumerate() {
            set(memory, at + word, value);
        }
        set(memory, header::ANCHOR_COUNT, index + 1);
    }
    fn make(memory: Memory) {
        (0..header::ANCHORS as u64).for_each(|index| put(memory, index));
        make_chunk(memory, CHUNK);
        put_span(memory, FIRST, 1 << 35, 8, 1 << 35);
        set(memory, CHUNK + chunk::TAIL, (chunk::HEAD + 64) as u64);
    }
    fn goes_on(memory: Memory) {
        let count = header::ANCHORS as u64;
        put(memory, count);
        // Another one, half of it.
        set(memory, header::ANCHOR_RING / 8 + 6, (count + 1) << 20);
    }
    interleave(31, make, goes_on, |snapshot| {
        assert_eq!(snapshot.spans[0].begin(), WALL + (1 << 35));
    });
}
