//! Details in pieces, as they were read. The oldest make room if they can be read again.

use std::collections::VecDeque;

use super::batch::Place;

/// The details of all batches.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// Those in memory that can be read again, the oldest first.
    evictable: VecDeque<u32>,
    bytes: usize,
}

/// The details of a batch.
#[derive(Debug)]
struct Chunk {
    /// `None` if they are not in memory.
    bytes: Option<Box<[u8]>>,
    place: Option<Place>,
    /// Spans that refer to it.
    used: u32,
}

impl Chunks {
    /// The number that the next chunk will have.
    pub(super) fn next(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// Keeps details to which so many spans refer.
    pub(super) fn push(&mut self, bytes: Vec<u8>, place: Option<Place>, used: u32) {
        let number = self.next();
        self.bytes += bytes.len();
        self.chunks.push(Chunk { bytes: Some(bytes.into_boxed_slice()), place, used });
        if place.is_some() {
            self.evictable.push_back(number);
        }
    }

    /// Says that a span refers to the chunk no more. What nobody refers to is thrown away.
    pub(super) fn release(&mut self, number: u32) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        chunk.used = chunk.used.saturating_sub(1);
        if chunk.used == 0 {
            self.bytes -= chunk.bytes.take().map_or(0, |bytes| bytes.len());
            chunk.place = None;
        }
    }

    /// Throws the oldest away that can be read again. Returns whether there was one.
    pub(super) fn evict(&mut self) -> bool {
        while let Some(number) = self.evictable.pop_front() {
            let bytes = self.chunks[number as usize].bytes.take();
            if let Some(bytes) = bytes {
                self.bytes -= bytes.len();
                return true;
            }
        }
        false
    }

    /// Where a chunk is to be read again, if it is not in memory.
    pub(super) fn missing(&self, number: u32) -> Option<Place> {
        let chunk = self.chunks.get(number as usize)?;
        chunk.place.filter(|_| chunk.bytes.is_none())
    }

    /// Spans that refer to a chunk.
    pub(super) fn used(&self, number: u32) -> u32 {
        self.chunks.get(number as usize).map_or(0, |chunk| chunk.used)
    }

    /// Puts a chunk back that was read again; `None` if it is not there any more.
    pub(super) fn put_back(&mut self, number: u32, bytes: Option<Vec<u8>>) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        match bytes {
            Some(bytes) => {
                self.bytes += bytes.len();
                chunk.bytes = Some(bytes.into_boxed_slice());
                self.evictable.push_back(number);
            }
            None => chunk.place = None,
        }
    }

    pub(super) fn get(&self, number: u32) -> &[u8] {
        let chunk = self.chunks.get(number as usize);
        chunk.and_then(|chunk| chunk.bytes.as_deref()).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.chunks.capacity() * size_of::<Chunk>()
    }
}
