//! What many spans have in common, kept once: names, values that repeat, and who recorded.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use stagetrace_wire::span::{Attributes, Resource, Scope};

use super::known;
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
}

/// Most values that are kept once. They are texts of programs, not of requests: few, or useless.
const MAX_VALUES: usize = 1 << 16;

/// Byte strings by number and number by byte string, all in one piece of memory.
#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tables {
    pub(super) fn name(&mut self, text: &str) -> Name {
        Name(self.names.intern(text.as_bytes()))
    }

    /// The name of a text that was met.
    pub(super) fn find(&self, text: &str) -> Option<Name> {
        self.names.find(text.as_bytes()).map(Name)
    }

    pub(super) fn text(&self, name: Name) -> &str {
        str::from_utf8(self.names.get(name.0)).unwrap_or_default()
    }

    /// The number of a value that repeats; `None` if there is no room for more of them.
    pub(super) fn repeated(&mut self, value: &[u8]) -> Option<u32> {
        if self.values.ends.len() < MAX_VALUES {
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
        let number = self.origins.len() as u32;
        self.origins.push(origin);
        self.origin_places.insert(key.into(), number);
        number
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.memory() + self.values.memory()
    }
}

impl Default for Tables {
    fn default() -> Self {
        let mut names = Texts::default();
        for text in known::ALL {
            names.intern(text.as_bytes());
        }
        Self { names, values: Texts::default(), origins: Vec::new(), origin_places: HashMap::new() }
    }
}

impl Texts {
    fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.find(text) {
            return number;
        }
        // Four billion texts would not fit into memory.
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        let Self { places, hasher, bytes, ends } = self;
        let hash = hasher.hash_one(text);
        places.insert_unique(hash, number, |&other| hasher.hash_one(slice(bytes, ends, other)));
        number
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.places.find(hash, |&number| self.get(number) == text).copied()
    }

    fn get(&self, number: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, number)
    }

    fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.places.capacity() * 5
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let at = number as usize;
    let start = if at == 0 { 0 } else { ends.get(at - 1).copied().unwrap_or(0) };
    ends.get(at).and_then(|&end| bytes.get(start..end)).unwrap_or_default()
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
