//! Batches as bodies of requests, in protobuf and in JSON.

use super::halves;
use super::outbox::Encoding;
use crate::collect::{Key, Run, SpanView};
use crate::export::encoding::site_heads;
use crate::export::otlp::KEPT;
use crate::export::sites::Sites;
use crate::export::supervised::{Batch, Encode};
use crate::stage::Site;
use stagetrace_wire::otlp::json::{
    AttributeHead, KeyHead, LineWriter, ResourceHead, SpanHead, SpanStart, SpanTemplate,
    SpanWriter, Suspended,
};
use stagetrace_wire::otlp::protobuf;
use stagetrace_wire::recording::value::ValueRef;
use std::sync::Arc;

/// A batch that can be sent, and cut.
pub(super) trait Body: Batch {
    /// What all of its calls are given.
    type Head: Send + Sync + 'static;

    /// The body of a request.
    fn encoded(&mut self, head: &Self::Head) -> &[u8];

    /// How it is encoded.
    const ENCODING: Encoding;

    /// The body of a request in two halves, each with its number of spans; `None` if it is a single span.
    fn halves(body: &[u8]) -> Option<[(Vec<u8>, u64); 2]>;

    /// Keeps the first `at` spans, more than none and fewer than all, and gives a batch with the others.
    fn split_off(&mut self, at: usize) -> Self;
}

impl Body for protobuf::Request {
    type Head = protobuf::ResourceHead;

    const ENCODING: Encoding = Encoding::Protobuf;

    fn halves(body: &[u8]) -> Option<[(Vec<u8>, u64); 2]> {
        halves::of_protobuf(body)
    }

    fn encoded(&mut self, head: &Self::Head) -> &[u8] {
        self.finish(head)
    }

    fn split_off(&mut self, at: usize) -> Self {
        protobuf::Request::split_off(self, at)
    }
}

/// A batch in JSON: one line of a .jsonl.
#[derive(Debug, Default)]
pub(super) struct JsonRequest {
    bytes: Vec<u8>,
    /// `None` when it was encoded.
    line: Option<Suspended>,
    /// Where the first span begins, and where each ends.
    first: usize,
    ends: Vec<usize>,
}

impl Batch for JsonRequest {
    fn spans(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        (self.line, self.first) = (None, 0);
        self.ends.clear();
    }
}

impl Body for JsonRequest {
    type Head = ResourceHead;

    const ENCODING: Encoding = Encoding::Json;

    fn halves(body: &[u8]) -> Option<[(Vec<u8>, u64); 2]> {
        halves::of_json(body)
    }

    fn encoded(&mut self, head: &ResourceHead) -> &[u8] {
        if let Some(line) = self.line.take() {
            LineWriter::resume(&mut self.bytes, head, line).finish();
        }
        &self.bytes
    }

    fn split_off(&mut self, at: usize) -> JsonRequest {
        let (cut, end) = (self.ends[at - 1], self.ends[self.ends.len() - 1]);
        let mut rest = JsonRequest { first: self.first, ..JsonRequest::default() };
        rest.bytes.extend_from_slice(&self.bytes[..self.first]);
        // Without the comma.
        rest.bytes.extend_from_slice(&self.bytes[cut + 1..]);
        rest.ends = self.ends.drain(at..).map(|end| end - (cut + 1) + self.first).collect();
        self.bytes.drain(cut..end);
        rest
    }
}

/// Writes spans into batches in JSON.
#[derive(Debug)]
pub(super) struct JsonEncoder {
    head: Arc<ResourceHead>,
    sites: Sites<SiteHeads>,
}

site_heads!();

impl JsonEncoder {
    pub(super) fn new(head: Arc<ResourceHead>) -> JsonEncoder {
        JsonEncoder { head, sites: Sites::new() }
    }
}

impl JsonRequest {
    /// Has a span written at the end.
    fn write(&mut self, head: &ResourceHead, span: impl FnOnce(&mut LineWriter<'_>)) {
        let mut line = match self.line.take() {
            Some(line) => LineWriter::resume(&mut self.bytes, head, line),
            None => {
                let line = LineWriter::begin(&mut self.bytes, head).suspend();
                self.first = self.bytes.len();
                LineWriter::resume(&mut self.bytes, head, line)
            }
        };
        span(&mut line);
        self.line = Some(line.suspend());
        self.ends.push(self.bytes.len());
    }
}

impl Encode for JsonEncoder {
    type Batch = JsonRequest;

    fn add(&mut self, request: &mut JsonRequest, span: &SpanView<'_>) {
        let heads = self.sites.of(span.number, || Some(SiteHeads::new(span.site)));
        let Some(heads) = heads else { return };
        request.write(&self.head, |line| heads.write(line.span(&heads.start(span)), span));
    }

    fn add_run(&mut self, request: &mut JsonRequest, run: &Run<'_>) {
        for span in run.iter() {
            let number = span.number();
            let heads = self.sites.of(number, || run.site(number).map(SiteHeads::new));
            let (Some(heads), Some(it)) = (heads, span.execution()) else { continue };
            request.write(&self.head, |line| {
                line.push_with(&heads.plain, it, |to| {
                    to.recorded(&heads.keys, span.attributes(), span.attribute_words());
                });
            });
        }
    }
}
