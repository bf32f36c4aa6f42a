//! The encoder: attribute by attribute, whoever reads them, a span becomes what the store keeps.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{Span, SpanKind, StatusCode};

use super::batch::{Batch, Parsed, Standing};
use super::facts::{Facts, Failure, Label};
use super::tables::{NO_ORIGIN, Name, Origin, Tables};
use super::value::{put_bytes, put_number, tag};

/// What an encoder remembers of the tables, so that it rarely has to ask for them.
#[derive(Debug)]
pub(crate) struct Caches {
    names: HashMap<Box<str>, Name>,
    values: HashMap<Box<[u8]>, u32>,
    origins: HashMap<Box<[u8]>, u32>,
    last_origin: Option<(Origin, u32)>,
    /// Bytes that may still be remembered.
    room: usize,
    /// Hashes of values that were met once.
    met: Box<[u32; MET]>,
    /// Of the span that is being encoded.
    attributes: Vec<u8>,
    rest: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Values that are remembered until they are met again; a power of two.
const MET: usize = 1 << 12;
/// Most bytes that are remembered, and what each entry takes beside its text. Beyond, the tables are
/// asked.
const CACHE: usize = 4 << 20;
const ENTRY: usize = 32;
/// Values of these many bytes are kept once if they repeat: below, the number would not be shorter.
const REPEATING: std::ops::RangeInclusive<usize> = 4..=512;
/// Longest text that is kept as a name. Of longer messages the beginning is.
const MAX_NAME: usize = 4096;

/// Encodes spans, one after the other.
#[derive(Debug)]
pub(crate) struct Encoder<'t> {
    tables: &'t Mutex<Tables>,
    pub(super) caches: &'t mut Caches,
    pub(crate) batch: Batch,
    /// Of the span that is being encoded.
    pub(super) stage: Option<(u8, Name)>,
    pub(super) label: Label,
    pub(super) facts: Facts,
    pub(super) failure: Failure,
    exception: Failure,
    pub(super) is_failed: bool,
    pub(super) is_lost: bool,
    pub(super) pending: Option<SpanId>,
    attribute_count: u64,
    rest_of: u8,
    lacks_names: bool,
}

/// The parts of a span's details that are rarely there, as bits.
pub(crate) mod part {
    pub(crate) const TRACE_STATE: u8 = 1;
    pub(crate) const FLAGS: u8 = 2;
    pub(crate) const DROPPED: u8 = 4;
    pub(crate) const EVENTS: u8 = 8;
    pub(crate) const LINKS: u8 = 16;
    pub(crate) const PATH: u8 = 32;
    pub(crate) const MESSAGE: u8 = 64;
}

/// A value as far as facts are made of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    Text(&'a str),
    Int(i64),
    Double(f64),
    Bool(bool),
    Other,
}

/// What a span begins with.
pub(crate) struct Head<'a> {
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: &'a str,
    pub(crate) kind: SpanKind,
    pub(crate) code: StatusCode,
    pub(crate) message: &'a str,
    pub(crate) origin: u32,
    pub(crate) standing: Standing,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            names: HashMap::new(),
            values: HashMap::new(),
            origins: HashMap::new(),
            last_origin: None,
            room: CACHE,
            met: Box::new([0; MET]),
            attributes: Vec::new(),
            rest: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl Caches {
    /// Whether another text may be remembered, which then is.
    fn has_room(&mut self, text: usize) -> bool {
        let rest = self.room.checked_sub(text.saturating_add(ENTRY));
        self.room = rest.unwrap_or(self.room);
        rest.is_some()
    }
}

impl<'t> Encoder<'t> {
    pub(crate) fn new(tables: &'t Mutex<Tables>, caches: &'t mut Caches) -> Self {
        let mut encoder = Self {
            tables,
            caches,
            batch: Batch::default(),
            stage: None,
            label: Label::default(),
            facts: Facts::default(),
            failure: Failure::default(),
            exception: Failure::default(),
            is_failed: false,
            is_lost: false,
            pending: None,
            attribute_count: 0,
            rest_of: 0,
            lacks_names: false,
        };
        encoder.begin();
        encoder
    }

