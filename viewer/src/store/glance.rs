//! What is asked of the details of many spans at once, without all of them being made.

use stagetrace_wire::id::TraceId;
use stagetrace_wire::span::{Event, Link, Span, Value};

use super::details::{NO_SPAN, NO_TRACE, read_parts, skip_attributes, skip_value};
use super::encode::lock;
use super::tables::Name;
use super::value::Bytes;
use super::{SpanNumber, Store};

/// A part of a span's details.
#[derive(Debug, Default)]
pub(crate) struct Glance {
    /// Attributes that were asked for: which of them, and its value.
    pub(crate) attributes: Vec<(usize, Value)>,
    pub(crate) events: Vec<Event>,
    pub(crate) links: Vec<Link>,
}

impl Store {
    /// Some attributes of a span, and its events and links.
    pub(crate) fn glance(&self, number: SpanNumber, keys: &[Option<Name>]) -> Glance {
        let mut bytes = Bytes(self.details(&self.spans[number.0 as usize]));
        let mut glance = Glance::default();
        if keys.iter().all(Option::is_none) {
            skip_attributes(&mut bytes);
        } else {
            let count = bytes.number();
            for _ in 0..count {
                let key = Some(Name(bytes.number() as u32));
                match keys.iter().position(|wanted| *wanted == key) {
                    None => skip_value(&mut bytes),
                    Some(at) => {
                        let tables = lock(&self.tables);
                        let value = bytes.value(&|number| tables.repeated_value(number));
                        glance.attributes.push((at, value));
                    }
                }
            }
        }
        // Most spans have no parts, and a span to read them into is not made for nothing.
        if bytes.0.first().is_some_and(|parts| parts & HOLDS != 0) {
            let tables = lock(&self.tables);
            let mut span = Span::new(NO_TRACE, NO_SPAN);
            read_parts(&mut bytes, &mut span, &|number| tables.repeated_value(number));
            (glance.events, glance.links) = (span.events, span.links);
        }
        glance
    }

    /// Spans of other traces that link to this one, as batches do to the requests that they serve.
    pub(crate) fn linked_to(&self, trace: TraceId) -> Vec<SpanNumber> {
        let mut spans = self.linked.get(&trace).cloned().unwrap_or_default();
        spans.sort_unstable();
        spans.dedup();
        spans.into_iter().map(SpanNumber).collect()
    }

    /// Notes to which other traces a span links, given its details.
    pub(super) fn note_links(&mut self, span: u32, own: TraceId, details: &[u8]) {
        let mut bytes = Bytes(details);
        skip_attributes(&mut bytes);
        let mut read = Span::new(NO_TRACE, NO_SPAN);
        read_parts(&mut bytes, &mut read, &|_| &[]);
        for link in read.links.iter().filter(|link| link.trace_id != own) {
            let spans = self.linked.entry(link.trace_id).or_default();
            if spans.last() != Some(&span) {
                spans.push(span);
            }
        }
    }
}

/// Parts that a glance is for: events and links.
const HOLDS: u8 = super::part::EVENTS | super::part::LINKS;
