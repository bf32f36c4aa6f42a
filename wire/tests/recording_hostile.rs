//! Whatever stands in a file, a reader neither panics nor hangs, and invents nothing.

use handmade::{Handmade, Record, listing, one_of_everything};
use proptest::prelude::*;
use stagetrace_wire::otlp::json::write_spans;
use stagetrace_wire::recording::layout::{BLOCK, header, slot};
use stagetrace_wire::recording::read::Recording;
use std::collections::HashSet;

mod handmade;

/// Reads all that a recording offers; how many spans it has.
fn read_all(recording: &Recording) -> usize {
    listing(recording);
    let _ = recording.table();
    let snapshot = recording.snapshot();
    let identity = recording.identity();
    let spans: Vec<_> = snapshot.spans.iter().map(|span| span.to_span(identity)).collect();
    write_spans(&identity.resource, &identity.scope, &spans);
    spans.len()
}

/// A span's words that do not change with what is missing elsewhere.
fn facts(recording: &Recording) -> HashSet<String> {
    let snapshot = recording.snapshot();
    let fact = |span: &stagetrace_wire::recording::read::RecordedSpan| {
        let (trace, id) = span.identity();
        format!("{trace} {id} {:?} {} {:?}", span.parent(), span.begin(), span.end())
    };
    snapshot.spans.iter().map(fact).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn words_of_garbage_anywhere_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), word()), 1..12)
    ) {
        let sound = one_of_everything();
        let used: Vec<usize> =
            (0..sound.words.len()).filter(|at| sound.words[*at] != 0).collect();
        let mut made = sound;
        for (index, word) in changes {
            // Mostly where something stands.
            let at = used[index.index(used.len())];
            made.words[at] = word;
        }
        if let Ok(recording) = Recording::from_bytes(&made.bytes()) {
            read_all(&recording);
        }
    }

    #[test]
    fn bytes_of_garbage_anywhere_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        len in any::<prop::sample::Index>(),
    ) {
        let mut bytes = one_of_everything().bytes();
        for (index, byte) in changes {
            // Not the first word, without which it is no recording.
            let at = 8 + index.index(bytes.len() - 8);
            bytes[at] = byte;
        }
        bytes.truncate(BLOCK + len.index(bytes.len() - BLOCK + 1));
        let recording = Recording::from_bytes(&bytes).expect("the header begins as one");
        read_all(&recording);
    }

    #[test]
    fn a_file_of_garbage_behind_the_first_word_is_survived(
        seed in any::<u64>(),
        blocks in 1_usize..6,
    ) {
        // All bits of each word as likely as not, but kinds and sizes often possible ones.
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut made = Handmade::new(blocks);
        for at in 1..made.words.len() {
            made.words[at] = match next() % 8 {
                0 => next(),
                1 => (next() % 16) | (1 << 44),
                2 => (next() % 16) | (1 << 48),
                3 => u64::from(next() as u16) << 32 | 1,
                _ => next() % 256,
            };
        }
        let recording = made.read();
        read_all(&recording);
    }

    #[test]
    fn a_cut_file_has_no_span_that_the_whole_one_lacks(len in any::<prop::sample::Index>()) {
        let whole = one_of_everything();
        let bytes = whole.bytes();
        let cut = &bytes[..BLOCK + len.index(bytes.len() - BLOCK + 1)];
        let left = Recording::from_bytes(cut).expect("the header is there");
        prop_assert!(facts(&left).is_subset(&facts(&whole.read())));
    }
}

/// A word as damage makes it: small, huge, or one bit of each.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..1_000_u64,
        Just(u64::MAX),
        (0..64_u32).prop_map(|bit| 1 << bit),
        (any::<u16>(), any::<u16>()).prop_map(|(low, size)| u64::from(size) << 32 | u64::from(low)),
    ]
}

#[test]
fn times_at_the_ends_of_their_range_are_survived() {
    let ring = header::ANCHOR_RING / 8;
    let extremes = [0, 1, 1 << 32, 1 << 42, i64::MAX as u64, 1 << 63, u64::MAX];
    let ended = Record { begin: u64::MAX, end: 1, ..Record::ended(1) };
    let monotonic =
        Record { flags: slot::NANOSECONDS, begin: 1, end: u64::MAX, ..Record::ended(2) };
    let made = Handmade::new(3).chunk(2, &[ended.words(), monotonic.words()]);
    for first in extremes {
        for second in extremes {
            for at in 0..4 {
                let made = made.clone().word(ring + at, first).word(ring + 6 + at, second);
                assert_eq!(read_all(&made.read()), 2);
                read_all(&made.word(header::ANCHOR_COUNT, second).read());
            }
        }
    }
}

#[test]
fn a_file_of_nothing_but_the_smallest_records_takes_memory_in_proportion() {
    // One long key in the table, which a million spans could repeat.
    let key = "k".repeat(60_000);
    let site = handmade::site(1, "step", &[&key]);
    let inline = vec![Some((stagetrace_wire::recording::value::Tag::Bool, vec![1]))];
    let records: Vec<_> = (1..=500)
        .map(|id| Record { inline: inline.clone(), ..Record::ended(id) }.words())
        .collect();
    let blocks = 34;
    let mut made = Handmade::new(blocks).table(1, &[&site]);
    for block in 2..blocks {
        made = made.chunk(block, &records);
        // Each block has spans of a trace of its own.
        for at in (0..500).map(|n| block * BLOCK / 8 + 16 + n * 16) {
            made.words[at + slot::TRACE] = block as u64;
        }
    }
    let snapshot = made.snapshot();
    assert_eq!(snapshot.spans.len(), (blocks - 2) * 500);
    assert!(snapshot.spans.iter().all(|span| span.attributes()[0].0.len() == key.len()));
    let shared = &snapshot.spans[0].attributes()[0].0.as_ptr();
    let is_shared = |span: &stagetrace_wire::recording::read::RecordedSpan| {
        std::ptr::eq(span.attributes()[0].0.as_ptr(), *shared)
    };
    assert!(snapshot.spans.iter().all(is_shared), "the key is there once");
}
