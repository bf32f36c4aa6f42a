//! A spool beside a recording is read as further blocks of it, and goes with it.

#![cfg(unix)] // for links

use handmade::{Dir, Handmade, Record, STEM, keyed, side, site, with_records};
use stagetrace_wire::otlp::json::{ReadOptions, read_lines};
use stagetrace_wire::recording::layout::{BLOCK, SMALL_CHUNK, chunk, header, side as kind, slot};
use stagetrace_wire::recording::recover::{Recovered, Remove, recover};
use stagetrace_wire::recording::value::Tag;
use stagetrace_wire::span::Span;
use std::fs;

mod handmade;

/// What a chunk of another recording is as bytes: its words, head included.
fn large(records: &[Vec<u64>]) -> Vec<u8> {
    Handmade::new(2).chunk(1, records).bytes()[BLOCK..].to_vec()
}

fn small(records: &[Vec<u64>]) -> Vec<u8> {
    Handmade::new(2).small_chunks(1, &[records]).bytes()[BLOCK..][..SMALL_CHUNK].to_vec()
}

fn ended(span: u64) -> Vec<u64> {
    Record::ended(span).words()
}

/// A dead process with this recording and, beside it, this spool.
struct Dead(Dir);

impl Dead {
    fn with(made: &Handmade, spool: &[u8]) -> Dead {
        let dir = Dir::new();
        dir.write(&format!("{STEM}.recording"), &made.bytes());
        dir.write(&format!("{STEM}.spool"), spool);
        Dead(dir)
    }

    fn recover(&self, remove: Remove) -> Recovered {
        let recording = self.0.join(format!("{STEM}.recording"));
        recover(recording, &*self.0, remove).expect("it recovers")
    }

    fn spans(&self) -> Vec<Span> {
        let lines = fs::read(self.0.join(format!("{STEM}.recovered.jsonl"))).expect("the file");
        let contents = read_lines(&lines, &ReadOptions::default());
        assert_eq!((contents.report.damaged_lines, contents.duplicates), (0, 0));
        contents.spans
    }

    fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<_> = self.spans().iter().map(|span| span.span_id.to_u64()).collect();
        ids.sort();
        ids
    }
}

#[test]
fn spans_of_the_spool_and_of_the_recording_are_recovered_and_both_files_go() {
    let spool =
        [small(&[ended(2), ended(3)]), large(&[ended(4)]), small(&[ended(5)]), large(&[ended(6)])];
    let dead = Dead::with(&with_records(&[ended(1), Record::open(7).words()]), &spool.concat());
    let recovered = dead.recover(Remove::Yes);
    assert_eq!((recovered.ended, recovered.open, recovered.known), (6, 1, 0));
    assert!(recovered.damage.is_none(), "{recovered:?}");
    assert_eq!(dead.ids(), [1, 2, 3, 4, 5, 6, 7]);
    assert!(dead.spans().iter().all(|span| span.name == "step"), "by the recording's table");
    assert_eq!(dead.0.names(), [format!("{STEM}.recovered.jsonl")]);
}

#[test]
fn more_small_chunks_than_share_a_block_are_all_read() {
    let chunks: Vec<_> = (1..=40).map(|span| small(&[ended(span)])).collect();
    let dead = Dead::with(&with_records(&[]), &chunks.concat());
    assert_eq!(dead.recover(Remove::No).ended, 40);
}

#[test]
fn a_spool_that_is_kept_is_recovered_once() {
    let dead = Dead::with(&with_records(&[ended(1)]), &small(&[ended(2)]));
    assert_eq!(dead.recover(Remove::No).ended, 2);
    let again = dead.recover(Remove::No);
    assert_eq!((again.ended, again.known), (0, 2));
    assert!(dead.0.names().contains(&format!("{STEM}.spool")));
}