    /// Hands out what was encoded so far.
    pub(crate) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    /// Forgets what was encoded of a span that is not finished, and all after the first so many.
    pub(crate) fn back_to(&mut self, spans: usize) {
        if let Some(first) = self.batch.spans.get(spans) {
            self.batch.details.truncate(first.at as usize);
            self.batch.marks.truncate(first.mark_at as usize);
        }
        self.batch.spans.truncate(spans);
        self.begin();
    }

    /// Begins a span.
    pub(crate) fn begin(&mut self) {
        self.caches.attributes.clear();
        self.caches.rest.clear();
        self.stage = None;
        self.label = Label::default();
        self.facts = Facts::default();
        (self.failure, self.exception) = Default::default();
        (self.is_failed, self.is_lost) = (false, false);
        self.pending = None;
        self.attribute_count = 0;
        self.rest_of = 0;
        self.lacks_names = false;
    }

    /// Where the value of the next attribute is to be written.
    pub(crate) fn value(&mut self) -> &mut Vec<u8> {
        self.caches.value.clear();
        &mut self.caches.value
    }

    /// Adds an attribute whose value was just written.
    pub(crate) fn attribute(&mut self, key: &str, seen: Seen<'_>) {
        let name = self.name(key);
        self.note(name, key, seen);
        put_number(&mut self.caches.attributes, name.0.into());
        let value = std::mem::take(&mut self.caches.value);
        let number = self.repeated(&value);
        let attributes = &mut self.caches.attributes;
        match number {
            Some(number) => {
                attributes.push(tag::REPEATED);
                put_number(attributes, number.into());
            }
            None => attributes.extend_from_slice(&value),
        }
        self.caches.value = value;
        self.attribute_count += 1;
    }

    /// Notes an attribute of an `exception` event, in case the span does not say itself what failed.
    pub(crate) fn exception(&mut self, key: &str, text: &str) {
        match key {
            "exception.type" => self.exception.kind = Some(self.short_name(text)),
            "exception.message" => self.exception.message = Some(self.short_name(text)),
            _ => {}
        }
    }

    /// Adds a part of the details, in the order of the bits. `write` adds to what it is given.
    pub(crate) fn part<R>(&mut self, part: u8, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        debug_assert!(part > self.rest_of, "parts stand in the order of their bits");
        self.rest_of |= part;
        write(&mut self.caches.rest)
    }

    /// Ends the span.
    pub(crate) fn finish(&mut self, head: &Head<'_>) {
        let name = self.name(head.name);
        if !head.message.is_empty() {
            self.part(part::MESSAGE, |out| put_bytes(out, head.message.as_bytes()));
        }
        let mut failure = self.failure;
        self.is_failed |= head.code == StatusCode::Error;
        if self.is_failed {
            failure.kind = failure.kind.or(self.exception.kind);
            failure.message = failure.message.or(self.exception.message);
            if failure.message.is_none() && !head.message.is_empty() {
                failure.message = Some(self.short_name(head.message));
            }
        }
        let at = self.batch.details.len() as u32;
        let details = &mut self.batch.details;
        put_number(details, self.attribute_count);
        details.extend_from_slice(&self.caches.attributes);
        details.push(self.rest_of);
        details.extend_from_slice(&self.caches.rest);
        let marks = &mut self.batch.marks;
        let mark_at = marks.len();
        if !self.label.is_empty() {
            self.label.put(marks);
        }
        let label_len = marks.len() - mark_at;
        if !self.facts.is_empty() {
            self.facts.put(marks);
        }
        let facts_len = marks.len() - mark_at - label_len;
        let is_open = head.end == 0 || self.is_lost;
        let standing = match head.standing {
            Standing::WrittenEnd if is_open => Standing::Written,
            standing => standing,
        };
        self.batch.spans.push(Parsed {
            trace_id: head.trace_id,
            span_id: head.span_id,
            parent: head.parent,
            start: head.start,
            end: head.end,
            name,
            stage: self.stage.map_or(name, |(_, stage)| stage),
            origin: head.origin,
            kind: head.kind,
            code: head.code,
            standing,
            depth: 0,
            is_failed: self.is_failed,
            is_lost: self.is_lost,
            lacks_names: self.lacks_names,
            has_links: self.rest_of & part::LINKS != 0,
            failure,
            mark_at: mark_at as u32,
            label_len: label_len as u8,
            facts_len: facts_len as u8,
            at,
        });
        self.fold_pending();
        self.begin();
    }

