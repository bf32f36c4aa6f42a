//! Recordings made by hand, word by word as the layout says: the other side of the reader.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

use stagetrace_wire::recording::layout::{BLOCK, MAGIC, SMALL_CHUNK, chunk, header, slab, slot};
use stagetrace_wire::recording::read::{Recording, Snapshot};
use stagetrace_wire::recording::time::Anchor;
use stagetrace_wire::recording::value::Tag;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

mod example;
mod listing;

pub(crate) use example::one_of_everything;
pub(crate) use listing::listing;

/// Upper and lower half of the trace that spans are of if nothing else is said.
pub(crate) const TRACE: [u64; 2] = [0xaaaa_0000_0000_0000, 0x1];
/// Unix time of tick 0.
pub(crate) const EPOCH: u64 = 1_700_000_000_000_000_000;
/// What the names of the process's files begin with.
pub(crate) const STEM: &str = "server-4711-5be07c1d";
/// The run.
pub(crate) const RUN: &str = "20260801-101500-4711-9f3c2a10";

/// What slots say of a sampled trace of level 2 whose spans are this process's.
pub(crate) const IN_A_TRACE: u64 =
    slot::ACTIVE | 1 << slot::LEVEL_SHIFT | 1 << slot::TRACE_FLAGS_SHIFT;
/// Further, that its id is random.
pub(crate) const RANDOM: u64 = 2 << slot::TRACE_FLAGS_SHIFT;

/// A recording in the making.
#[derive(Clone)]
pub(crate) struct Handmade {
    pub(crate) words: Vec<u64>,
}

/// A span's record.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) span: u64,
    pub(crate) parent: u64,
    pub(crate) trace: [u64; 2],
    pub(crate) site: u32,
    pub(crate) flags: u8,
    pub(crate) root: u64,
    /// What the slot says of the trace.
    pub(crate) known: u64,
    pub(crate) sides: u64,
    pub(crate) outcome: u8,
    pub(crate) marks: u64,
    /// Inline attributes: tag and words; `None` is absent.
    pub(crate) inline: Vec<Option<(Tag, Vec<u64>)>>,
}

impl Record {
    /// An ended span of the first site, from tick 10 to tick 20.
    pub(crate) fn ended(span: u64) -> Record {
        Record {
            begin: 10,
            end: 20,
            span,
            parent: 0,
            trace: TRACE,
            site: 1,
            flags: 0,
            root: 0,
            known: IN_A_TRACE,
            sides: 0,
            outcome: 0,
            marks: 0,
            inline: Vec::new(),
        }
    }

    /// An open one, since tick 10.
    pub(crate) fn open(span: u64) -> Record {
        Record { end: 0, ..Record::ended(span) }
    }

    /// Words of the tags and values.
    fn attributes(&self) -> Vec<u64> {
        if self.inline.is_empty() {
            return Vec::new();
        }
        let mut words = vec![0];
        for (place, value) in self.inline.iter().enumerate() {
            if let Some((tag, value)) = value {
                words[0] |= (*tag as u64) << (4 * place);
                words.extend(value);
            }
        }
        words
    }

    fn slot(&self, size: usize) -> [u64; slot::WORDS] {
        let meta = u64::from(self.site)
            | (size as u64) << 32
            | (self.inline.len() as u64) << 48
            | u64::from(self.flags) << 56;
        let life = self.root
            | self.known
            | self.sides << slot::SIDES_SHIFT
            | u64::from(self.outcome) << slot::OUTCOME_SHIFT
            | self.marks;
        let [upper, lower] = self.trace;
        [self.begin, self.end, self.span, self.parent, upper, lower, meta, life]
    }

    /// The record as it stands in a chunk.
    pub(crate) fn words(&self) -> Vec<u64> {
        let attributes = self.attributes();
        let size = (slot::WORDS + attributes.len()).next_multiple_of(slot::WORDS);
        let mut words = self.slot(size).to_vec();
        words.extend(attributes);
        words.resize(size, 0);
        words
    }
}

/// A side record of the span.
pub(crate) fn side(span: u64, tick: u64, kind: u64, payload: &[u64]) -> Vec<u64> {
    let size = (slot::WORDS + payload.len()).next_multiple_of(slot::WORDS);
    let meta = (size as u64) << 32 | u64::from(slot::SIDE) << 56;
    let mut words = vec![tick, kind, span, 0, TRACE[0], TRACE[1], meta, 0];
    words.extend(payload);
    words.resize(size, 0);
    words
}

/// A text: its length and its bytes.
pub(crate) fn text(text: &str) -> Vec<u64> {
    bytes(text.as_bytes())
}

/// Bytes: their length, and they.
pub(crate) fn bytes(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![bytes.len() as u64];
    for eight in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..eight.len()].copy_from_slice(eight);
        words.push(u64::from_ne_bytes(word));
    }
    words
}

/// The attributes of a side record.
pub(crate) fn keyed(attributes: &[(&str, Tag, Vec<u64>)]) -> Vec<u64> {
    let mut words = vec![attributes.len() as u64];
    for (key, tag, value) in attributes {
        words.extend(text(key));
        words.push(*tag as u64);
        words.extend(value);
    }
    words
}

impl Handmade {
    /// A running recording of so many blocks, the header's included, whose ticks are nanoseconds
    /// since [`EPOCH`]. It has two anchors.
    pub(crate) fn new(blocks: usize) -> Handmade {
        let mut made = Handmade { words: vec![0; blocks * BLOCK / 8] };
        made.words[header::MAGIC] = MAGIC;
        made.words[header::CLOCK] = header::CLOCK_MONOTONIC;
        made.words[header::PID] = 4711;
        made.words[header::STATE] = header::RUNNING;
        made.words[header::BLOCKS] = blocks as u64;
        made.identity(&identity());
        made.anchor(line(0)).anchor(line(1_000_000))
    }

