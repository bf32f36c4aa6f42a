//! What spans of one class have in common, kept once: a run has a few dozen of them.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use stagetrace_wire::span::{SpanKind, StatusCode};

use super::facts::Failure;
use super::segments::Segments;
use super::tables::{Name, table_bytes};

/// What spans of one class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub(super) name: Name,
    pub(super) stage: Name,
    pub(super) origin: u32,
    pub(super) failure: Failure,
    pub(super) kind: SpanKind,
    pub(super) code: StatusCode,
    pub(super) depth: u8,
    pub(super) is_failed: bool,
}

/// Every class, by number.
#[derive(Debug, Default)]
pub(super) struct Classes {
    all: Segments<Class>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Classes {
    /// The number of a class.
    pub(super) fn number(&mut self, class: Class) -> u32 {
        let Self { all, places, hasher } = self;
        let hash = hasher.hash_one(class);
        if let Some(number) = places.find(hash, |&number| all[number as usize] == class) {
            return *number;
        }
        let number = all.len() as u32;
        all.push(class);
        places.insert_unique(hash, number, |&other| hasher.hash_one(all[other as usize]));
        number
    }

    pub(super) fn get(&self, number: u32) -> &Class {
        &self.all[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.all.bytes() + table_bytes::<u32>(self.places.capacity())
    }
}
