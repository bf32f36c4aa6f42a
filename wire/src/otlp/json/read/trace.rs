//! The messages of OTLP's traces, field by field. Each key stands in camelCase and in snake_case.

use std::mem;

use serde::de::MapAccess;

use super::message::{MemberValue, Message};
use super::reading::Reading;
use super::scalar::{Id, IdText};
use crate::id::{IdError, SpanId, TraceId};
use crate::otlp::json::report::SpanRefusal;
use crate::span::{Attributes, Event, Link, Resource, Scope, Span, SpanKind, Status};

/// The whole line or document. Metrics and logs are valid, and no spans.
pub(super) struct TracesData;

impl Message for TracesData {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "resourceSpans" | "resource_spans" => {
                value.list_with("resourceSpans", ResourceSpans::finish)
            }
            _ => value.skip(),
        }
    }
}

/// The spans of one process. They may stand before their resource.
#[derive(Default)]
struct ResourceSpans {
    resource: Resource,
    first: usize,
}

impl ResourceSpans {
    fn finish(self, reading: &mut Reading<'_>) {
        let resource = reading.share_resource(self.resource);
        for span in reading.spans.iter_mut().skip(self.first) {
            span.resource = resource.clone();
        }
    }
}

impl Message for ResourceSpans {
    fn begin(&mut self, reading: &mut Reading<'_>) {
        self.first = reading.spans.len();
    }

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "resource" => value.message("resource", &mut self.resource).map(drop),
            "scopeSpans" | "scope_spans" => value.list_with("scopeSpans", ScopeSpans::finish),
            "instrumentationLibrarySpans" | "instrumentation_library_spans" => {
                value.list_with("instrumentationLibrarySpans", ScopeSpans::finish)
            }
            "schemaUrl" | "schema_url" => value.scalar("schemaUrl", &mut self.resource.schema_url),
            _ => value.skip(),
        }
    }
}

impl Message for Resource {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "attributes" => value.list("attributes", &mut self.attributes),
            "droppedAttributesCount" | "dropped_attributes_count" => {
                value.scalar("droppedAttributesCount", &mut self.dropped_attributes)
            }
            _ => value.skip(),
        }
    }
}

/// The spans of one library in one process.
#[derive(Default)]
struct ScopeSpans {
    scope: Scope,
    first: usize,
}

impl ScopeSpans {
    fn finish(self, reading: &mut Reading<'_>) {
        let scope = reading.share_scope(self.scope);
        for span in reading.spans.iter_mut().skip(self.first) {
            span.scope = scope.clone();
        }
    }
}

impl Message for ScopeSpans {
    fn begin(&mut self, reading: &mut Reading<'_>) {
        self.first = reading.spans.len();
    }

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "scope" => value.message("scope", &mut self.scope).map(drop),
            "instrumentationLibrary" | "instrumentation_library" => {
                value.message("instrumentationLibrary", &mut self.scope).map(drop)
            }
            "spans" => value.list_with("spans", SpanMessage::finish),
            "schemaUrl" | "schema_url" => value.scalar("schemaUrl", &mut self.scope.schema_url),
            _ => value.skip(),
        }
    }
}

impl Message for Scope {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "name" => value.scalar("name", &mut self.name),
            "version" => value.scalar("version", &mut self.version),
            "attributes" => value.list("attributes", &mut self.attributes),
            "droppedAttributesCount" | "dropped_attributes_count" => {
                value.scalar("droppedAttributesCount", &mut self.dropped_attributes)
            }
            _ => value.skip(),
        }
    }
}

/// A span before its ids are known to be valid.
#[derive(Default)]
struct SpanMessage {
    trace_id: IdText<TraceId>,
    span_id: IdText<SpanId>,
    parent_span_id: IdText<SpanId>,
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
    links: Vec<Link>,
    dropped_links: u32,
    status: Status,
    /// What was noted outside of this span.
    wrong_type_above: Option<&'static str>,
}

impl SpanMessage {
    fn finish(self, reading: &mut Reading<'_>) {
        let wrong_type = mem::replace(&mut reading.wrong_type, self.wrong_type_above);
        let span = match wrong_type {
            Some(field) => Err(SpanRefusal::Type { field }),
            None => self.into_span(reading),
        };
        match span {
            Ok(span) => reading.spans.push(span),
            Err(refusal) => reading.refuse(refusal),
        }
    }

    fn into_span(self, reading: &mut Reading<'_>) -> Result<Span, SpanRefusal> {
        let parent_span_id = match self.parent_span_id {
            IdText::Absent | IdText::Malformed(IdError::Zero) => None,
            parent => Some(valid_id(parent, "parentSpanId", reading)?),
        };
        let (resource, scope) = reading.last_shared();
        Ok(Span {
            trace_id: valid_id(self.trace_id, "traceId", reading)?,
            span_id: valid_id(self.span_id, "spanId", reading)?,
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
            links: self.links,
            dropped_links: self.dropped_links,
            status: self.status,
            // Until the enclosing messages are at their end.
            resource,
            scope,
        })
    }
}

