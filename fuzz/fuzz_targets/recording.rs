//! The reader of recordings: a frozen one, in which the input changes words.
//!
//! Three bytes say which word, of those in which something stands or could; eight what stands there now.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stagetrace_wire::otlp::json::{ReadOptions, read_lines, write_spans};
use stagetrace_wire::recording::read::Recording;
use std::sync::LazyLock;

const FROZEN: &str = include_str!("../../wire/tests/golden/recording_v1.words");
const BLOCK_WORDS: usize = 8192;

struct Frozen {
    words: Vec<u64>,
    used: Vec<usize>,
}

static RECORDING: LazyLock<Frozen> = LazyLock::new(|| {
    let mut lines = FROZEN.lines();
    let mut words = vec![0; lines.next().unwrap().parse().unwrap()];
    for line in lines {
        let (at, word) = line.split_once(' ').unwrap();
        words[at.parse::<usize>().unwrap()] = u64::from_str_radix(word, 16).unwrap();
    }
    // Not the first word, without which it is no recording; and as many behind each use as a record has.
    let is_used =
        |at: &usize| words[*at] != 0 || *at > 8 && words[at - 8] != 0 || at % BLOCK_WORDS < 16;
    let used = (1..words.len()).filter(is_used).collect();
    Frozen { words, used }
});

fuzz_target!(|input: &[u8]| {
    let Frozen { words, used } = &*RECORDING;
    let mut words = words.clone();
    let (edits, _) = input.as_chunks::<11>();
    for [a, b, c, word @ ..] in edits {
        let place = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        words[used[place % used.len()]] = u64::from_le_bytes(*word);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let recording = Recording::from_bytes(&bytes).expect("the first word is there");
    let snapshot = recording.snapshot();
    let identity = recording.identity();
    for span in &snapshot.spans {
        let _ =
            (snapshot.root_of(span), snapshot.age(span), span.outcome(), span.missing_details());
    }
    let spans: Vec<_> = snapshot.spans.iter().map(|span| span.to_span(identity)).collect();
    let lines = write_spans(&identity.resource, &identity.scope, &spans);
    let back = read_lines(&lines, &ReadOptions::default());
    assert_eq!((back.spans.len(), back.report.refused.len()), (spans.len(), 0));
});
