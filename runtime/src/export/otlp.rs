//! The direct way out: records → OTLP in protobuf, without a copy in between, sent by whatever the program gives.

use super::encoding::site_heads;
use super::sites::Sites;
use super::supervised::{Batch, Encode, Failure, Outlet, Queue, Supervised};
use crate::collect::{Key, OpenSink, Run, SpanView};
use crate::stage::Site;
use stagetrace_wire::otlp::protobuf::{
    AttributeHead, KeyHead, Request, ResourceHead, SpanHead, SpanStart, SpanTemplate, SpanWriter,
};
use stagetrace_wire::recording::value::ValueRef;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Memory that a batch keeps when it is used again.
pub(super) const KEPT: usize = 3 << 20;

/// A sink that encodes its spans and hands each batch to `send`, on a thread of its own.
pub(super) fn sending<E: fmt::Display>(
    name: &'static str,
    send: impl FnMut(&[u8]) -> Result<(), E> + Send + 'static,
) -> OpenSink {
    Box::new(move |opening| {
        let head = Arc::new(ResourceHead::new(opening.resource, opening.scope));
        let outlet = Sender { head: Arc::clone(&head), send };
        let encoder = Encoder::new(head);
        Box::new(Supervised::on_own_thread(name, encoder, opening.batching, outlet))
    })
}

impl Batch for Request {
    fn spans(&self) -> usize {
        Request::spans(self)
    }

    fn bytes(&self) -> usize {
        self.span_bytes()
    }

    fn clear(&mut self) {
        Request::clear(self, KEPT);
    }
}

/// Hands requests over.
struct Sender<S> {
    head: Arc<ResourceHead>,
    send: S,
}

impl<E: fmt::Display, S: FnMut(&[u8]) -> Result<(), E> + Send> Outlet<Request> for Sender<S> {
    fn export(
        &mut self,
        batch: &mut Request,
        _: Duration,
        _: &Queue<Request>,
    ) -> Result<(), Failure> {
        (self.send)(batch.finish(&self.head)).map_err(|error| Failure::refused(error.to_string()))
    }
}

/// Writes spans into requests.
#[derive(Debug)]
pub(super) struct Encoder {
    head: Arc<ResourceHead>,
    sites: Sites<SiteHeads>,
}

site_heads!();

impl Encoder {
    pub(super) fn new(head: Arc<ResourceHead>) -> Encoder {
        Encoder { head, sites: Sites::new() }
    }
}

impl Encode for Encoder {
    type Batch = Request;

    fn add(&mut self, request: &mut Request, span: &SpanView<'_>) {
        let heads = self.sites.of(span.number, || Some(SiteHeads::new(span.site)));
        let Some(heads) = heads else { return };
        heads.write(request.span(&self.head, &heads.start(span)), span);
    }

    fn add_run(&mut self, request: &mut Request, run: &Run<'_>) {
        for span in run.iter() {
            let number = span.number();
            let heads = self.sites.of(number, || run.site(number).map(SiteHeads::new));
            let (Some(heads), Some(it)) = (heads, span.execution()) else { continue };
            if span.has_attributes() {
                request.push_with(&self.head, &heads.plain, it, |to| {
                    to.recorded(&heads.keys, span.attributes(), span.attribute_words())
                });
            } else {
                request.push(&self.head, &heads.plain, it);
            }
        }
    }
}