impl Message for SpanMessage {
    fn begin(&mut self, reading: &mut Reading<'_>) {
        self.wrong_type_above = reading.wrong_type.take();
    }

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "traceId" | "trace_id" => value.scalar("traceId", &mut self.trace_id),
            "spanId" | "span_id" => value.scalar("spanId", &mut self.span_id),
            "parentSpanId" | "parent_span_id" => {
                value.scalar("parentSpanId", &mut self.parent_span_id)
            }
            "traceState" | "trace_state" => value.scalar("traceState", &mut self.trace_state),
            "flags" => value.scalar("flags", &mut self.flags),
            "name" => value.scalar("name", &mut self.name),
            "kind" => value.scalar("kind", &mut self.kind),
            "startTimeUnixNano" | "start_time_unix_nano" => {
                value.scalar("startTimeUnixNano", &mut self.start_unix_nano)
            }
            "endTimeUnixNano" | "end_time_unix_nano" => {
                value.scalar("endTimeUnixNano", &mut self.end_unix_nano)
            }
            "attributes" => value.list("attributes", &mut self.attributes),
            "droppedAttributesCount" | "dropped_attributes_count" => {
                value.scalar("droppedAttributesCount", &mut self.dropped_attributes)
            }
            "events" => value.list("events", &mut self.events),
            "droppedEventsCount" | "dropped_events_count" => {
                value.scalar("droppedEventsCount", &mut self.dropped_events)
            }
            "links" => value.list_with("links", |link: LinkMessage, reading| {
                self.links.extend(link.into_link(reading));
            }),
            "droppedLinksCount" | "dropped_links_count" => {
                value.scalar("droppedLinksCount", &mut self.dropped_links)
            }
            "status" => value.message("status", &mut self.status).map(drop),
            _ => value.skip(),
        }
    }
}

/// The id, counted if it is base64.
fn valid_id<T: Id>(
    id: IdText<T>,
    field: &'static str,
    reading: &mut Reading<'_>,
) -> Result<T, SpanRefusal> {
    match id {
        IdText::Hex(id) => Ok(id),
        IdText::Base64(id) => {
            reading.report.base64_ids += 1;
            if reading.strict { Err(SpanRefusal::Base64Id { field }) } else { Ok(id) }
        }
        IdText::Absent => Err(SpanRefusal::MissingId { field }),
        IdText::Malformed(error) => Err(SpanRefusal::MalformedId { field, error }),
    }
}

impl Message for Event {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "timeUnixNano" | "time_unix_nano" => {
                value.scalar("timeUnixNano", &mut self.time_unix_nano)
            }
            "name" => value.scalar("name", &mut self.name),
            "attributes" => value.list("attributes", &mut self.attributes),
            "droppedAttributesCount" | "dropped_attributes_count" => {
                value.scalar("droppedAttributesCount", &mut self.dropped_attributes)
            }
            _ => value.skip(),
        }
    }
}

/// A link before its ids are known to be valid.
#[derive(Default)]
struct LinkMessage {
    trace_id: IdText<TraceId>,
    span_id: IdText<SpanId>,
    trace_state: String,
    attributes: Attributes,
    dropped_attributes: u32,
    flags: u32,
}

impl LinkMessage {
    /// A link to nowhere is not worth its span: it is counted and left out.
    fn into_link(self, reading: &mut Reading<'_>) -> Option<Link> {
        let ids = valid_id(self.trace_id, "traceId", reading)
            .and_then(|trace_id| Ok((trace_id, valid_id(self.span_id, "spanId", reading)?)));
        let Ok((trace_id, span_id)) = ids else {
            reading.report.refused_links += 1;
            return None;
        };
        Some(Link {
            trace_id,
            span_id,
            trace_state: self.trace_state,
            attributes: self.attributes,
            dropped_attributes: self.dropped_attributes,
            flags: self.flags,
        })
    }
}

impl Message for LinkMessage {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "traceId" | "trace_id" => value.scalar("traceId", &mut self.trace_id),
            "spanId" | "span_id" => value.scalar("spanId", &mut self.span_id),
            "traceState" | "trace_state" => value.scalar("traceState", &mut self.trace_state),
            "attributes" => value.list("attributes", &mut self.attributes),
            "droppedAttributesCount" | "dropped_attributes_count" => {
                value.scalar("droppedAttributesCount", &mut self.dropped_attributes)
            }
            "flags" => value.scalar("flags", &mut self.flags),
            _ => value.skip(),
        }
    }
}

impl Message for Status {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "code" => value.scalar("code", &mut self.code),
            "message" => value.scalar("message", &mut self.message),
            _ => value.skip(),
        }
    }
}
