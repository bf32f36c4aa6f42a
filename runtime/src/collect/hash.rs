//! A hash for ids, which are random already: a few instructions instead of a few dozen.
//!
//! Trace ids may come from strangers, so each process mixes in a seed of its own.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map whose keys are ids.
pub(super) type IdMap<K, V> = HashMap<K, V, IdHash>;

/// Makes hashers with the seed of this map.
#[derive(Clone, Debug)]
pub(super) struct IdHash {
    seed: u64,
}

impl Default for IdHash {
    fn default() -> IdHash {
        IdHash { seed: RandomState::new().hash_one(0) }
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.seed)
    }
}

/// Multiplies and rotates, a word at a time.
#[derive(Debug)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    /// The best bits are the upper ones; maps use the lowest first.
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_that_count_up_fall_into_places_of_their_own() {
        let hash = IdHash::default();
        let hashes: Vec<u64> = (0..4096_u64).map(|id| hash.hash_one(id)).collect();
        let places: HashSet<u64> = hashes.iter().map(|hash| hash & 0xFFFF).collect();
        assert!(places.len() > 3500, "{} places of 65536 for 4096 ids", places.len());
        let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert_eq!(tags.len(), 128);
    }
}
