//! The spool: chunks that had to make room in a recording, read as further blocks of it.

use super::Damage;
use super::view::View;
use super::walk::{Kind, heads};
use super::words::MAX_BYTES;
use crate::recording::layout::{BLOCK, SMALL_CHUNK, chunk, slot};
use crate::sync::AtomicU64;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What tells one use of a chunk from all others: its sequence number, its tail, and of its first record begin, span and
/// trace.
type Use = [u64; 6];

/// The chunks of a spool, as blocks.
#[derive(Debug, Default)]
pub(super) struct Spooled {
    pub(super) blocks: Vec<AtomicU64>,
    /// A head made no sense; what follows it is left out.
    pub(super) is_damaged: bool,
}

/// Reads a spool, without what still stands in the recording and without a chunk that was torn off.
pub(super) fn read(path: &Path, recording: View<'_>) -> io::Result<Spooled> {
    let mut file = File::open(path)?.take(MAX_BYTES);
    let known = uses(recording);
    let mut spooled = Spooled::default();
    // Small chunks share blocks, large ones do not.
    let mut small = Vec::new();
    let mut bytes = vec![0; BLOCK];
    while is_filled(&mut file, &mut bytes[..SMALL_CHUNK])? {
        let kind = word(&bytes, chunk::KIND);
        let size = (kind >> 32) as usize;
        if kind as u32 != chunk::RECORDS || !matches!(size, SMALL_CHUNK | BLOCK) {
            spooled.is_damaged = true;
            break;
        }
        if !is_filled(&mut file, &mut bytes[SMALL_CHUNK..size])? {
            break;
        }
        if known.contains(&use_of(|at| word(&bytes, at))) {
            continue;
        }
        let into = if size == BLOCK { &mut spooled.blocks } else { &mut small };
        into.extend((0..size / 8).map(|at| AtomicU64::new(word(&bytes, at))));
    }
    // The rest of the last block holds nothing.
    small.resize_with(small.len().next_multiple_of(BLOCK / 8), || AtomicU64::new(0));
    spooled.blocks.append(&mut small);
    Ok(spooled)
}

/// What the recording's chunks hold now. A process that was killed between spooling a chunk and using it anew has it twice.
fn uses(recording: View<'_>) -> HashSet<Use> {
    let mut damage = Damage::default();
    let chunks = heads(recording, &mut damage).filter(|head| matches!(head.kind, Kind::Records(_)));
    chunks.map(|head| use_of(|at| recording.load(head.at + at))).collect()
}

fn use_of(word: impl Fn(usize) -> u64) -> Use {
    const FIRST: usize = chunk::HEAD / 8;
    let places = [slot::BEGIN, slot::SPAN, slot::TRACE, slot::TRACE + 1].map(|at| FIRST + at);
    let [begin, span, upper, lower] = places.map(&word);
    [word(chunk::SEQUENCE), word(chunk::TAIL), begin, span, upper, lower]
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes[at * 8..].first_chunk().copied();
    eight.map_or(0, u64::from_ne_bytes)
}

/// Fills the buffer; whether there was that much.
fn is_filled(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}
