//! The frozen file of version 1: every later reader reads it alike.
//!
//! `recording_v1.words` is the file as text: one line for each word that is not 0, with its index
//! and value, and first the number of all.

use handmade::{Handmade, listing, one_of_everything};
use std::fmt::Write;

mod handmade;

const WORDS: &str = include_str!("golden/recording_v1.words");
const LISTING: &str = include_str!("golden/recording_v1.listing");

#[test]
fn the_frozen_file_reads_as_it_always_did() {
    expect("recording_v1.listing", &listing(&from_text(WORDS).read()), LISTING);
}

#[test]
fn a_recording_made_by_hand_is_still_the_frozen_file() {
    expect("recording_v1.words", &to_text(&one_of_everything()), WORDS);
}

/// Compares with a frozen file; what differs is left where it can be looked at.
fn expect(name: &str, found: &str, frozen: &str) {
    if found != frozen {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, found).expect("the build's directory can be written");
        let lines = found.lines().zip(frozen.lines());
        let first = lines.enumerate().find(|(_, (found, frozen))| found != frozen);
        panic!("{name} differs, first in {first:?}; see {}", path.display());
    }
}

fn to_text(made: &Handmade) -> String {
    let mut text = format!("{}\n", made.words.len());
    for (at, word) in made.words.iter().enumerate().filter(|(_, word)| **word != 0) {
        let _ = writeln!(text, "{at} {word:016x}");
    }
    text
}

fn from_text(text: &str) -> Handmade {
    let mut lines = text.lines();
    let count: usize = lines.next().and_then(|line| line.parse().ok()).expect("the size");
    let mut words = vec![0; count];
    for line in lines {
        let (at, word) = line.split_once(' ').expect("index and word");
        let at: usize = at.parse().expect("an index");
        words[at] = u64::from_str_radix(word, 16).expect("a word");
    }
    Handmade { words }
}
