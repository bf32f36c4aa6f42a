//! What many spans have in common, kept once: names, values that repeat, and who recorded.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use stagetrace_wire::span::{Attributes, Resource, Scope};

use super::arena::Arena;
use super::known;
use super::segments::Segments;
use super::value::{put_bytes, put_number, put_value};

/// A text that is kept once: the name of a span or stage, the key of an attribute, a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(crate) u32);

/// Who recorded a span: process and library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// The process.
    pub resource: Arc<Resource>,
    /// The library.
    pub scope: Arc<Scope>,
}

/// The tables of a store.
#[derive(Debug)]
pub(crate) struct Tables {
    names: Texts,
    /// Encoded values that were met more than once.
    values: Texts,
    pub(super) origins: Vec<Origin>,
    origin_places: HashMap<Box<[u8]>, u32>,
    origin_bytes: usize,
    /// Bytes of memory beyond which what is not known yet finds no room.
    max_bytes: usize,
}

/// The number of no process at all.
pub(super) const NO_ORIGIN: u32 = u32::MAX;

/// Most values that are kept once. They are texts of programs, not of requests: few, or useless.
const MAX_VALUES: usize = 1 << 16;

/// Byte strings by number, and number by byte string.
#[derive(Debug, Default)]
struct Texts {
    bytes: Arena,
    /// Where each begins, and how long it is.
    all: Segments<(u32, u32)>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tables {
    /// What a name is called that found no room.
    pub(super) const NO_ROOM: Name = Name(known::ALL.len() as u32);

    /// Says how many bytes of memory there may be more than there are.
    pub(super) fn grow_by(&mut self, bytes: usize) {
        self.max_bytes = self.bytes().saturating_add(bytes);
    }

    pub(super) fn name(&mut self, text: &str) -> Name {
        match self.is_full() {
            true => self.names.find(text.as_bytes()).map_or(Self::NO_ROOM, Name),
            false => Name(self.names.intern(text.as_bytes())),
        }
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        str::from_utf8(self.names.get(name.0)).unwrap_or_default()
    }

    /// Every name with its text.
    pub(super) fn names(&self) -> impl Iterator<Item = (Name, &str)> {
        (0..self.names.all.len() as u32).map(|number| (Name(number), self.text(Name(number))))
    }

    pub(super) fn find_name(&self, text: &str) -> Option<Name> {
        self.names.find(text.as_bytes()).map(Name)
    }

    /// The number of a value that repeats; `None` if there is no room for more of them.
    pub(super) fn repeated(&mut self, value: &[u8]) -> Option<u32> {
        if self.values.all.len() < MAX_VALUES && !self.is_full() {
            return Some(self.values.intern(value));
        }
        self.values.find(value)
    }

    pub(super) fn repeated_value(&self, number: u64) -> &[u8] {
        u32::try_from(number).map_or(&[], |number| self.values.get(number))
    }

    pub(super) fn origin(&mut self, origin: Origin) -> u32 {
        let key = encoded(&origin);
        if let Some(number) = self.origin_places.get(&*key) {
            return *number;
        }
        if self.is_full() {
            return NO_ORIGIN;
        }
        let number = self.origins.len() as u32;
        self.origins.push(origin);
        // Keys and values are allocated one by one.
        self.origin_bytes += 512 + 4 * key.len();
        self.origin_places.insert(key.into(), number);
        number
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.memory() + self.values.memory() + self.origin_bytes
    }

    fn is_full(&self) -> bool {
        self.bytes() >= self.max_bytes || self.names.bytes.is_full()
    }
}

impl Default for Tables {
    fn default() -> Self {
        let mut names = Texts::default();
        for text in known::ALL.iter().chain(&["(no room for more names)"]) {
            names.intern(text.as_bytes());
        }
        Self {
            names,
            values: Texts::default(),
            origins: Vec::new(),
            origin_places: HashMap::new(),
            origin_bytes: 0,
            max_bytes: 0,
        }
    }
}

impl Texts {
    fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.find(text) {
            return number;
        }
        // Four billion texts would not fit into memory.
        let number = self.all.len() as u32;
        self.all.push((self.bytes.push(text), text.len() as u32));
        let hash = self.hasher.hash_one(text);
        let Self { places, hasher, bytes, all } = self;
        let hash_of = |&other: &u32| hasher.hash_one(get(bytes, all, other));
        places.insert_unique(hash, number, hash_of);
        number
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.places.find(hash, |&number| self.get(number) == text).copied()
    }

    fn get(&self, number: u32) -> &[u8] {
        get(&self.bytes, &self.all, number)
    }

    fn memory(&self) -> usize {
        let places = table_bytes::<u32>(self.places.capacity());
        self.bytes.bytes() + self.all.bytes() + places
    }
}

/// Bytes of a hash table with room for so many, and of the smaller one that it is copied from when it
/// grows.
pub(super) fn table_bytes<T>(capacity: usize) -> usize {
    (size_of::<T>() + 1) * capacity * 8 / 7 * 3 / 2
}

fn get<'a>(bytes: &'a Arena, all: &Segments<(u32, u32)>, number: u32) -> &'a [u8] {
    let Some(&(at, len)) = all.get(number as usize) else { return &[] };
    bytes.get(at).get(..len as usize).unwrap_or_default()
}

/// All that an origin says.
fn encoded(origin: &Origin) -> Vec<u8> {
    let Origin { resource, scope } = origin;
    let mut out = Vec::new();
    let mut put = |attributes: &Attributes, dropped: u32, texts: &[&str]| {
        put_number(&mut out, attributes.len() as u64);
        for (key, value) in attributes {
            put_bytes(&mut out, key.as_bytes());
            put_value(&mut out, value);
        }
        put_number(&mut out, dropped.into());
        texts.iter().for_each(|text| put_bytes(&mut out, text.as_bytes()));
    };
    put(&resource.attributes, resource.dropped_attributes, &[&resource.schema_url]);
    let texts = [&*scope.name, &*scope.version, &*scope.schema_url];
    put(&scope.attributes, scope.dropped_attributes, &texts);
    out
}
