//! Blocks of lines become batches of spans: on this thread, or on several.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use memchr::memchr;
use stagetrace_wire::otlp::protobuf::read_request;

use super::blocks::{Block, Blocks};
use super::input::Input;
use super::line::{self, Held};
use super::progress::Progress;
use super::report::FileReport;
use super::scan::Buffers;
use crate::store::{Batch, Caches, Encoder, Place, Standing, Store, Tables};

/// From so many bytes on, several threads pay.
const MANY: u64 = 8 << 20;
/// More threads would wait for the one that takes the spans in.
const MAX_THREADS: usize = 8;

/// What a thread needs to read lines, and uses again.
#[derive(Debug, Default)]
pub(super) struct Reader {
    caches: Caches,
    buffers: Buffers,
    /// The number of the file that is read.
    pub(super) file: u32,
    pub(super) progress: Arc<Progress>,
}

/// The spans of a block, and what it says of its lines.
#[derive(Default)]
struct Parsed {
    batch: Batch,
    /// Bytes of the block.
    bytes: u64,
    /// Of this block alone: its first line is line 1.
    report: FileReport,
}

/// Reads what a file has up to a length. Spans go into the store, in the order of the file.
pub(super) fn read_on(
    blocks: &mut Blocks,
    input: &mut Input,
    len: u64,
    reader: &mut Reader,
    store: &mut Store,
    report: &mut FileReport,
) -> io::Result<()> {
    let is_first = blocks.read() == 0;
    if len.saturating_sub(blocks.read()) < MANY {
        let mut is_first = is_first;
        while let Some(block) = blocks.next(input, len)? {
            let parsed = reader.parse(&block, is_first, store.shared_tables());
            is_first = false;
            reader.progress.add(parsed.bytes, parsed.batch.spans.len());
            take(parsed, store, report);
        }
        return Ok(());
    }
    // While several threads read, they have the tables, and this one the rest of the store.
    let tables = store.lend_tables();
    let number = reader.file;
    let result = read_on_many(blocks, input, len, &tables, (number, is_first), |parsed| {
        reader.progress.add(parsed.bytes, parsed.batch.spans.len());
        take(parsed, store, report);
    });
    store.return_tables(tables);
    result
}

/// Reads a piece of a file again.
pub(super) fn read_again(
    input: &mut Input,
    place: Place,
    reader: &mut Reader,
    store: &Store,
) -> io::Result<Batch> {
    let bytes = bytes_of(input, place)?;
    let block = Block { start: place.start, bytes, ..Block::default() };
    Ok(reader.parse(&block, place.start == 0, store.shared_tables()).batch)
}

/// Reads a message again.
pub(super) fn message_again(
    input: &mut Input,
    place: Place,
    reader: &mut Reader,
    store: &Store,
) -> io::Result<Batch> {
    let bytes = bytes_of(input, place)?;
    let parsed = reader.parse_message(&bytes, place.start, store);
    parsed.map(|(batch, _)| batch).map_err(io::Error::other)
}

fn bytes_of(input: &mut Input, place: Place) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.read(place.start, usize::try_from(place.len).unwrap_or(usize::MAX), &mut bytes)?;
    Ok(bytes)
}

/// Reads a last line that lacks its end, if it is whole. Returns whether it is.
pub(super) fn read_pending(
    start: u64,
    pending: &[u8],
    is_first: bool,
    reader: &mut Reader,
    store: &mut Store,
    report: &mut FileReport,
) -> bool {
    if !line::is_whole(without_bom(pending, is_first).trim_ascii()) {
        return false;
    }
    let block = Block { start, bytes: pending.to_vec(), ..Block::default() };
    let parsed = reader.parse(&block, is_first, store.shared_tables());
    reader.progress.add(parsed.bytes, parsed.batch.spans.len());
    take(parsed, store, report);
    true
}

