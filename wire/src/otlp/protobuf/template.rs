//! Spans of one place in the source as copies of one that is encoded already.
//!
//! Most spans have neither events nor links nor a status: but for ids, times, flags and perhaps
//! attributes they are the same, byte for byte. So one is encoded once, and each of the others is a
//! copy in which these are put in their places.

use super::field::{AttributeHead, AttributeKey, KeyHead, Part, put_attribute, put_encoded};
use super::span::{ATTRIBUTES, IDS_AND_PARENT, TIMES, fill_ids, fill_times};
use super::value::{AttributeValue, Scalar};
use super::{Request, ResourceHead, SPANS, SpanHead};
use crate::id::{SpanId, TraceId};
use crate::otlp::Execution;
use crate::recording::value::{self, Tag, ValueRef};
use crate::span::{Resource, Scope, StatusCode};

/// The spans of one place in the source that have no events, links and status, encoded once.
#[derive(Clone, Debug)]
pub struct SpanTemplate {
    title: SpanHead,
    always: Vec<AttributeHead>,
    /// A whole span without further attributes, its tag and length included.
    whole: Vec<u8>,
    /// Where its ids begin, its times, and the attributes that are always the same.
    ids: usize,
    times: usize,
    always_at: usize,
}

/// The attributes of a span that is made from a template.
#[derive(Debug)]
pub struct TemplateAttributes<'r>(&'r mut Vec<u8>);

impl SpanTemplate {
    /// Encodes a span with this name and kind, whose last attributes are these.
    pub fn new(title: SpanHead, always: Vec<AttributeHead>) -> Self {
        let one = Execution {
            trace_id: TraceId::from_bytes([1; 16]).expect("not zero"),
            span_id: SpanId::from_bytes([1; 8]).expect("not zero"),
            parent_span_id: SpanId::from_bytes([1; 8]).expect("not zero"),
            flags: 1,
            start_unix_nano: 1,
            end_unix_nano: 1,
        };
        let mut request = Request::new();
        let none = ResourceHead::new(&Resource::default(), &Scope::default());
        let mut span = request.span(&none, &one.start(&title));
        for attribute in &always {
            span.encoded(attribute);
        }
        span.finish(StatusCode::Unset, "");
        let whole = request.bytes[request.room..request.end].to_vec();
        let ids = 1 + request.width;
        let times = ids + IDS_AND_PARENT + title.0.len();
        Self { title, always, whole, ids, times, always_at: times + TIMES }
    }

    /// Puts ids and times into a span whose ids begin at `ids`.
    #[inline]
    fn fill(&self, span: &mut [u8], ids: usize, it: Execution) {
        let fits = "a copy of the template has all of its fields";
        let (_, rest) = span.split_at_mut(ids);
        fill_ids(rest.first_chunk_mut().expect(fits), &it);
        let (_, rest) = rest.split_at_mut(self.times - self.ids);
        fill_times(rest.first_chunk_mut().expect(fits), &it);
    }
}

/// Puts the flags at the end of a span.
#[inline]
fn fill_flags(span: &mut [u8], flags: u32) {
    let at = span.len() - 4;
    span[at..].copy_from_slice(&flags.to_le_bytes());
}

impl Request {
    /// Adds a span that has no attributes but those of its template.
    #[inline]
    pub fn push(&mut self, resource: &ResourceHead, template: &SpanTemplate, it: Execution) {
        if !it.is_complete() {
            return self.push_anyhow(resource, template, it, |_| ());
        }
        self.begin(resource);
        self.bytes.extend_from_slice(&template.whole);
        let span = &mut self.bytes[self.end..];
        template.fill(span, template.ids, it);
        fill_flags(span, it.flags);
        self.end = self.bytes.len();
        self.spans += 1;
    }

    /// Adds a span to whose attributes `more` adds others, before those of its template.
    #[inline]
    pub fn push_with(
        &mut self,
        resource: &ResourceHead,
        template: &SpanTemplate,
        it: Execution,
        more: impl FnOnce(&mut TemplateAttributes<'_>),
    ) {
        if !it.is_complete() {
            return self.push_anyhow(resource, template, it, more);
        }
        self.begin(resource);
        let part = Part::begin(&mut self.bytes, SPANS, 2);
        let at = self.bytes.len();
        let (first, last) = template.whole.split_at(template.always_at);
        self.bytes.extend_from_slice(&first[template.ids..]);
        template.fill(&mut self.bytes[at..], 0, it);
        more(&mut TemplateAttributes(&mut self.bytes));
        self.bytes.extend_from_slice(last);
        fill_flags(&mut self.bytes, it.flags);
        part.end(&mut self.bytes);
        self.end = self.bytes.len();
        self.spans += 1;
    }

    /// The same for what lacks a field that the template has.
    #[cold]
    fn push_anyhow(
        &mut self,
        resource: &ResourceHead,
        template: &SpanTemplate,
        it: Execution,
        more: impl FnOnce(&mut TemplateAttributes<'_>),
    ) {
        let mut span = self.span(resource, &it.start(&template.title));
        more(&mut TemplateAttributes(span.output()));
        for attribute in &template.always {
            span.encoded(attribute);
        }
        span.finish(StatusCode::Unset, "");
    }
}

impl TemplateAttributes<'_> {
    /// Adds an attribute.
    #[inline]
    pub fn attribute(&mut self, key: impl AttributeKey, value: impl AttributeValue) {
        put_attribute(self.0, ATTRIBUTES, key, value);
    }

    /// Adds attributes as they stand behind a record's slot: see
    /// [`value::inline`](crate::recording::value::inline).
    #[inline]
    pub fn recorded(&mut self, keys: &[KeyHead], count: u8, words: &[u64]) {
        let Some((&tags, mut rest)) = words.split_first() else { return };
        for (at, key) in keys.iter().enumerate().take(usize::from(count.min(16))) {
            let Some(tag) = Tag::from_code((tags >> (4 * at)) as u8 & 15) else { continue };
            let Some((value, after)) = value::decode(tag, rest) else { return };
            rest = after;
            match value {
                ValueRef::I64(number) if put_encoded(self.0, key, Scalar::integer(number), 0) => {}
                ValueRef::F64(number) if put_encoded(self.0, key, Scalar::double(number), 0) => {}
                ValueRef::Str(text)
                    if put_encoded(self.0, key, Scalar::before_text(text.len()), text.len()) =>
                {
                    self.0.extend_from_slice(text.as_bytes());
                }
                value => self.attribute(key, value),
            }
        }
    }
}

impl Execution {
    /// Whether none of its fields is left out for being 0.
    #[inline]
    fn is_complete(&self) -> bool {
        self.start_unix_nano != 0 && self.end_unix_nano != 0 && self.flags != 0
    }
}
