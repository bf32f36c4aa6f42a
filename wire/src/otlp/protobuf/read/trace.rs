//! The messages of OTLP's traces, field by field.

use std::sync::Arc;

use super::Malformed;
use super::field::{FieldValue, Message};
use crate::id::{SpanId, TraceId};
use crate::otlp::json::{Refused, Report, SpanRefusal};
use crate::span::{
    Attributes, Event, Link, Resource, Scope, Span, SpanKind, Status, StatusCode, Value,
};

/// The whole request.
pub(super) struct TracesData {
    pub(super) spans: Vec<Span>,
    pub(super) report: Report,
}

impl<'a> Message<'a> for TracesData {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        if number == 1 {
            let mut read = ResourceSpans::default();
            value.message(&mut read)?;
            read.finish(self);
        }
        Ok(())
    }
}

/// The spans of one process. They may stand before their resource.
#[derive(Default)]
struct ResourceSpans {
    resource: Resource,
    scopes: Vec<ScopeSpans>,
}

impl ResourceSpans {
    fn finish(self, read: &mut TracesData) {
        let resource = Arc::new(self.resource);
        for of_scope in self.scopes {
            let scope = Arc::new(of_scope.scope);
            read.report.add_line(of_scope.report);
            read.spans.extend(of_scope.spans.into_iter().map(|span| Span {
                resource: resource.clone(),
                scope: scope.clone(),
                ..span
            }));
        }
    }
}

impl<'a> Message<'a> for ResourceSpans {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => value.message(&mut self.resource)?,
            2 => value.element(&mut self.scopes)?,
            3 => self.resource.schema_url = value.text()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Resource {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => value.element(&mut self.attributes)?,
            2 => self.dropped_attributes = value.varint()? as u32,
            _ => {}
        }
        Ok(())
    }
}

/// The spans of one library in one process.
#[derive(Default)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
    report: Report,
}

impl<'a> Message<'a> for ScopeSpans {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => value.message(&mut self.scope)?,
            2 => {
                let mut read = SpanMessage::default();
                value.message(&mut read)?;
                match read.finish(&mut self.report) {
                    Ok(span) => self.spans.push(span),
                    Err(refusal) => self.report.add_refused(Refused { line: 1, refusal }),
                }
            }
            3 => self.scope.schema_url = value.text()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Scope {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => self.name = value.text()?,
            2 => self.version = value.text()?,
            3 => value.element(&mut self.attributes)?,
            4 => self.dropped_attributes = value.varint()? as u32,
            _ => {}
        }
        Ok(())
    }
}

/// A span before its ids are known to be valid.
#[derive(Default)]
struct SpanMessage<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    parent_span_id: &'a [u8],
    trace_state: String,
    flags: u32,
    name: String,
    kind: SpanKind,
    start_unix_nano: u64,
    end_unix_nano: u64,
    attributes: Attributes,
    dropped_attributes: u32,
    events: Vec<Event>,
    dropped_events: u32,
    links: Vec<LinkMessage<'a>>,
    dropped_links: u32,
    status: Status,
}

impl SpanMessage<'_> {
    fn finish(self, report: &mut Report) -> Result<Span, SpanRefusal> {
        let parent_span_id = if self.parent_span_id.iter().all(|&byte| byte == 0) {
            None
        } else {
            Some(span_id(self.parent_span_id, "parentSpanId")?)
        };
        let mut span =
            Span::new(trace_id(self.trace_id, "traceId")?, span_id(self.span_id, "spanId")?);
        for link in self.links {
            // A link to nowhere is not worth its span.
            match link.finish() {
                Ok(link) => span.links.push(link),
                Err(_) => report.refused_links += 1,
            }
        }
        Ok(Span {
            parent_span_id,
            trace_state: self.trace_state,
            flags: self.flags,
            name: self.name,
            kind: self.kind,
            start_unix_nano: self.start_unix_nano,
            end_unix_nano: self.end_unix_nano,
            attributes: self.attributes,
            dropped_attributes: self.dropped_attributes,
            events: self.events,
            dropped_events: self.dropped_events,
            dropped_links: self.dropped_links,
            status: self.status,
            ..span
        })
    }
}