#[test]
fn a_chunk_that_a_kill_tore_off_is_left_out() {
    let whole = [small(&[ended(2)]), large(&[ended(3)])].concat();
    for torn in [small(&[ended(4)]), large(&[ended(4)])] {
        for length in [0, 1, 7, 8, chunk::HEAD, SMALL_CHUNK - 1, SMALL_CHUNK, torn.len() - 1] {
            let torn = &torn[..length.min(torn.len() - 1)];
            let dead = Dead::with(&with_records(&[ended(1)]), &[&whole, torn].concat());
            let recovered = dead.recover(Remove::No);
            assert!(recovered.damage.is_none(), "after {length} bytes: {recovered:?}");
            assert_eq!(dead.ids(), [1, 2, 3], "after {length} bytes");
        }
    }
}

#[test]
fn what_makes_no_sense_is_said_and_keeps_nothing_before_it() {
    let mut damaged = small(&[ended(3)]);
    damaged[0] = 77;
    let dead = Dead::with(&with_records(&[ended(1)]), &[small(&[ended(2)]), damaged].concat());
    let recovered = dead.recover(Remove::No);
    assert_eq!(recovered.damage.heads, 1);
    assert_eq!(dead.ids(), [1, 2]);
}

#[test]
fn a_spool_of_garbage_is_survived() {
    let chunk = [small(&[ended(2)]), large(&[ended(3)])].concat();
    let mut state = 1_u64;
    for round in 0..200 {
        let mut spool = chunk.clone();
        for _ in 0..1 + round % 40 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            // Mostly where heads and records are.
            let most = if round % 3 == 0 { spool.len() } else { 256 };
            spool[(state >> 33) as usize % most] = (state >> 24) as u8;
        }
        let dead = Dead::with(&with_records(&[ended(1)]), &spool);
        dead.recover(Remove::No);
        assert!(dead.spans().iter().any(|span| span.span_id.to_u64() == 1));
    }
}

#[test]
fn a_chunk_that_is_still_in_the_recording_counts_once_with_its_details() {
    let payload = [&handmade::text("said")[..], &keyed(&[("n", Tag::I64, vec![7])])].concat();
    let event = side(1, 15, kind::EVENT, &payload);
    let records = [Record { sides: 1, ..Record::ended(1) }.words(), event];
    let dead = Dead::with(&with_records(&records), &large(&records));
    let recovered = dead.recover(Remove::No);
    assert_eq!(recovered.ended, 1);
    assert_eq!(dead.spans()[0].events.len(), 1, "not once from each file");
}

#[test]
fn details_in_the_spool_are_those_of_spans_in_the_recording() {
    let payload = [&handmade::text("said")[..], &keyed(&[])].concat();
    let dead = Dead::with(
        &with_records(&[Record { sides: 1, ..Record::ended(1) }.words()]),
        &small(&[side(1, 15, kind::EVENT, &payload)]),
    );
    dead.recover(Remove::No);
    assert_eq!(dead.spans()[0].events[0].name, "said");
}

#[test]
fn a_span_that_was_thrown_away_stays_so() {
    let discarded = Record { marks: slot::DISCARDED, ..Record::ended(2) }.words();
    let dead = Dead::with(&with_records(&[ended(1)]), &small(&[discarded]));
    dead.recover(Remove::No);
    assert_eq!(dead.ids(), [1]);
}

#[test]
fn a_closed_recording_gives_what_its_spool_needs() {
    let made = Handmade::new(2).table(1, &[&site(1, "step", &[])]);
    let made = made.word(header::STATE, header::CLOSED);
    let dead = Dead::with(&made, &small(&[ended(2)]));
    assert_eq!(dead.recover(Remove::No).ended, 1);
    assert_eq!(dead.spans()[0].name, "step");
}

#[test]
fn a_link_in_the_place_of_a_spool_is_neither_followed_nor_removed() {
    let dead = Dead::with(&with_records(&[ended(1)]), b"");
    let spool = dead.0.join(format!("{STEM}.spool"));
    fs::remove_file(&spool).expect("it is there");
    let target = dead.0.write("elsewhere", &small(&[ended(2)]));
    std::os::unix::fs::symlink(&target, &spool).expect("a link");
    assert_eq!(dead.recover(Remove::Yes).ended, 1);
    assert!(target.exists() && spool.exists());
}
