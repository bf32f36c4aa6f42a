//! Attempts over gRPC: tonic's call on the client that HTTP has, too. The body goes through as it is.

use super::answer::{ANSWER_MAX, Answer, retry_delay, wait};
use super::compress::compressed;
use super::connect::{Connector, Stream, USER_AGENT, builder, causes};
use super::retry::{Transport, Verdict};
use crate::config::{Compression, Target};
use crate::export::supervised::Failure;
use bytes::{Buf, BufMut, Bytes};
use http::header::{HeaderMap, HeaderValue, USER_AGENT as NAME};
use http::uri::PathAndQuery;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Status};

const METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// What helps where a server has no such method.
const WRONG_PORT: &str = "; is it the server's port for OTLP over gRPC? That is mostly 4317";

/// Calls one server.
pub(super) struct Grpc {
    connector: Connector,
    call: tonic::client::Grpc<Http2>,
    target: Target,
    headers: HeaderMap,
    answered: Answered,
}

/// Whether a message has begun to come in answer to the last call, and no status behind it.
type Answered = Arc<AtomicBool>;

impl Grpc {
    pub(super) fn new(target: &Target, connector: Connector) -> Grpc {
        let mut headers = target.headers.clone();
        headers.entry(NAME).or_insert(HeaderValue::from_static(USER_AGENT));
        let answered = Answered::default();
        let call = call(target, &connector, &answered);
        Grpc { call, connector, target: target.clone(), headers, answered }
    }
}

fn call(target: &Target, connector: &Connector, answered: &Answered) -> tonic::client::Grpc<Http2> {
    let client = connector.client(builder().http2_only(true));
    let client = Http2 { client, answered: Arc::clone(answered) };
    let call = tonic::client::Grpc::with_origin(client, target.endpoint.uri().clone())
        .max_decoding_message_size(ANSWER_MAX);
    let encoding = ENCODINGS.iter().find(|(compression, _)| *compression == target.compression);
    match encoding {
        Some((_, encoding)) => call.send_compressed(*encoding).accept_compressed(*encoding),
        None => call,
    }
}

/// The compressions that are built, as tonic names them.
const ENCODINGS: &[(Compression, CompressionEncoding)] = &[
    #[cfg(feature = "gzip")]
    (Compression::Gzip, CompressionEncoding::Gzip),
    #[cfg(feature = "zstd")]
    (Compression::Zstd, CompressionEncoding::Zstd),
];

impl Grpc {
    /// A refusal, with who refuses; and with what helps, if that knows of no such service.
    #[cold]
    fn refused(&self, status: &Status, problem: &str) -> String {
        let endpoint = &self.target.endpoint;
        let answer = status.source().and_then(|cause| cause.downcast_ref::<NotGrpc>());
        let is_elsewhere = match answer {
            Some(answer) => matches!(answer.status.as_u16(), 404 | 405 | 501),
            None => status.code() == Code::Unimplemented,
        };
        let remedy = if is_elsewhere { WRONG_PORT } else { "" };
        format!("{problem}, from {endpoint}{remedy}")
    }
}

impl Transport for Grpc {
    fn prepare(&self, body: &[u8]) -> Result<Bytes, Failure> {
        // tonic compresses.
        compressed(body, Compression::None)
    }

    async fn attempt(&mut self, body: Bytes) -> Verdict {
        if let Err(error) = self.call.ready().await {
            return Verdict::Again(None, causes(&*error));
        }
        let mut request = Request::new(body);
        *request.metadata_mut() = MetadataMap::from_headers(self.headers.clone());
        match self.call.unary(request, PathAndQuery::from_static(METHOD), AsItIs).await {
            Ok(answer) => Verdict::Arrived(Answer::of_protobuf(&answer.into_inner())),
            // Neither the server nor the connection failed: it is tonic that cannot read the answer, which is too large
            // perhaps. Only who took the batch sends one.
            Err(status) if status.source().is_none() && self.answered.load(Relaxed) => {
                Verdict::Arrived(Answer::default())
            }
            Err(status) => match verdict(&status) {
                Verdict::Refused(problem) => Verdict::Refused(self.refused(&status, &problem)),
                Verdict::TooLarge(problem) => Verdict::TooLarge(self.refused(&status, &problem)),
                verdict => verdict,
            },
        }
    }

    fn reconnect(&mut self) {
        self.call = call(&self.target, &self.connector, &self.answered);
    }
}

/// OTLP's table. The server's own words are not repeated: it may quote what it was sent.
fn verdict(status: &Status) -> Verdict {
    if let Some(cause) = status.source() {
        return match cause.downcast_ref::<NotGrpc>() {
            Some(answer) => answer.verdict(),
            None => Verdict::Again(None, causes(cause)),
        };
    }
    let problem = format!("gRPC status {:?}: {}", status.code(), status.code().description());
    let delay = retry_delay(status.details());
    match status.code() {
        Code::ResourceExhausted | Code::OutOfRange if is_about_size(status.message()) => {
            Verdict::TooLarge(problem)
        }
        Code::ResourceExhausted if delay.is_none() => Verdict::Refused(problem),
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss
        | Code::ResourceExhausted => Verdict::Again(delay, problem),
        _ => Verdict::Refused(problem),
    }
}

/// gRPC has no status of its own for a message that is larger than the server takes; these words are in what the servers
/// in Go, C++, Java and Rust say.
fn is_about_size(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["larger than", "exceeds maximum size", "length too large"]
        .iter()
        .any(|words| message.contains(words))
}

/// The client below tonic's call. It stops answers that are no gRPC, whose bodies tonic would read as messages.
struct Http2 {
    client: Client<Stream, Body>,
    answered: Answered,
}

impl GrpcService<Body> for Http2 {
    type ResponseBody = Body;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.client.request(request);
        let answered = Arc::clone(&self.answered);
        answered.store(false, Relaxed);
        Box::pin(async move {
            let answer = answer.await?;
            let is_grpc =
                answer.status() == StatusCode::OK || answer.headers().contains_key("grpc-status");
            if !is_grpc {
                return Err(NotGrpc::of(&answer).into());
            }
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let is_message = frame.data_ref().is_some_and(|bytes| !bytes.is_empty());
                    answered.store(is_message, Relaxed);
                    frame
                }))
            }))
        })
    }
}

/// What somebody in between answers, a proxy perhaps.
#[derive(Debug, thiserror::Error)]
#[error("HTTP status {status} instead of gRPC")]
struct NotGrpc {
    status: StatusCode,
    wait: Option<Duration>,
}

impl NotGrpc {
    fn of<B>(answer: &Response<B>) -> NotGrpc {
        NotGrpc { status: answer.status(), wait: wait(answer.headers()) }
    }

    /// gRPC says which of its own codes they stand for; one of them is tried again.
    fn verdict(&self) -> Verdict {
        match self.status.as_u16() {
            429 | 503 => Verdict::Again(self.wait, self.to_string()),
            502 | 504 => Verdict::Again(None, self.to_string()),
            413 => Verdict::TooLarge(self.to_string()),
            _ => Verdict::Refused(self.to_string()),
        }
    }
}

/// Bytes that are a message already.
#[derive(Clone, Copy)]
struct AsItIs;

impl Codec for AsItIs {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = AsItIs;
    type Decoder = AsItIs;

    fn encoder(&mut self) -> AsItIs {
        AsItIs
    }

    fn decoder(&mut self) -> AsItIs {
        AsItIs
    }
}

impl Encoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

#[cfg(test)]
mod tests;
