//! What an exporter sends, read as a server would.

#[path = "../../../wire/tests/common/proto.rs"]
mod proto;

use opentelemetry_proto::tonic::trace::v1::TracesData;
use prost::Message;
use proto::{of_proto, to_proto};
use stagetrace::Exporter;
use stagetrace_wire::span::Span;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// The spans of each request that was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent(Arc<Mutex<Vec<Vec<Span>>>>);

impl Sent {
    /// Reads a request as a server would, and checks that it is what prost would have made of its spans.
    pub(crate) fn take(&self, request: &[u8]) {
        let data = TracesData::decode(request).expect("it is a request");
        let spans = of_proto(data);
        assert_eq!(request, to_proto(&spans).encode_to_vec());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(spans);
    }

    pub(crate) fn requests(&self) -> Vec<usize> {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().map(Vec::len).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).concat()
    }

    pub(crate) fn numbers(&self) -> Vec<i64> {
        let number = |span: &Span| span.attribute("number").and_then(|value| value.as_i64());
        self.spans().iter().filter_map(number).collect()
    }
}

/// An exporter, and what it sends.
pub(crate) fn collecting(name: &'static str) -> (Exporter, Sent) {
    let sent = Sent::default();
    let keeper = sent.clone();
    let send = move |request: &[u8]| {
        keeper.take(request);
        Ok::<_, Infallible>(())
    };
    (Exporter::otlp(name, send), sent)
}