impl<'a> Message<'a> for SpanMessage<'a> {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => self.trace_id = value.bytes()?,
            2 => self.span_id = value.bytes()?,
            3 => self.trace_state = value.text()?,
            4 => self.parent_span_id = value.bytes()?,
            5 => self.name = value.text()?,
            6 => self.kind = SpanKind::from_number(value.varint()? as i64),
            7 => self.start_unix_nano = value.fixed64()?,
            8 => self.end_unix_nano = value.fixed64()?,
            9 => value.element(&mut self.attributes)?,
            10 => self.dropped_attributes = value.varint()? as u32,
            11 => value.element(&mut self.events)?,
            12 => self.dropped_events = value.varint()? as u32,
            13 => value.element(&mut self.links)?,
            14 => self.dropped_links = value.varint()? as u32,
            15 => value.message(&mut self.status)?,
            16 => self.flags = value.fixed32()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Event {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => self.time_unix_nano = value.fixed64()?,
            2 => self.name = value.text()?,
            3 => value.element(&mut self.attributes)?,
            4 => self.dropped_attributes = value.varint()? as u32,
            _ => {}
        }
        Ok(())
    }
}

/// A link before its ids are known to be valid.
#[derive(Default)]
struct LinkMessage<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    trace_state: String,
    attributes: Attributes,
    dropped_attributes: u32,
    flags: u32,
}

impl LinkMessage<'_> {
    fn finish(self) -> Result<Link, SpanRefusal> {
        Ok(Link {
            trace_id: trace_id(self.trace_id, "traceId")?,
            span_id: span_id(self.span_id, "spanId")?,
            trace_state: self.trace_state,
            attributes: self.attributes,
            dropped_attributes: self.dropped_attributes,
            flags: self.flags,
        })
    }
}

impl<'a> Message<'a> for LinkMessage<'a> {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => self.trace_id = value.bytes()?,
            2 => self.span_id = value.bytes()?,
            3 => self.trace_state = value.text()?,
            4 => value.element(&mut self.attributes)?,
            5 => self.dropped_attributes = value.varint()? as u32,
            6 => self.flags = value.fixed32()?,
            _ => {}
        }
        Ok(())
    }
}

impl<'a> Message<'a> for Status {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            2 => self.message = value.text()?,
            3 => self.code = StatusCode::from_number(value.varint()? as i64),
            _ => {}
        }
        Ok(())
    }
}

/// An attribute.
impl<'a> Message<'a> for (String, Value) {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        match number {
            1 => self.0 = value.text()?,
            2 => value.message(&mut self.1)?,
            _ => {}
        }
        Ok(())
    }
}

/// `AnyValue`: the last field of its choice counts.
impl<'a> Message<'a> for Value {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        *self = match number {
            1 => Value::Str(value.text()?),
            2 => Value::Bool(value.varint()? != 0),
            3 => Value::I64(value.varint()? as i64),
            4 => Value::F64(f64::from_bits(value.fixed64()?)),
            5 => Value::Array(values(value)?),
            6 => Value::Map(values(value)?),
            7 => Value::Bytes(value.bytes()?.to_vec()),
            _ => return Ok(()),
        };
        Ok(())
    }
}

/// `ArrayValue` and `KeyValueList`.
struct Values<T>(Vec<T>);

fn values<'a, T: Message<'a> + Default>(value: FieldValue<'a>) -> Result<Vec<T>, Malformed> {
    let mut values = Values(Vec::new());
    value.message(&mut values)?;
    Ok(values.0)
}

impl<'a, T: Message<'a> + Default> Message<'a> for Values<T> {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), Malformed> {
        if number == 1 { value.element(&mut self.0) } else { Ok(()) }
    }
}

fn trace_id(bytes: &[u8], field: &'static str) -> Result<TraceId, SpanRefusal> {
    TraceId::from_bytes(id_bytes(bytes, field)?).ok_or(zero(field))
}

fn span_id(bytes: &[u8], field: &'static str) -> Result<SpanId, SpanRefusal> {
    SpanId::from_bytes(id_bytes(bytes, field)?).ok_or(zero(field))
}

fn id_bytes<const N: usize>(bytes: &[u8], field: &'static str) -> Result<[u8; N], SpanRefusal> {
    if bytes.is_empty() {
        return Err(SpanRefusal::MissingId { field });
    }
    let found = bytes.len();
    bytes.try_into().map_err(|_| SpanRefusal::IdLength { field, expected: N, found })
}

fn zero(field: &'static str) -> SpanRefusal {
    SpanRefusal::MalformedId { field, error: crate::id::IdError::Zero }
}
