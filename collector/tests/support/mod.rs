//! A sender that sends what it is told to, right or wrong.

#![allow(dead_code)] // No test uses all of it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use hyper_util::rt::{TokioExecutor, TokioIo};
use stagetrace_collector::{Collector, Protocol};
use stagetrace_wire::id::{SpanId, TraceId};
use stagetrace_wire::otlp::json::write_lines;
use stagetrace_wire::otlp::protobuf::write_request;
use stagetrace_wire::span::Span;
use tokio::net::TcpStream;

/// Long enough for a machine that does other things too.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) const PROTOCOLS: [Protocol; 3] =
    [Protocol::Grpc, Protocol::HttpProtobuf, Protocol::HttpJson];

pub(crate) const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// With the trailers.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of text"))
    }
}

/// A span without anything but its name.
pub(crate) fn span(number: u64, name: &str) -> Span {
    let (trace, id) = (TraceId::from_u128(1).unwrap(), SpanId::from_u64(number).unwrap());
    Span { name: name.to_owned(), start_unix_nano: number, ..Span::new(trace, id) }
}

/// The body of a request in this form.
pub(crate) fn encoded(protocol: Protocol, spans: &[Span]) -> Vec<u8> {
    match protocol {
        Protocol::Grpc | Protocol::HttpProtobuf => write_request(spans),
        Protocol::HttpJson => write_lines(spans),
    }
}

pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(plain: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(plain, 0).unwrap()
}

/// Sends a body as its form demands: to its path, with its content type, over gRPC with the five
/// bytes before it.
pub(crate) async fn send(
    collector: &Collector,
    protocol: Protocol,
    compression: &str,
    body: &[u8],
) -> Result<Answer, hyper::Error> {
    if protocol == Protocol::Grpc {
        let body = framed(u8::from(!compression.is_empty()), body);
        return call(collector, &[("grpc-encoding", compression)], body).await;
    }
    let content_type = match protocol {
        Protocol::HttpJson => "application/json",
        _ => "application/x-protobuf",
    };
    let headers = [(CONTENT_TYPE.as_str(), content_type), (CONTENT_ENCODING.as_str(), compression)];
    post(collector, "/v1/traces", &headers, body.to_vec()).await
}

pub(crate) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut framed = vec![flag];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

/// A call of gRPC with any body.
pub(crate) async fn call(
    collector: &Collector,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Answer, hyper::Error> {
    let request = request(&format!("{}{GRPC_PATH}", collector.endpoint()))
        .header(CONTENT_TYPE, "application/grpc")
        .header("te", "trailers");
    exchange_http2(
        collector,
        with_headers(request, headers).body(Whole(Some(body.into()))).unwrap(),
    )
    .await
}

/// A request over HTTP/1 with any body.
pub(crate) async fn post(
    collector: &Collector,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Answer, hyper::Error> {
    let request = with_headers(request(path).header("host", "localhost"), headers);
    exchange_http1(collector, request.body(Whole(Some(body.into()))).unwrap()).await
}

fn request(uri: &str) -> hyper::http::request::Builder {
    hyper::Request::builder().method("POST").uri(uri)
}

/// Without those that are empty.
fn with_headers(
    mut request: hyper::http::request::Builder,
    headers: &[(&str, &str)],
) -> hyper::http::request::Builder {
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        request = request.header(*name, *value);
    }
    request
}

pub(crate) async fn exchange_http1(
    collector: &Collector,
    request: hyper::Request<Whole>,
) -> Result<Answer, hyper::Error> {
    let io = TokioIo::new(TcpStream::connect(collector.address()).await.expect("it listens"));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let connection = tokio::spawn(connection);
    let answer = answered(sender.send_request(request)).await;
    connection.abort();
    answer
}

pub(crate) async fn exchange_http2(
    collector: &Collector,
    request: hyper::Request<Whole>,
) -> Result<Answer, hyper::Error> {
    let io = TokioIo::new(TcpStream::connect(collector.address()).await.expect("it listens"));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await?;
    let connection = tokio::spawn(connection);
    let answer = answered(sender.send_request(request)).await;
    connection.abort();
    answer
}

/// The whole answer, which comes.
async fn answered(
    exchange: impl Future<Output = Result<hyper::Response<Incoming>, hyper::Error>>,
) -> Result<Answer, hyper::Error> {
    let whole = async { read(exchange.await?).await };
    tokio::time::timeout(LONG, whole).await.expect("the answer comes")
}

async fn read(response: hyper::Response<Incoming>) -> Result<Answer, hyper::Error> {
    let (head, mut body) = response.into_parts();
    let mut answer =
        Answer { status: head.status.as_u16(), headers: head.headers, body: Vec::new() };
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame?.into_data() {
            Ok(data) => answer.body.extend_from_slice(&data),
            Err(frame) => answer.headers.extend(frame.into_trailers().expect("the other kind")),
        }
    }
    Ok(answer)
}

/// A body in one piece.
pub(crate) struct Whole(pub(crate) Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Runs them all at once.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    poll_fn(|context| {
        for place in &mut futures {
            if place.as_mut().is_some_and(|future| future.as_mut().poll(context).is_ready()) {
                *place = None;
            }
        }
        if futures.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
