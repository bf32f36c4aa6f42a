//! Byte strings in pieces of memory that never move, by the place at which they begin.

/// Byte strings; where one ends must be known otherwise.
#[derive(Debug, Default)]
pub(super) struct Arena {
    /// Most are of the same length. A byte string that is longer has one of its own.
    pieces: Vec<Vec<u8>>,
    bytes: usize,
}

const BITS: u32 = 20;
const PIECE: usize = 1 << BITS;
/// Places are numbers of 32 bits, of which the greatest stands for none.
const MAX_PIECES: usize = (1 << (32 - BITS)) - 1;

impl Arena {
    /// Whether there is no place left.
    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() >= MAX_PIECES
    }

    /// Keeps bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> u32 {
        let has_room = |piece: &Vec<u8>| piece.len() + bytes.len() <= PIECE;
        if !self.pieces.last().is_some_and(has_room) {
            // The first piece starts small, as many stores stay small.
            let capacity = if self.pieces.is_empty() { 0 } else { PIECE.max(bytes.len()) };
            self.pieces.push(Vec::with_capacity(capacity));
            self.bytes += capacity;
        }
        let number = self.pieces.len() - 1;
        let piece = &mut self.pieces[number];
        let at = number << BITS | piece.len();
        let before = piece.capacity();
        piece.extend_from_slice(bytes);
        self.bytes += piece.capacity() - before;
        at as u32
    }

    /// What was kept there, and what follows it.
    pub(super) fn get(&self, at: u32) -> &[u8] {
        let piece = self.pieces.get(at as usize >> BITS);
        piece.and_then(|piece| piece.get(at as usize % PIECE..)).unwrap_or_default()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_where_they_were_put_beyond_a_piece() {
        let mut arena = Arena::default();
        let texts: Vec<Vec<u8>> = (0..60_000_usize).map(|at| vec![at as u8; at % 60]).collect();
        let places: Vec<u32> = texts.iter().map(|text| arena.push(text)).collect();
        assert!(arena.pieces.len() > 1);
        for (text, place) in texts.iter().zip(places) {
            assert!(arena.get(place).starts_with(text));
        }
        assert!(arena.get(u32::MAX).is_empty());

        let long = vec![7; 3 * PIECE];
        let places = [&long[..], b"short", &long].map(|bytes| arena.push(bytes));
        assert_eq!(arena.get(places[0]), long);
        assert_eq!(&arena.get(places[1])[..5], b"short");
        assert_eq!(arena.get(places[2]), long);
    }
}