    pub(crate) fn identity(&mut self, json: &str) {
        self.words[header::IDENTITY_LEN] = json.len() as u64;
        self.put(header::IDENTITY / 8, &bytes(json.as_bytes())[1..]);
    }

    /// Adds an anchor to the ring.
    pub(crate) fn anchor(mut self, anchor: Anchor) -> Handmade {
        let count = self.words[header::ANCHOR_COUNT];
        let at = header::ANCHOR_RING + (count as usize % header::ANCHORS) * header::ANCHOR;
        self.put(at / 8, &anchor.to_words());
        self.words[header::ANCHOR_COUNT] = count + 1;
        self
    }

    /// Makes a block the stage table, with these entries.
    pub(crate) fn table(mut self, block: usize, entries: &[&str]) -> Handmade {
        let at = block * BLOCK / 8;
        self.words[at + chunk::KIND] = u64::from(chunk::TABLE) | (BLOCK as u64) << 32;
        let words: Vec<u64> = entries.iter().flat_map(|entry| text(entry)).collect();
        self.put(at + chunk::HEAD / 8, &words);
        self.words[at + chunk::TAIL] = (chunk::HEAD + words.len() * 8) as u64;
        self
    }

    /// Makes a block one chunk with these records.
    pub(crate) fn chunk(mut self, block: usize, records: &[Vec<u64>]) -> Handmade {
        self.put_chunk(block * BLOCK / 8, BLOCK, records);
        self
    }

    /// Makes a block sixteen small chunks, each with its records.
    pub(crate) fn small_chunks(mut self, block: usize, chunks: &[&[Vec<u64>]]) -> Handmade {
        for page in 0..BLOCK / SMALL_CHUNK {
            let records = chunks.get(page).copied().unwrap_or_default();
            self.put_chunk((block * BLOCK + page * SMALL_CHUNK) / 8, SMALL_CHUNK, records);
        }
        self
    }

    /// Makes a block slab slots, with these spans in the first ones.
    pub(crate) fn slab(mut self, block: usize, spans: &[Record]) -> Handmade {
        let at = block * BLOCK / 8;
        self.words[at + chunk::KIND] = u64::from(chunk::SLAB) | (BLOCK as u64) << 32;
        self.words[at + chunk::TAIL] = chunk::HEAD as u64;
        for number in 0..slab::SLOTS {
            let at = at + chunk::HEAD / 8 + number * slab::WORDS;
            self.words[at + slab::GENERATION] = 1;
            if let Some(span) = spans.get(number) {
                let attributes = span.attributes();
                self.put(at, &span.slot(slot::WORDS + attributes.len()));
                self.words[at + slab::GENERATION] = 2;
                self.put(at + slab::ATTRIBUTES, &attributes);
            }
        }
        self
    }

    /// Sets one word.
    pub(crate) fn word(mut self, at: usize, value: u64) -> Handmade {
        self.words[at] = value;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(&self.words).to_vec()
    }

    pub(crate) fn read(&self) -> Recording {
        Recording::from_bytes(&self.bytes()).expect("it begins as a recording")
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.read().snapshot()
    }

    fn put_chunk(&mut self, at: usize, size: usize, records: &[Vec<u64>]) {
        let words = records.concat();
        self.words[at + chunk::KIND] = u64::from(chunk::RECORDS) | (size as u64) << 32;
        self.words[at + chunk::STATE] = chunk::OWNED;
        self.words[at + chunk::TAIL] = (chunk::HEAD + words.len() * 8) as u64;
        self.put(at + chunk::HEAD / 8, &words);
    }

    fn put(&mut self, at: usize, words: &[u64]) {
        self.words[at..at + words.len()].copy_from_slice(words);
    }
}

/// An anchor of a clock that counts nanoseconds since [`EPOCH`].
pub(crate) fn line(tick: u64) -> Anchor {
    Anchor { ticks: tick, monotonic: tick, rate: 1 << 32, wall: EPOCH as i64, error: 20 }
}

/// The identity of the process, as its writer puts it.
fn identity() -> String {
    let fields = [
        format!(r#""run_id":"{RUN}","process_id":"4711-5be07c1d","stem":"{STEM}""#),
        format!(r#""run_dir":"/traces/{RUN}","boot_id":"a-boot""#),
        r#""resource":{"service.name":"server","host.cpus":8,"load":0.5"#.to_owned(),
        r#""gpu":true,"tags":["a","b"]}"#.to_owned(),
        r#""schema_url":"https://opentelemetry.io/schemas/1.44.0""#.to_owned(),
    ];
    format!("{{{}}}", fields.join(","))
}

/// A site's entry in the stage table.
pub(crate) fn site(number: u32, name: &str, keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    let stage = format!(r#"{{"set":"DiffStage","name":"{name}","level":2,"within":null}}"#);
    let place = format!(r#""function":"server::{name}","file":"src/main.rs","line":{number}"#);
    format!(r#"{{"site":{number},"stage":{stage},"kind":1,"keys":[{}],{place}}}"#, keys.join(","))
}

/// A recording with one chunk of these records, whose site has the keys `a` and `b`.
pub(crate) fn with_records(records: &[Vec<u64>]) -> Handmade {
    Handmade::new(3).table(1, &[&site(1, "step", &["a", "b"])]).chunk(2, records)
}

/// A directory of the test's own, removed when it is dropped.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("stagetrace-wire-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory for the test");
        Dir(path)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file for the test");
        path
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the test's directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl std::ops::Deref for Dir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
