//! A reader beside a writer that never waits for it: what it sees is whole, or not there.

use handmade::{Dir, Handmade, Record, TRACE, keyed, side, site, text};
use memmap2::{MmapOptions, MmapRaw};
use stagetrace_wire::recording::layout::{BLOCK, chunk, header, side as kind, slab, slot};
use stagetrace_wire::recording::read::{RecordedSpan, Recording};
use stagetrace_wire::recording::value::{Tag, ValueRef};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

mod handmade;

/// Spans of a round, so many that a reader is most of the time in their midst.
const SPANS: u64 = 300;
/// How long each test looks, or longer, until it has looked and been written often enough.
const LOOK: Duration = Duration::from_millis(700);
const ENOUGH: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// The writer's side of a recording: its file, locked and mapped for writing.
struct Written {
    _dir: Dir,
    path: PathBuf,
    map: MmapRaw,
    _lock: File,
}

impl Written {
    fn new(made: &Handmade) -> Written {
        let dir = Dir::new();
        let path = dir.write("live.recording", &made.bytes());
        let file = File::options().read(true).write(true).open(&path).expect("the file");
        file.lock().expect("nobody else has it");
        let map = MmapOptions::new().map_raw(&file).expect("a mapping");
        Written { _dir: dir, path, map, _lock: file }
    }

    fn words(&self) -> &[AtomicU64] {
        let len = self.map.len() / 8;
        // SAFETY: the mapping is as long, begins at a page, and is changed through atomics only.
        unsafe { std::slice::from_raw_parts(self.map.as_mut_ptr().cast(), len) }
    }

    /// Runs a writer until the reader has looked long enough; how often each came round.
    fn watch(&self, write: impl Fn(u64) + Sync, mut look: impl FnMut(&Recording)) -> (u64, u64) {
        let stop = AtomicBool::new(false);
        let rounds = AtomicU64::new(0);
        let mut looks = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    write(rounds.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
            let recording = Recording::open(&self.path).expect("a recording");
            assert_eq!(recording.is_alive(), Some(true));
            let begun = Instant::now();
            // A failure below must not leave the writer running.
            let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let few = |looks| looks < ENOUGH || rounds.load(Ordering::Relaxed) < ENOUGH;
                while begun.elapsed() < if few(looks) { PATIENCE } else { LOOK } {
                    look(&recording);
                    looks += 1;
                }
            }));
            stop.store(true, Ordering::Relaxed);
            if let Err(panic) = looked {
                std::panic::resume_unwind(panic);
            }
        });
        (rounds.into_inner(), looks)
    }
}

fn store(words: &[AtomicU64], at: usize, values: &[u64]) {
    for (word, value) in words[at..].iter().zip(values) {
        word.store(*value, Ordering::Relaxed);
    }
}

/// Every part of the span tells the same number.
fn check(span: &RecordedSpan) -> u64 {
    let (trace, id) = span.identity();
    let number = id.to_u64();
    assert_eq!(trace.to_u128() as u64, number, "the trace of span {number}");
    assert_eq!(span.parent().map(|id| id.to_u64()), Some(number), "its parent");
    for (key, value) in span.attributes() {
        match value {
            ValueRef::I64(value) => assert_eq!(value as u64, number, "its attribute {key}"),
            ValueRef::Str(text) if key == "text" => {
                assert_eq!(text, number.to_string(), "its text");
            }
            _ => {}
        }
    }
    number
}

/// A span of which everything is the same number.
fn uniform(number: u64) -> Record {
    let digits = text(&number.to_string());
    Record {
        parent: number,
        trace: [TRACE[0], number],
        begin: number,
        inline: vec![Some((Tag::I64, vec![number])), Some((Tag::Str, digits))],
        ..Record::ended(number)
    }
}

#[test]
fn a_reader_never_mixes_the_spans_of_a_recycled_chunk() {
    let made = Handmade::new(3).table(1, &[&site(1, "step", &["number", "text"])]).chunk(2, &[]);
    let written = Written::new(&made);
    let words = &written.words()[2 * BLOCK / 8..];
    let write = |round: u64| {
        // As the writer recycles: odd, then the tail, then even; then records, then their tail.
        let sequence = words[chunk::SEQUENCE].load(Ordering::Relaxed);
        words[chunk::SEQUENCE].store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        words[chunk::TAIL].store(chunk::HEAD as u64, Ordering::Relaxed);
        words[chunk::SEQUENCE].store(sequence + 2, Ordering::Release);
        fence(Ordering::Release);
        let mut at = chunk::HEAD / 8;
        for number in round * SPANS + 1..round * SPANS + SPANS {
            // Of changing sizes, so that no record begins where one of the round before did.
            let mut record = uniform(number);
            record.inline.resize(2 + (round % 9) as usize, Some((Tag::I64, vec![number])));
            let record = record.words();
            store(words, at, &record);
            at += record.len();
            words[chunk::TAIL].store(at as u64 * 8, Ordering::Release);
        }
    };
    let mut seen = 0;
    let (rounds, looks) = written.watch(write, |recording| {
        let snapshot = recording.snapshot();
        let numbers: Vec<u64> = snapshot.spans.iter().map(check).collect();
        let rounds = numbers.iter().map(|number| number / SPANS);
        assert!(rounds.clone().max() == rounds.clone().min(), "of one round: {numbers:?}");
        assert_eq!(snapshot.damage.chunks, 0, "{numbers:?}");
        seen += numbers.len();
    });
    assert!(rounds.min(looks) >= ENOUGH && seen > 10, "{rounds} rounds, {looks} looks, {seen}");
}