    /// The last span that was finished.
    pub(crate) fn last(&mut self) -> Option<&mut Parsed> {
        self.batch.spans.last_mut()
    }

    /// The number of who recorded; `make` is called if the key was not met before.
    pub(crate) fn origin(
        &mut self,
        key: &[u8],
        make: impl FnOnce() -> Option<Origin>,
    ) -> Option<u32> {
        if let Some(origin) = self.caches.origins.get(key) {
            return Some(*origin);
        }
        let origin = lock(self.tables).origin(make()?);
        if origin != NO_ORIGIN && self.caches.has_room(key.len()) {
            self.caches.origins.insert(key.into(), origin);
        }
        Some(origin)
    }

    /// The number of who recorded a span that has been read.
    pub(super) fn origin_of(&mut self, span: &Span) -> u32 {
        let is_same = |origin: &Origin| {
            Arc::ptr_eq(&origin.resource, &span.resource) && Arc::ptr_eq(&origin.scope, &span.scope)
        };
        if let Some((last, number)) = &self.caches.last_origin
            && is_same(last)
        {
            return *number;
        }
        let origin = Origin { resource: span.resource.clone(), scope: span.scope.clone() };
        let number = lock(self.tables).origin(origin.clone());
        self.caches.last_origin = Some((origin, number));
        number
    }

    /// The number of an unknown process.
    pub(crate) fn no_origin(&mut self) -> u32 {
        NO_ORIGIN
    }

    pub(crate) fn name(&mut self, text: &str) -> Name {
        if let Some(name) = self.caches.names.get(text) {
            return *name;
        }
        let name = lock(self.tables).name(text);
        self.lacks_names |= name == Tables::NO_ROOM;
        if name != Tables::NO_ROOM && self.caches.has_room(text.len()) {
            self.caches.names.insert(text.into(), name);
        }
        name
    }

    pub(super) fn short_name(&mut self, text: &str) -> Name {
        let end = (0..=MAX_NAME.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        self.name(&text[..end.unwrap_or(0)])
    }

    fn repeated(&mut self, value: &[u8]) -> Option<u32> {
        use std::hash::BuildHasher as _;
        if !REPEATING.contains(&value.len()) {
            return None;
        }
        // Numbers are short enough, and seldom repeat.
        if !matches!(value.first(), Some(&(tag::TEXT | tag::ARRAY | tag::MAP | tag::BYTES))) {
            return None;
        }
        if let Some(number) = self.caches.values.get(value) {
            return Some(*number);
        }
        let hash = self.caches.values.hasher().hash_one(value) as u32 | 1;
        let met = &mut self.caches.met[hash as usize / 2 % MET];
        if std::mem::replace(met, hash) != hash {
            return None;
        }
        let number = lock(self.tables).repeated(value)?;
        if self.caches.has_room(value.len()) {
            self.caches.values.insert(value.into(), number);
        }
        Some(number)
    }

    /// A span that stands for one that is still open somewhere else becomes that one.
    fn fold_pending(&mut self) {
        let Some(open) = self.pending else { return };
        if let Some(span) = self.batch.spans.last_mut() {
            span.parent = span.parent.filter(|parent| *parent != open);
            span.span_id = open;
            span.end = 0;
            span.standing = Standing::Announced;
        }
    }
}

/// Panics elsewhere leave the tables whole: they only grow.
pub(super) fn lock(tables: &Mutex<Tables>) -> std::sync::MutexGuard<'_, Tables> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}
