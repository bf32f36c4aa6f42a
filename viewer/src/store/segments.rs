//! A vector in pieces: what it holds never moves, so that growing takes no second copy of it.

use std::ops::{Index, IndexMut};

/// Elements by number.
#[derive(Debug)]
pub(crate) struct Segments<T> {
    /// All of the same length, but for the last.
    pieces: Vec<Vec<T>>,
}

const BITS: u32 = 14;
const PIECE: usize = 1 << BITS;

impl<T> Segments<T> {
    pub(crate) fn push(&mut self, value: T) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(value),
            // The first piece starts small, as many stores stay small.
            None => self.pieces.push(vec![value]),
            Some(_) => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(value);
                self.pieces.push(piece);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at >> BITS)?.get(at % PIECE)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.capacity() * size_of::<T>()).sum()
    }
}

impl<T: Copy> Segments<T> {
    /// Adds copies until there are so many.
    pub(crate) fn grow(&mut self, len: usize, value: T) {
        (self.len()..len).for_each(|_| self.push(value));
    }
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Index<usize> for Segments<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.pieces[at >> BITS][at % PIECE]
    }
}

impl<T> IndexMut<usize> for Segments<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at >> BITS][at % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_where_they_are_beyond_a_piece() {
        let mut numbers = Segments::default();
        (0..3 * PIECE + 5).for_each(|number| numbers.push(number));
        numbers[PIECE] = 7;
        assert_eq!((numbers.len(), numbers[2 * PIECE]), (3 * PIECE + 5, 2 * PIECE));
        assert_eq!((numbers.get(PIECE), numbers.get(3 * PIECE + 5)), (Some(&7), None));
        numbers.grow(4 * PIECE, 9);
        assert_eq!((numbers.len(), numbers[4 * PIECE - 1]), (4 * PIECE, 9));
        assert_eq!(numbers[3 * PIECE + 4], 3 * PIECE + 4);
    }
}
