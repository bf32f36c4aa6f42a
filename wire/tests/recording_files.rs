//! Files of every kind: heads and tails that make no sense, clocks, locks, what is no recording.

use handmade::{EPOCH, Handmade, Record, STEM, keyed, line, side, site, text, with_records};
use stagetrace_wire::recording::layout::{
    BLOCK, MAGIC, SMALL_CHUNK, chunk, header, side as kind, slot,
};
use stagetrace_wire::recording::read::{Damage, ReadError, Recording, State};
use stagetrace_wire::recording::time::Anchor;
use std::time::{SystemTime, UNIX_EPOCH};

mod handmade;

#[test]
fn a_chunk_with_an_odd_sequence_number_is_left_out() {
    let made = with_records(&[Record::ended(1).words()]);
    let snapshot = made.word(2 * BLOCK / 8 + chunk::SEQUENCE, 5).snapshot();
    assert!(snapshot.spans.is_empty());
    assert_eq!(snapshot.damage, Damage { busy: 1, ..Damage::default() });
}

#[test]
fn a_chunk_that_its_writer_died_recycling_hides_nothing() {
    let made = with_records(&[Record::ended(1).words()]);
    let bytes = made.word(2 * BLOCK / 8 + chunk::SEQUENCE, 5).bytes();
    let dir = handmade::Dir::new();
    let recording = Recording::open(dir.write("dead.recording", &bytes)).expect("a recording");
    assert_eq!(recording.is_alive(), Some(false));
    let snapshot = recording.snapshot();
    assert!(snapshot.spans.is_empty() && snapshot.damage.is_none());
}

#[test]
fn nothing_beyond_the_tail_is_there() {
    let record = Record::ended(1).words();
    let tail = 2 * BLOCK / 8 + chunk::TAIL;
    let made = with_records(&[record.clone(), Record::ended(2).words()]);
    let cut = made.word(tail, (chunk::HEAD + record.len() * 8) as u64).snapshot();
    assert_eq!(cut.spans.len(), 1);
    assert!(cut.damage.is_none());
}

#[test]
fn after_a_record_of_impossible_size_the_chunk_is_given_up_and_the_others_are_read() {
    for size in [0, 3, 9, 8 + 8 * 1000, u16::MAX] {
        let mut broken = Record::ended(2).words();
        broken[slot::META] = u64::from(size) << 32;
        let made = Handmade::new(4)
            .chunk(2, &[Record::ended(1).words(), broken, Record::ended(3).words()])
            .chunk(3, &[Record::ended(4).words()]);
        let snapshot = made.snapshot();
        let ids: Vec<_> = snapshot.spans.iter().map(|s| s.identity().1.to_u64()).collect();
        assert_eq!(ids, [1, 4], "after a record of {size} words");
        assert_eq!(snapshot.damage, Damage { chunks: 1, ..Damage::default() });
    }
}

#[test]
fn impossible_heads_are_counted_and_passed_over() {
    let made = Handmade::new(6)
        .chunk(5, &[Record::ended(1).words()])
        .word(2 * BLOCK / 8 + chunk::KIND, 99)
        .word(3 * BLOCK / 8 + chunk::KIND, u64::from(chunk::RECORDS) | 77 << 32)
        .chunk(4, &[Record::ended(2).words()])
        .word(4 * BLOCK / 8 + chunk::TAIL, u64::MAX);
    let snapshot = made.snapshot();
    assert_eq!(snapshot.spans.len(), 2);
    assert_eq!(snapshot.damage, Damage { heads: 2, chunks: 1, ..Damage::default() });
}

#[test]
fn a_header_that_counts_more_blocks_than_there_are_is_not_believed() {
    for told in [0, 4, u64::MAX] {
        let made = with_records(&[Record::ended(1).words()]).word(header::BLOCKS, told);
        assert_eq!(made.snapshot().spans.len(), 1, "told {told} blocks");
    }
}

