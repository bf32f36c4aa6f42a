//! Details in pieces, as they were read. The oldest make room if they can be read again.

use std::collections::VecDeque;

use super::batch::Place;

/// The details of all batches.
#[derive(Debug)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    /// Those that can be read again, the oldest first.
    slabs: VecDeque<Slab>,
    /// Slabs that were thrown away.
    gone: u32,
    slab_len: usize,
    bytes: usize,
}

/// The details of a batch.
#[derive(Debug)]
struct Chunk {
    held: Held,
    place: Option<Place>,
    /// Spans that refer to it.
    used: u32,
}

#[derive(Debug)]
enum Held {
    Nowhere,
    /// They cannot be read again.
    Alone(Box<[u8]>),
    Within {
        slab: u32,
        start: u32,
        end: u32,
    },
}

/// Many chunks in one piece of memory, so large that an allocator gives it back to the system when it
/// is freed.
#[derive(Debug)]
struct Slab {
    bytes: Vec<u8>,
    /// Chunks that somebody refers to.
    used: u32,
}

/// Most bytes of a slab that has many chunks.
const SLAB: usize = 32 << 20;

impl Chunks {
    /// Of a store of at most so many bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        let slab_len = (max_bytes / 16).clamp(1 << 16, SLAB);
        Self { chunks: Vec::new(), slabs: VecDeque::new(), gone: 0, slab_len, bytes: 0 }
    }

    /// The number that the next chunk will have.
    pub(super) fn next(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// Keeps details to which so many spans refer.
    pub(super) fn push(&mut self, bytes: Vec<u8>, place: Option<Place>, used: u32) {
        let held = match place {
            Some(_) => self.put(&bytes),
            None => {
                self.bytes += bytes.len();
                Held::Alone(bytes.into_boxed_slice())
            }
        };
        self.chunks.push(Chunk { held, place, used });
    }

    /// Says that a span refers to the chunk no more. What nobody refers to is thrown away.
    pub(super) fn release(&mut self, number: u32) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        chunk.used = chunk.used.saturating_sub(1);
        if chunk.used > 0 {
            return;
        }
        chunk.place = None;
        match std::mem::replace(&mut chunk.held, Held::Nowhere) {
            Held::Nowhere => {}
            Held::Alone(bytes) => self.bytes -= bytes.len(),
            Held::Within { slab, .. } => {
                let slab = slab.checked_sub(self.gone);
                if let Some(slab) = slab.and_then(|at| self.slabs.get_mut(at as usize)) {
                    slab.used -= 1;
                    if slab.used == 0 {
                        self.bytes -= std::mem::take(&mut slab.bytes).len();
                    }
                }
            }
        }
    }

    /// Throws the oldest away that can be read again. Returns whether there were any.
    pub(super) fn evict(&mut self) -> bool {
        let Some(slab) = self.slabs.pop_front() else { return false };
        self.gone += 1;
        self.bytes -= slab.bytes.len();
        true
    }

    /// Where a chunk is to be read again, if it is not in memory.
    pub(super) fn missing(&self, number: u32) -> Option<Place> {
        let chunk = self.chunks.get(number as usize)?;
        chunk.place.filter(|_| self.bytes_of(chunk).is_none())
    }

    /// Spans that refer to a chunk.
    pub(super) fn used(&self, number: u32) -> u32 {
        self.chunks.get(number as usize).map_or(0, |chunk| chunk.used)
    }

    /// Puts a chunk back that was read again; `None` if it is not there any more.
    pub(super) fn put_back(&mut self, number: u32, bytes: Option<Vec<u8>>) {
        let held = bytes.map(|bytes| self.put(&bytes));
        let Some(chunk) = self.chunks.get_mut(number as usize) else { return };
        match held {
            Some(held) => chunk.held = held,
            None => chunk.place = None,
        }
    }

    pub(super) fn get(&self, number: u32) -> &[u8] {
        let chunk = self.chunks.get(number as usize);
        chunk.and_then(|chunk| self.bytes_of(chunk)).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// Copies details to the end of the last slab.
    fn put(&mut self, bytes: &[u8]) -> Held {
        let has_room = |slab: &Slab| slab.bytes.capacity() - slab.bytes.len() >= bytes.len();
        if !self.slabs.back().is_some_and(has_room) {
            let bytes = Vec::with_capacity(self.slab_len.max(bytes.len()));
            self.slabs.push_back(Slab { bytes, used: 0 });
        }
        let number = self.gone + self.slabs.len() as u32 - 1;
        let slab = &mut self.slabs[(number - self.gone) as usize];
        let start = slab.bytes.len() as u32;
        slab.bytes.extend_from_slice(bytes);
        slab.used += 1;
        self.bytes += bytes.len();
        Held::Within { slab: number, start, end: slab.bytes.len() as u32 }
    }

    fn bytes_of<'a>(&'a self, chunk: &'a Chunk) -> Option<&'a [u8]> {
        match &chunk.held {
            Held::Nowhere => None,
            Held::Alone(bytes) => Some(bytes),
            Held::Within { slab, start, end } => {
                let slab = self.slabs.get(slab.checked_sub(self.gone)? as usize)?;
                slab.bytes.get(*start as usize..*end as usize)
            }
        }
    }
}