fn read_on_many(
    blocks: &mut Blocks,
    input: &mut Input,
    len: u64,
    tables: &Mutex<Tables>,
    (file_number, is_first): (u32, bool),
    mut take: impl FnMut(Parsed),
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(2, NonZero::get).min(MAX_THREADS);
    let input = Mutex::new((0_u64, blocks, input));
    // Each thread reads a block when it is free; none may run far ahead of the others.
    let next = || {
        let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, blocks, bytes) = &mut *input;
        let block = blocks.next(bytes, len);
        *number += 1;
        block.map(|block| block.map(|block| (*number - 1, block))).transpose()
    };
    let (send, receive) = sync_channel::<io::Result<(u64, Parsed)>>(threads);
    let mut result = Ok(());
    thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                let mut reader = Reader { file: file_number, ..Reader::default() };
                while let Some(block) = next() {
                    let parsed = block.map(|(number, block)| {
                        (number, reader.parse(&block, is_first && number == 0, tables))
                    });
                    if send.send(parsed).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut wanted = 0;
        for parsed in receive {
            match parsed {
                Ok((number, parsed)) => drop(waiting.insert(number, parsed)),
                Err(error) => {
                    result = Err(error);
                    return;
                }
            }
            while let Some(parsed) = waiting.remove(&wanted) {
                take(parsed);
                wanted += 1;
            }
        }
    });
    result
}

fn take(parsed: Parsed, store: &mut Store, report: &mut FileReport) {
    report.add(parsed.report);
    store.take(parsed.batch);
}

impl Reader {
    fn parse(&mut self, block: &Block, is_first: bool, tables: &Mutex<Tables>) -> Parsed {
        let mut encoder = Encoder::new(tables, &mut self.caches);
        let mut report = FileReport::default();
        for _ in 0..block.too_long {
            report.add_damaged(line::too_long());
        }
        report.lines += block.taken;
        let mut rest = without_bom(&block.bytes, is_first);
        while !rest.is_empty() {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let read = line::read(&rest[..end], &mut encoder, &mut self.buffers);
            match read {
                Ok(held) => report.add_line(held),
                Err(damage) => report.add_damaged(damage),
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        let mut batch = encoder.take();
        // What live files say is replaced by what comes, and paths are in no other place.
        if report.live_lines == 0 {
            let len = block.bytes.len() as u64;
            batch.place = Some(Place { file: self.file, start: block.start, len });
        }
        Parsed { batch, bytes: block.bytes.len() as u64, report }
    }

    /// Reads a document: one JSON value over many lines.
    pub(super) fn document(&mut self, text: &[u8], store: &mut Store) -> Result<Held, String> {
        let mut encoder = Encoder::new(store.shared_tables(), &mut self.caches);
        let held = line::read(without_bom(text, true), &mut encoder, &mut self.buffers)?;
        let batch = encoder.take();
        self.progress.add(text.len() as u64, batch.spans.len());
        store.take(batch);
        Ok(held)
    }

    /// Reads a message of OTLP in protobuf, which begins there in the file.
    pub(super) fn message(
        &mut self,
        bytes: &[u8],
        start: u64,
        store: &mut Store,
    ) -> Result<Held, String> {
        let (batch, held) = self.parse_message(bytes, start, store)?;
        store.take(batch);
        Ok(held)
    }

    fn parse_message(
        &mut self,
        bytes: &[u8],
        start: u64,
        store: &Store,
    ) -> Result<(Batch, Held), String> {
        let contents = read_request(bytes).map_err(|malformed| malformed.to_string())?;
        let file = self.file;
        let mut encoder = self.encoder(store);
        for span in &contents.spans {
            encoder.span(span, Standing::WrittenEnd);
        }
        let mut batch = encoder.take();
        batch.place = Some(Place { file, start, len: bytes.len() as u64 });
        let refused = contents.report.refused_spans;
        Ok((batch, Held { refused, is_known: true, ..Held::default() }))
    }

    pub(super) fn encoder<'t>(&'t mut self, store: &'t Store) -> Encoder<'t> {
        Encoder::new(store.shared_tables(), &mut self.caches)
    }
}

/// Without the byte-order mark that some editors put before UTF-8.
fn without_bom(text: &[u8], is_first: bool) -> &[u8] {
    let mark: &[u8] = if is_first { b"\xef\xbb\xbf" } else { b"" };
    text.strip_prefix(mark).unwrap_or(text)
}
