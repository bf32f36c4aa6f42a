//! Real files, damaged in all the ways that disks, writers and strangers do: whatever is left of them is
//! read, summed up and shown, in a moment.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;

mod support;

use support::{View, cases};

const NOW: u64 = 1_784_173_500_000_000_001;
/// Far more than any of these small files takes, unoptimised and beside other work.
const MOMENT: Duration = Duration::from_secs(10);

/// One of each form that the viewer reads.
const FILES: &[(&str, &[u8])] = &[
    ("lines.jsonl", include_bytes!("cases/xtuner/agent/traces.jsonl")),
    ("live.jsonl", include_bytes!("cases/xtuner/live/live.jsonl")),
    ("jaeger.json", include_bytes!("cases/xtuner/jaeger/traces.json")),
    ("values.json", include_bytes!("cases/otlp/all_values.jaeger.json")),
    ("collector.jsonl", include_bytes!("../../wire/tests/cases/otlp/all_values.collector.jsonl")),
    ("loose.jsonl", include_bytes!("../../wire/tests/cases/otlp/all_values.loose_types.jsonl")),
    ("pretty.json", include_bytes!("../../wire/tests/cases/otlp/all_values.pretty.json")),
    ("message.pb", include_bytes!("../../wire/tests/cases/otlp/all_values.pb")),
    ("packed.pb.gz", include_bytes!("../../wire/tests/cases/otlp/all_values.pb.gz")),
];

/// A way to damage a file. Places are relative, so that they fit whatever was done before.
#[derive(Clone, Debug)]
enum Change {
    Cut(Index),
    Flip(Index, u8),
    /// A piece stands there once more, elsewhere.
    Repeat([Index; 3]),
    Remove([Index; 2]),
    /// A piece of another file.
    Splice(Index, Index, [Index; 2]),
    Insert(Index, &'static [u8]),
    /// A number becomes another one.
    Number(Index, &'static [u8]),
}

/// What readers stumble over.
const HARMFUL: &[&[u8]] = &[
    b"\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\"",
    b"\\ud800",
    b"\\u0000",
    b"}]}]}]}\n",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"{\"resourceSpans\":[",
    b"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\0\0\0\x01",
    b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
];

const NUMBERS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"1e308",
    b"1e999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"315360000000000000",
    b"NaN",
    b"00000000000000000000000000000000000000001",
];

fn change() -> impl Strategy<Value = Change> {
    let place = any::<Index>;
    prop_oneof![
        place().prop_map(Change::Cut),
        (place(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        any::<[Index; 3]>().prop_map(Change::Repeat),
        any::<[Index; 2]>().prop_map(Change::Remove),
        (place(), place(), any::<[Index; 2]>())
            .prop_map(|(at, file, piece)| Change::Splice(at, file, piece)),
        (place(), prop::sample::select(HARMFUL)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (place(), prop::sample::select(NUMBERS)).prop_map(|(at, bytes)| Change::Number(at, bytes)),
    ]
}

fn piece(bytes: &[u8], ends: [Index; 2]) -> std::ops::Range<usize> {
    let [one, other] = ends.map(|end| end.index(bytes.len() + 1));
    one.min(other)..one.max(other)
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let place = |at: &Index, bytes: &[u8]| at.index(bytes.len() + 1);
    match change {
        Change::Cut(at) => bytes.truncate(place(at, bytes)),
        Change::Flip(at, bits) if !bytes.is_empty() => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Change::Flip(..) => {}
        Change::Repeat([from, to, at]) => {
            let again = bytes[piece(bytes, [*from, *to])].to_vec();
            let at = place(at, bytes);
            bytes.splice(at..at, again);
        }
        Change::Remove(ends) => drop(bytes.drain(piece(bytes, *ends))),
        Change::Splice(at, file, ends) => {
            let (_, other) = FILES[file.index(FILES.len())];
            let at = place(at, bytes);
            bytes.splice(at..at, other[piece(other, *ends)].iter().copied());
        }
        Change::Insert(at, harm) => {
            let at = place(at, bytes);
            bytes.splice(at..at, harm.iter().copied());
        }
        Change::Number(at, number) => {
            let digits = |byte: &u8| byte.is_ascii_digit();
            let at = place(at, bytes);
            let Some(start) = bytes[at..].iter().position(digits).map(|start| at + start) else {
                return;
            };
            let len = bytes[start..].iter().take_while(|byte| digits(byte)).count();
            bytes.splice(start..start + len, number.iter().copied());
        }
    }
}

/// Asks for all that there is to know. Each span is in exactly one sample or none, and stands in the
/// tree of its trace.
fn ask(view: &View) {
    let json = view.json(NOW);
    let stats = view.store.stats();
    let summed = json["finished_spans"].as_u64().unwrap();
    let unassigned = json["losses"]["unassigned_spans"].as_u64().unwrap();
    assert!(summed + unassigned <= stats.spans as u64);
    for trace in view.store.traces() {
        let text = stagetrace_viewer::tree(&view.store, &view.samples, trace, NOW);
        assert!(text.lines().count() >= view.store.len_of(trace), "{text}");
        for span in view.store.spans_of(trace) {
            view.store.span(span);
        }
    }
}

/// Reads a file in two pieces, and looks in between.
fn read(directory: &Path, name: &str, bytes: &[u8], cut: usize) {
    let path = directory.join(name);
    fs::write(&path, &bytes[..cut]).unwrap();
    let mut view = View::of(&[&path]);
    ask(&view);
    support::append(&path, &bytes[cut..]);
    view.poll();
    ask(&view);
    // All that is there is read now: another look changes nothing.
    let before = view.everything(NOW);
    view.poll();
    assert_eq!(view.everything(NOW), before);
}

#[test]
fn the_files_are_read_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in FILES {
        read(directory.path(), name, bytes, bytes.len() / 2);
        let view = View::of(&[directory.path().join(name)]);
        assert!(view.store.stats().spans > 0, "{name}");
    }
    assert!(cases("xtuner").is_dir());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_of_a_damaged_file_is_read_and_shown_in_a_moment(
        file in prop::sample::select(FILES),
        changes in prop::collection::vec(change(), 1..12),
        cut in any::<Index>(),
    ) {
        let (name, bytes) = file;
        let mut bytes = bytes.to_vec();
        for change in &changes {
            apply(&mut bytes, change);
            bytes.truncate(1 << 18);
        }
        let directory = tempfile::tempdir().unwrap();
        let began = Instant::now();
        read(directory.path(), name, &bytes, cut.index(bytes.len() + 1));
        prop_assert!(began.elapsed() < MOMENT, "{:?}", began.elapsed());
    }
}