#[test]
fn a_table_entry_that_makes_no_sense_is_counted_and_the_others_are_read() {
    let names = [&site(1, "one", &[]), "{", r#"{"stage":{"level":1}}"#, &site(2, "two", &[])];
    let snapshot = Handmade::new(3).table(1, &names).snapshot();
    assert_eq!(snapshot.table.sites.len(), 2);
    assert_eq!(snapshot.damage.entries, 2);
    let torn = Handmade::new(3).table(1, &names).word(BLOCK / 8 + chunk::HEAD / 8, u64::MAX);
    assert_eq!(torn.snapshot().damage.entries, 1);
}

#[test]
fn an_identity_that_makes_no_sense_is_empty() {
    for json in ["", "{", "[]", r#"{"run_id":"../..","resource":7,"stem":9}"#] {
        let mut made = Handmade::new(2);
        made.identity(json);
        let recording = made.read();
        let identity = recording.identity();
        assert_eq!((identity.run_id.as_ref(), &*identity.stem), (None, ""), "{json}");
        assert!(identity.resource.attributes.is_empty());
    }
    let made = Handmade::new(2).word(header::IDENTITY_LEN, u64::MAX);
    assert_eq!(made.read().identity().stem, "");
}

#[test]
fn times_follow_the_line_that_held_when_they_were_taken() {
    let mut steeper = line(1_000_000);
    steeper.rate *= 2;
    let made = with_records(&[
        Record { begin: 999_999, end: 1_000_010, ..Record::ended(1) }.words(),
        Record { begin: 1_000_100, end: 1_000_000, ..Record::ended(2) }.words(),
    ]);
    let at = (header::ANCHOR_RING + header::ANCHOR) / 8;
    let made = made.word(at + 2, steeper.rate);
    let snapshot = made.snapshot();
    let [first, second] = &snapshot.spans[..] else { panic!("{:?}", snapshot.spans) };
    assert_eq!((first.begin(), first.end()), (EPOCH + 999_999, Some(EPOCH + 1_000_020)));
    assert_eq!(second.end(), Some(second.begin()), "an end before its begin is its begin");
    assert!(!first.is_uncertain());
}

#[test]
fn times_are_uncertain_before_the_second_anchor_and_before_the_oldest_that_is_left() {
    let made = with_records(&[Record::ended(1).words()]);
    assert!(made.clone().word(header::ANCHOR_COUNT, 1).snapshot().spans[0].is_uncertain());
    let none = made.clone().word(header::ANCHOR_COUNT, 0).snapshot();
    assert!(none.spans[0].is_uncertain() && none.spans[0].begin() == 0);

    let late = Record { begin: 5_000_000_000, end: 5_000_000_001, ..Record::ended(2) };
    let made = with_records(&[Record::ended(1).words(), late.words()]);
    let many = header::ANCHORS as u64 + 10;
    let wrapped = (2..many).fold(made, |made, at| made.anchor(line(at * 1_000_000)));
    let snapshot = wrapped.snapshot();
    assert!(snapshot.spans[0].is_uncertain(), "it began before the oldest anchor");
    assert!(!snapshot.spans[1].is_uncertain());
    assert_eq!(snapshot.spans[0].begin(), EPOCH + 10);
}

#[test]
fn a_dead_recordings_now_is_its_last_sign_of_life() {
    let late = side(1, 3_000_000, kind::EVENT, &[text("e"), keyed(&[])].concat());
    let made = with_records(&[Record { sides: 1, ..Record::open(1) }.words(), late]);
    let snapshot = made.snapshot();
    assert_eq!(snapshot.at, EPOCH + 3_000_000);
    assert_eq!(snapshot.age(&snapshot.spans[0]), 3_000_000 - 10);
}

#[test]
fn a_small_chunk_is_a_chunk_and_the_head_of_each_counts() {
    let records: Vec<Vec<Vec<u64>>> =
        (1..=16).map(|span| vec![Record::ended(span).words()]).collect();
    let chunks: Vec<&[Vec<u64>]> = records.iter().map(Vec::as_slice).collect();
    let made = Handmade::new(3).small_chunks(2, &chunks);
    assert_eq!(made.snapshot().spans.len(), 16);
    let ninth = (2 * BLOCK + 9 * SMALL_CHUNK) / 8;
    let one_less = made.word(ninth + chunk::SEQUENCE, 1).snapshot();
    assert_eq!((one_less.spans.len(), one_less.damage.busy), (15, 1));
}

#[test]
fn a_file_that_is_cut_has_what_is_left_of_it() {
    let made = with_records(&[Record::ended(1).words(), Record::ended(2).words()]);
    let whole = made.bytes();
    let second = 2 * BLOCK + chunk::HEAD + 64;
    let found = |len: usize| Recording::from_bytes(&whole[..len]).map(|r| r.snapshot().spans.len());
    assert_eq!(found(second + 64).ok(), Some(2));
    assert_eq!(found(second + 63).ok(), Some(1));
    assert_eq!(found(2 * BLOCK + 3).ok(), Some(0));
    assert!(matches!(found(BLOCK - 1), Err(ReadError::TooShort { .. })));
    assert!(matches!(found(8), Err(ReadError::TooShort { len: 8 })));
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let refused = |magic: u64| Recording::from_bytes(&Handmade::new(1).word(0, magic).bytes());
    assert!(matches!(refused(0), Err(ReadError::Unfinished)));
    assert!(matches!(Recording::from_bytes(&[]), Err(ReadError::Unfinished)));
    let dir = handmade::Dir::new();
    let empty = dir.write("empty.recording", &[]);
    assert!(matches!(Recording::open(empty), Err(ReadError::Unfinished)));
    assert!(matches!(refused(MAGIC + 1), Err(ReadError::Version { version: '2' })));
    assert!(matches!(refused(MAGIC.swap_bytes()), Err(ReadError::ByteOrder)));
    assert!(matches!(refused(0x7f45_4c46), Err(ReadError::NotARecording)));
    let missing = Recording::open("/nonexistent/a.recording").expect_err("it is not there");
    assert!(missing.to_string().contains("/nonexistent/a.recording"), "{missing}");
    let directory = Recording::open(std::env::temp_dir());
    assert!(matches!(directory, Err(ReadError::NotARecording)));
}

#[test]
fn the_lock_says_whether_the_writer_lives() {
    let dir = handmade::Dir::new();
    let path = dir.write("a.recording", &with_records(&[Record::open(1).words()]).bytes());
    let recording = Recording::open(&path).expect("a recording");
    assert_eq!(recording.is_alive(), Some(false));
    assert_eq!(recording.identity().stem, STEM);

    let writer = std::fs::File::open(&path).expect("the file");
    writer.lock().expect("nobody else has it");
    let recording = Recording::open(&path).expect("a recording");
    assert_eq!((recording.is_alive(), recording.state()), (Some(true), State::Running));
    let snapshot = recording.snapshot();
    assert!(snapshot.at > EPOCH + 1_000_000_000, "the time is now: {}", snapshot.at);
    drop(writer);
    assert_eq!(recording.is_alive(), Some(false));
    assert_eq!(recording.snapshot().spans.len(), 1);
}

#[test]
fn a_first_anchor_is_enough_for_a_reader_of_the_same_boot() {
    let Ok(boot) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return println!("skipped: this system does not name its boots");
    };
    let uptime = std::fs::read_to_string("/proc/uptime").expect("it names its boots");
    let seconds: f64 = uptime.split(' ').next().and_then(|s| s.parse().ok()).expect("seconds");
    let now = (seconds * 1e9) as u64;
    let mut made = with_records(&[Record { begin: now, ..Record::open(1) }.words()]);
    made.words[header::ANCHOR_COUNT] = 0;
    made.identity(&format!(r#"{{"boot_id":"{}"}}"#, boot.trim()));
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    let wall = (unix.as_nanos() as u64 - now) as i64;
    let made = made.anchor(Anchor { wall, ..line(now - 1_000_000) });

    let dir = handmade::Dir::new();
    let path = dir.write("a.recording", &made.bytes());
    let dead = Recording::open(&path).expect("a recording").snapshot();
    assert!(dead.spans[0].is_uncertain());

    let writer = std::fs::File::open(&path).expect("the file");
    writer.lock().expect("nobody else has it");
    let alive = Recording::open(&path).expect("a recording").snapshot();
    assert!(!alive.spans[0].is_uncertain());
    let age = alive.age(&alive.spans[0]);
    assert!(age < 3_600_000_000_000, "by the monotonic clock it is young: {age} ns");
}
