//! A sound recording, damaged in every place and in every way that can be listed: what is read of it stays bounded, and
//! is what was there.

use handmade::{Handmade, one_of_everything};
use proptest::prelude::*;
use proptest::sample::Index;
use stagetrace_wire::otlp::json::{ReadOptions, read_lines, write_spans};
use stagetrace_wire::recording::layout::{BLOCK, header, slot};
use stagetrace_wire::recording::read::Recording;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashSet;

mod handmade;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Knows how much each thread holds, and held at most.
struct Watching;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn hold(bytes: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        hold(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        hold(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// A span as far as nothing else than its own record says it: trace, span, parent.
type Fact = (String, String, Option<String>);

/// What was read.
struct Reading {
    facts: HashSet<Fact>,
    spans: usize,
    is_sound: bool,
}

/// Reads all that a recording offers, within bounds, and writes it as JSON lines that can be read back.
fn read_all(bytes: &[u8]) -> Option<Reading> {
    let before = HELD.get();
    MOST.set(before);
    let recording = Recording::from_bytes(bytes).ok()?;
    let snapshot = recording.snapshot();
    let most = MOST.get() - before;
    assert!(most < 40 * bytes.len() as isize + (1 << 20), "{most} bytes for {}", bytes.len());
    assert!(snapshot.spans.len() <= bytes.len() / 64, "a span has 64 bytes at least");
    let identity = recording.identity();
    let spans: Vec<_> = snapshot.spans.iter().map(|span| span.to_span(identity)).collect();
    let lines = write_spans(&identity.resource, &identity.scope, &spans);
    let back = read_lines(&lines, &ReadOptions::default());
    assert_eq!(
        (back.spans.len(), back.report.refused.len()),
        (spans.len(), 0),
        "a line is refused"
    );
    let fact = |span: &stagetrace_wire::recording::read::RecordedSpan| {
        let (trace, id) = span.identity();
        (trace.to_string(), id.to_string(), span.parent().map(|parent| parent.to_string()))
    };
    Some(Reading {
        facts: snapshot.spans.iter().map(fact).collect(),
        spans: snapshot.spans.len(),
        is_sound: snapshot.damage.is_none(),
    })
}

/// The indices of words in which something stands, or could.
fn used(made: &Handmade) -> Vec<usize> {
    let is_used = |at: &usize| made.words[*at] != 0 || at % (BLOCK / 8) < 16;
    (0..made.words.len()).filter(is_used).collect()
}

#[test]
fn a_flipped_bit_in_any_word_makes_up_no_span_but_the_one_it_stands_in() {
    let made = one_of_everything();
    let bytes = made.bytes();
    let sound = read_all(&bytes).expect("it is sound");
    assert!(sound.is_sound && sound.spans > 3);
    let mut damaged = bytes.clone();
    let mut refused = 0;
    // Each third byte: two or three of each word, each time others.
    let bytes_used = used(&made).into_iter().flat_map(|word| word * 8..word * 8 + 8);
    for at in bytes_used.step_by(3) {
        damaged[at] ^= 1 << (at % 8);
        match read_all(&damaged) {
            None => refused += 1,
            Some(read) => {
                let new = read.facts.difference(&sound.facts).count();
                assert!(new <= 1 || !read.is_sound, "{new} new spans by byte {at}");
                // Nor does it make many of one.
                assert!(read.spans <= sound.spans + 1, "{} spans by byte {at}", read.spans);
            }
        }
        damaged[at] = bytes[at];
    }
    assert_eq!(refused, 3, "only without its first word is it no recording");
}

#[test]
fn a_file_that_ends_anywhere_has_no_span_that_the_whole_one_lacks() {
    let made = one_of_everything();
    let bytes = made.bytes();
    let sound = read_all(&bytes).expect("it is sound");
    let ends = used(&made).into_iter().map(|word| word * 8 + word % 8);
    let mut least = usize::MAX;
    for end in ends.chain((0..bytes.len()).step_by(4096)) {
        match read_all(&bytes[..end]) {
            None => assert!(end < BLOCK, "{end} bytes have a header"),
            Some(read) => {
                assert!(read.facts.is_subset(&sound.facts), "new spans in the first {end} bytes");
                least = least.min(read.spans);
            }
        }
    }
    assert_eq!(least, 0, "some ended before the first span");
}

#[test]
fn every_word_at_every_extreme_is_survived() {
    let made = one_of_everything();
    let (size, line) = (BLOCK as u64 + 8, slot::WORDS as u64);
    let extremes = [0, line, size, line << 32 | 1, 0xFFF8 << 32 | 1, 1 << 63, u64::MAX];
    let sound = read_all(&made.bytes()).expect("it is sound");
    let mut bytes = made.bytes();
    // Not the first word, without which it is no recording.
    for at in used(&made).into_iter().skip(1) {
        let word = at * 8..at * 8 + 8;
        let before: Vec<u8> = bytes[word.clone()].to_vec();
        // Each second, in turn.
        for extreme in extremes.into_iter().skip(at % 2).step_by(2) {
            bytes[word.clone()].copy_from_slice(&extreme.to_ne_bytes());
            let read = read_all(&bytes).expect("the header begins as one");
            let new = read.facts.difference(&sound.facts).count();
            assert!(new <= 1 || !read.is_sound, "{new} new spans by {extreme:#x} in word {at}");
        }
        bytes[word].copy_from_slice(&before);
    }
    assert_eq!(bytes, made.bytes());
}

/// What happens to a file on a bad disk, in a bad copy, by a bad program.
#[derive(Clone, Debug)]
enum Edit {
    /// Some bytes stand where others stood.
    Copy(Index, Index, usize),
    /// Some bytes are gone, the rest moves up.
    Remove(Index, usize),
    /// Some bytes are there twice, the rest moves down.
    Repeat(Index, usize),
    /// Some bytes are zeros.
    Clear(Index, usize),
    /// The rest of the file is that of the beginning.
    Loop(Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    // Whole words, lines and pages more often than others.
    let len = prop_oneof![1..200_usize, Just(8), Just(64), Just(4096), Just(BLOCK)];
    let at = any::<Index>;
    prop_oneof![
        (at(), at(), len.clone()).prop_map(|(from, to, len)| Edit::Copy(from, to, len)),
        (at(), len.clone()).prop_map(|(at, len)| Edit::Remove(at, len)),
        (at(), len.clone()).prop_map(|(at, len)| Edit::Repeat(at, len)),
        (at(), len).prop_map(|(at, len)| Edit::Clear(at, len)),
        at().prop_map(Edit::Loop),
    ]
}

fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
    let size = bytes.len();
    // Behind the first word; mostly at a word.
    let place = |at: &Index| {
        let at = 8 + at.index(size - 8);
        if at.is_multiple_of(3) { at } else { at & !7 }
    };
    let range = |at: usize, len: &usize| at..(at + len).min(size);
    match edit {
        Edit::Copy(from, to, len) => {
            let part = bytes[range(place(from), len)].to_vec();
            let to = range(place(to), &part.len());
            let len = to.len();
            bytes[to].copy_from_slice(&part[..len]);
        }
        Edit::Remove(at, len) => drop(bytes.drain(range(place(at), len))),
        Edit::Repeat(at, len) => {
            let part = bytes[range(place(at), len)].to_vec();
            let at = place(at);
            bytes.splice(at..at, part);
        }
        Edit::Clear(at, len) => bytes[range(place(at), len)].fill(0),
        Edit::Loop(at) => {
            let at = place(at);
            let (head, rest) = bytes.split_at_mut(at);
            let len = rest.len().min(head.len());
            rest[..len].copy_from_slice(&head[..len]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn spliced_files_are_survived(edits in prop::collection::vec(edit(), 1..5)) {
        let mut bytes = one_of_everything().bytes();
        for edit in &edits {
            if bytes.len() > 64 {
                apply(edit, &mut bytes);
            }
        }
        read_all(&bytes);
    }

    #[test]
    fn a_record_that_stands_twice_is_one_span(
        (from, to) in (any::<Index>(), any::<Index>()),
        len in prop_oneof![Just(64_usize), Just(128), Just(4096)],
    ) {
        let sound = one_of_everything();
        let mut bytes = sound.bytes();
        // By whole lines, behind the header.
        let line = |at: &Index| BLOCK + at.index((bytes.len() - BLOCK) / 64) * 64;
        let (from, to) = (line(&from), line(&to));
        let len = len.min(bytes.len() - from).min(bytes.len() - to);
        bytes.copy_within(from..from + len, to);
        let read = read_all(&bytes).expect("the header is whole");
        let before = read_all(&sound.bytes()).expect("it is sound");
        let new = read.facts.difference(&before.facts).count();
        prop_assert!(new == 0 || !read.is_sound, "{} new spans", new);
    }
}

#[test]
fn a_header_of_extremes_is_survived() {
    let made = one_of_everything();
    let words = [header::CLOCK, header::STATE, header::BLOCKS, header::IDENTITY_LEN];
    let values = [0, 1, 2, 255, BLOCK as u64, 1 << 40, u64::MAX];
    for (first, second) in words.iter().flat_map(|a| words.iter().map(move |b| (*a, *b))) {
        for (a, b) in values.iter().zip(values.iter().rev()).map(|(a, b)| (*a, *b)) {
            let made = made.clone().word(first, a).word(second, b).word(header::ANCHOR_COUNT, a);
            assert!(read_all(&made.bytes()).is_some());
        }
    }
}
