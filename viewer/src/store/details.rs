//! Details of a span, made of bytes when they are asked for.

use hashbrown::HashSet;
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::span::{Attributes, Event, Link, Span, Status, Value};

use super::encode::{lock, part};
use super::tables::{Name, Origin, Tables};
use super::value::{Bytes, tag};
use super::{SpanNumber, Store, TraceNumber};

impl Store {
    /// The span with all it owns. An open one has the end 0.
    pub fn span(&self, number: SpanNumber) -> Span {
        let record = self.record(number);
        let mut span = Span::new(self.trace_id(TraceNumber(record.trace)), record.id);
        let tables = lock(&self.tables);
        let Origin { resource, scope } =
            tables.origins.get(record.origin as usize).cloned().unwrap_or_default();
        (span.resource, span.scope) = (resource, scope);
        span.parent_span_id = record.parent;
        span.name = tables.text(record.name).to_owned();
        span.kind = record.kind;
        span.start_unix_nano = record.start;
        span.end_unix_nano = if record.is_open() { 0 } else { record.end };
        span.status.code = record.code;
        read(&tables, self.details(&self.spans[number.0 as usize]), &mut span);
        span
    }

    /// Whether the span has an attribute of one of these names and with such a value. Of
    /// details that are not in memory nothing is known.
    pub(crate) fn has_attribute(
        &self,
        number: SpanNumber,
        keys: &HashSet<Name>,
        is_value: &mut impl FnMut(&Value) -> bool,
    ) -> bool {
        let tables = lock(&self.tables);
        let repeated = |number| tables.repeated_value(number);
        let mut bytes = Bytes(self.details(&self.spans[number.0 as usize]));
        for _ in 0..bytes.number() {
            if !keys.contains(&Name(bytes.number() as u32)) {
                skip_value(&mut bytes);
            } else if is_value(&bytes.value(&repeated)) {
                return true;
            }
        }
        false
    }

    /// What a span has under the first of these keys that it has; `None` as well if its details are not in memory.
    pub(crate) fn attribute(&self, number: SpanNumber, keys: &[Name]) -> Option<Value> {
        let tables = lock(&self.tables);
        let mut bytes = Bytes(self.details(&self.spans[number.0 as usize]));
        let mut best: Option<(usize, Value)> = None;
        for _ in 0..bytes.number() {
            let key = Name(bytes.number() as u32);
            match keys.iter().position(|wanted| *wanted == key) {
                Some(rank) if best.as_ref().is_none_or(|(best, _)| rank < *best) => {
                    best = Some((rank, bytes.value(&|number| tables.repeated_value(number))));
                }
                _ => skip_value(&mut bytes),
            }
        }
        best.map(|(_, value)| value)
    }

    /// Names from the root to the span, where a live file has them.
    pub(crate) fn path(&self, number: SpanNumber) -> Vec<Name> {
        let mut bytes = Bytes(self.details(&self.spans[number.0 as usize]));
        skip_attributes(&mut bytes);
        let parts = bytes.byte();
        // Spans of live files have no other parts in front.
        if parts & part::PATH == 0 || parts & (part::PATH - 1) != 0 {
            return Vec::new();
        }
        (0..bytes.number()).map(|_| Name(bytes.number() as u32)).collect()
    }
}

impl Store {
    /// What a span has under these keys. Reads its attributes only.
    pub(crate) fn values<const N: usize>(
        &self,
        number: SpanNumber,
        keys: [&str; N],
    ) -> [Option<Value>; N] {
        let mut found = [const { None }; N];
        let tables = lock(&self.tables);
        let mut bytes = Bytes(self.details(&self.spans[number.0 as usize]));
        for _ in 0..bytes.number() {
            let key = tables.text(Name(bytes.number() as u32));
            match keys.iter().position(|wanted| *wanted == key) {
                Some(at) if found[at].is_none() => {
                    found[at] = Some(bytes.value(&|number| tables.repeated_value(number)));
                }
                _ => skip_value(&mut bytes),
            }
        }
        found
    }

    /// The links of a span, which few have.
    pub(crate) fn links(&self, number: SpanNumber) -> Vec<Link> {
        let mut bytes = Bytes(self.details(&self.spans[number.0 as usize]));
        skip_attributes(&mut bytes);
        match bytes.byte() & part::LINKS {
            0 => Vec::new(),
            _ => self.span(number).links,
        }
    }