#[test]
fn a_reader_never_mixes_the_spans_of_a_slab_slot() {
    let made = Handmade::new(3).table(1, &[&site(1, "step", &["number", "text"])]).slab(2, &[]);
    let written = Written::new(&made);
    let words = &written.words()[2 * BLOCK / 8 + chunk::HEAD / 8..];
    let write = |round: u64| {
        for number in 0..SPANS as usize {
            let words = &words[number * slab::WORDS..(number + 1) * slab::WORDS];
            let record = Record { end: 0, ..uniform(round * SPANS + number as u64) };
            let size = (slot::WORDS + 4) as u64;
            let mut record = record.words();
            record[slot::META] = record[slot::META] & !(0xffff << 32) | size << 32;
            let generation = words[slab::GENERATION].load(Ordering::Relaxed);
            words[slab::GENERATION].store((generation + 2) | 1, Ordering::Release);
            fence(Ordering::Release);
            store(words, 0, &record[..slot::WORDS]);
            store(words, slab::ATTRIBUTES, &record[slot::WORDS..]);
            let generation = words[slab::GENERATION].load(Ordering::Relaxed);
            words[slab::GENERATION].store((generation + 1) & !1, Ordering::Release);
        }
    };
    let mut seen = 0;
    let (rounds, looks) = written.watch(write, |recording| {
        let snapshot = recording.snapshot();
        seen += snapshot.spans.iter().map(check).count();
        assert!(snapshot.spans.iter().all(RecordedSpan::is_open));
        assert_eq!(snapshot.damage.records, 0);
    });
    assert!(rounds.min(looks) >= ENOUGH && seen > 10, "{rounds} rounds, {looks} looks, {seen}");
}

#[test]
fn a_reader_that_sees_a_failed_span_as_ended_sees_its_failure() {
    let made = Handmade::new(4).table(1, &[&site(1, "step", &[])]).chunk(2, &[]).chunk(3, &[]);
    let written = Written::new(&made);
    // The reader comes to the details first, and must come back for those that it missed.
    let details = &written.words()[2 * BLOCK / 8..];
    let spans = &written.words()[3 * BLOCK / 8..];
    let failure = [text("IoError"), text("disk full")].concat();
    let write = |round: u64| {
        // One round, slowly; nothing is recycled.
        let number = round as usize - 1;
        std::thread::sleep(Duration::from_micros(100));
        if number >= 400 {
            return;
        }
        let record = Record { end: 0, ..Record::ended(round) }.words();
        let (at, beside) = (16 + number * 8, 16 + number * 16);
        store(spans, at, &record);
        spans[chunk::TAIL].store((at as u64 + 8) * 8, Ordering::Release);
        // The failure first, then the outcome, then the end; that is the writer's order.
        let failure = side(round, 15, kind::FAILURE, &failure);
        spans[at + slot::LIFE].fetch_add(1 << slot::SIDES_SHIFT, Ordering::Relaxed);
        store(details, beside, &failure);
        details[chunk::TAIL].store((beside + failure.len()) as u64 * 8, Ordering::Release);
        spans[at + slot::LIFE].fetch_or(5 << slot::OUTCOME_SHIFT, Ordering::Relaxed);
        spans[at + slot::END].store(20, Ordering::Release);
    };
    let mut seen = 0;
    written.watch(write, |recording| {
        for span in recording.snapshot().ended() {
            assert_eq!(span.outcome(), Some("error"), "an end is seen with its outcome");
            assert_eq!(span.status().1, "disk full", "and with its failure");
            seen += 1;
        }
    });
    assert!(seen > 100, "{seen} spans");
}

#[test]
fn a_reader_never_takes_an_anchor_that_is_being_written() {
    let made = Handmade::new(3).table(1, &[&site(1, "step", &["number"])]);
    let made = (2..header::ANCHORS as u64).fold(made, |m, at| m.anchor(handmade::line(at << 20)));
    let late = Record { begin: 1 << 40, end: 1 << 40, ..Record::ended(1) };
    let written = Written::new(&made.chunk(2, &[late.words()]));
    let words = written.words();
    let write = |_: u64| {
        let count = words[header::ANCHOR_COUNT].load(Ordering::Relaxed);
        let at = (header::ANCHOR_RING + (count as usize % header::ANCHORS) * header::ANCHOR) / 8;
        // So slowly that one is half written whenever the reader comes.
        for (word, value) in handmade::line(count << 20).to_words().into_iter().enumerate() {
            store(words, at + word, &[value]);
            std::thread::sleep(Duration::from_micros(20));
        }
        words[header::ANCHOR_COUNT].store(count + 1, Ordering::Release);
    };
    let mut times = 0;
    let (rounds, _) = written.watch(write, |recording| {
        let snapshot = recording.snapshot();
        // Every line is the same one, so any torn mixture of two gives another time.
        assert_eq!(snapshot.spans[0].begin(), handmade::EPOCH + (1 << 40));
        times += 1;
    });
    assert!(rounds.min(times) >= ENOUGH, "{rounds} anchors, {times} times");
}

#[test]
fn a_file_that_is_cut_while_it_is_mapped_is_read_as_far_as_it_goes() {
    let made = Handmade::new(4)
        .table(1, &[&site(1, "step", &[])])
        .chunk(2, &[Record::ended(1).words()])
        .chunk(3, &[side(1, 5, kind::ATTRIBUTES, &keyed(&[])), Record::ended(2).words()]);
    let written = Written::new(&made);
    let recording = Recording::open(&written.path).expect("a recording");
    assert_eq!(recording.snapshot().spans.len(), 2);
    written._lock.set_len(3 * BLOCK as u64).expect("the file is cut");
    assert_eq!(recording.snapshot().spans.len(), 1);
    written._lock.set_len(0).expect("the file is cut");
    assert_eq!(recording.snapshot().spans.len(), 0);
}