    /// Whether the details of a span are there; if not, they made room for others.
    pub(crate) fn has_details(&self, number: SpanNumber) -> bool {
        !self.details(&self.spans[number.0 as usize]).is_empty()
    }
}

/// The bytes that belong to the span whose details begin here.
pub(super) fn of_one(details: &[u8]) -> &[u8] {
    let mut bytes = Bytes(details);
    let mut span = Span::new(NO_TRACE, NO_SPAN);
    skip_attributes(&mut bytes);
    read_parts(&mut bytes, &mut span, &|_| &[]);
    &details[..details.len() - bytes.0.len()]
}

/// Of spans that are made up to be read into.
pub(super) const NO_TRACE: TraceId = TraceId::from_u128(1).expect("it is not zero");
pub(super) const NO_SPAN: SpanId = SpanId::from_u64(1).expect("it is not zero");

pub(super) fn skip_attributes(bytes: &mut Bytes<'_>) {
    for _ in 0..bytes.number() {
        bytes.number();
        skip_value(bytes);
    }
}

pub(super) fn skip_value(bytes: &mut Bytes<'_>) {
    match bytes.byte() {
        tag::INT | tag::REPEATED => drop(bytes.number()),
        tag::DOUBLE => (0..8).for_each(|_| _ = bytes.byte()),
        tag::TEXT | tag::BYTES => drop(bytes.bytes()),
        tag::ARRAY => (0..bytes.number()).for_each(|_| skip_value(bytes)),
        tag::MAP => {
            for _ in 0..bytes.number() {
                bytes.bytes();
                skip_value(bytes);
            }
        }
        _ => {}
    }
}

fn read(tables: &Tables, details: &[u8], span: &mut Span) {
    let mut bytes = Bytes(details);
    let repeated = |number| tables.repeated_value(number);
    for _ in 0..bytes.number() {
        let key = tables.text(Name(bytes.number() as u32)).to_owned();
        span.attributes.push((key, bytes.value(&repeated)));
    }
    read_parts(&mut bytes, span, &repeated);
}

pub(super) fn read_parts<'t>(
    bytes: &mut Bytes<'_>,
    span: &mut Span,
    repeated: &impl Fn(u64) -> &'t [u8],
) {
    let parts = bytes.byte();
    let has = |part| parts & part != 0;
    if has(part::TRACE_STATE) {
        span.trace_state = bytes.text().to_owned();
    }
    if has(part::FLAGS) {
        span.flags = bytes.number() as u32;
    }
    if has(part::DROPPED) {
        span.dropped_attributes = bytes.number() as u32;
        span.dropped_events = bytes.number() as u32;
        span.dropped_links = bytes.number() as u32;
    }
    if has(part::EVENTS) {
        for _ in 0..bytes.number() {
            let time_unix_nano = bytes.number();
            let name = bytes.text().to_owned();
            let attributes = read_attributes(bytes, repeated);
            let dropped_attributes = bytes.number() as u32;
            span.events.push(Event { time_unix_nano, name, attributes, dropped_attributes });
        }
    }
    if has(part::LINKS) {
        for _ in 0..bytes.number() {
            let mut trace = [0; 16];
            trace.iter_mut().for_each(|byte| *byte = bytes.byte());
            let mut id = [0; 8];
            id.iter_mut().for_each(|byte| *byte = bytes.byte());
            let trace_state = bytes.text().to_owned();
            let flags = bytes.number() as u32;
            let attributes = read_attributes(bytes, repeated);
            let dropped_attributes = bytes.number() as u32;
            if let (Some(trace_id), Some(span_id)) =
                (TraceId::from_bytes(trace), SpanId::from_bytes(id))
            {
                span.links.push(Link {
                    trace_id,
                    span_id,
                    trace_state,
                    attributes,
                    dropped_attributes,
                    flags,
                });
            }
        }
    }
    if has(part::PATH) {
        (0..bytes.number()).for_each(|_| _ = bytes.number());
    }
    if has(part::MESSAGE) {
        span.status = Status { code: span.status.code, message: bytes.text().to_owned() };
    }
}

fn read_attributes<'t>(bytes: &mut Bytes<'_>, repeated: &impl Fn(u64) -> &'t [u8]) -> Attributes {
    (0..bytes.number()).map(|_| (bytes.text().to_owned(), bytes.value(repeated))).collect()
}
