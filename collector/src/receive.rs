//! One request: read it, keep its spans, answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use hyper::{Method, Response};
use stagetrace_wire::otlp::json::{Contents, ReadOptions, read_document};
use stagetrace_wire::otlp::protobuf::read_request;

use crate::decompress::{ACCEPTED, Compression, DecompressError};
use crate::encode::{self, Failure, Frames, Outcome};
use crate::reply::{GrpcCode, Kind, Reply};
use crate::request::{Protocol, Request};
use crate::store::{Delivery, Store};

/// What the requests of a server have in common.
pub(crate) struct Receiver {
    pub(crate) store: Arc<Store>,
    pub(crate) max_grpc_bytes: usize,
    pub(crate) max_http_bytes: usize,
}

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed by script")]
pub(crate) struct Close;

const HTTP_PATH: &str = "/v1/traces";
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

impl Receiver {
    pub(crate) async fn receive(
        &self,
        request: hyper::Request<Incoming>,
    ) -> Result<Response<Frames>, Close> {
        let protocol = match route(&request) {
            Ok(protocol) => protocol,
            Err(refusal) => return Ok(*refusal),
        };
        let reply = self.store.next_reply();
        let (head, body) = request.into_parts();
        let mut record = Request {
            arrived: Instant::now(),
            protocol,
            path: head.uri.path().to_owned(),
            headers: owned_headers(&head.headers),
            compression: None,
            sent_bytes: 0,
            body_bytes: None,
            spans: 0,
            error: None,
        };
        let contents = self.read(body, &head.headers, &mut record).await;
        let (outcome, spans, rejected) = settle(contents, &reply, &mut record);
        self.store.add(Delivery { request: record, spans, rejected });
        answer(outcome, protocol, &reply).await
    }

    /// The contents of the body. Notes what is learnt on the way.
    async fn read(
        &self,
        body: Incoming,
        headers: &HeaderMap,
        record: &mut Request,
    ) -> Result<Contents, Failure> {
        let protocol = record.protocol;
        let (limit, frame_head) = match protocol {
            Protocol::Grpc => (self.max_grpc_bytes, GRPC_HEAD),
            Protocol::HttpProtobuf | Protocol::HttpJson => (self.max_http_bytes, 0),
        };
        let body = read_within(body, limit + frame_head, &mut record.sent_bytes).await;
        let body = body.map_err(|error| error.failure(limit))?;
        let (body, is_compressed) = match protocol {
            Protocol::Grpc => unframed(body)?,
            Protocol::HttpProtobuf | Protocol::HttpJson => (body, true),
        };
        record.sent_bytes = body.len();
        let compression =
            if is_compressed { compression(protocol, headers, record)? } else { Compression::None };
        let plain = compression.decompress(body, limit).map_err(|error| match error {
            DecompressError::TooLarge => too_large(limit),
            DecompressError::Malformed(error) => {
                invalid(format!("the body cannot be decompressed: {error}"))
            }
        })?;
        record.body_bytes = Some(plain.len());
        match protocol {
            Protocol::HttpJson => {
                let options = ReadOptions { max_bytes: limit, ..ReadOptions::default() };
                read_document(&plain, &options).map_err(|error| invalid(error.to_string()))
            }
            Protocol::Grpc | Protocol::HttpProtobuf => {
                read_request(&plain).map_err(|error| invalid(error.to_string()))
            }
        }
    }
}

/// Which form of OTLP a request has; else the answer, as HTTP has it.
fn route(request: &hyper::Request<Incoming>) -> Result<Protocol, Box<Response<Frames>>> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let media_type = media_type.to_ascii_lowercase();
    let path = request.uri().path();
    if matches!(&*media_type, "application/grpc" | "application/grpc+proto") {
        return if path == GRPC_PATH && request.method() == Method::POST {
            Ok(Protocol::Grpc)
        } else {
            let message = format!("there is no {path}");
            let failure = Failure::new(GrpcCode::Unimplemented, 404, message);
            Err(Box::new(Outcome::Failure(failure).encode(Protocol::Grpc)))
        };
    }
    let mut refusal = match (path, request.method(), &*media_type) {
        (HTTP_PATH, &Method::POST, "application/x-protobuf") => return Ok(Protocol::HttpProtobuf),
        (HTTP_PATH, &Method::POST, "application/json") => return Ok(Protocol::HttpJson),
        (HTTP_PATH, &Method::POST, _) => encode::plain(
            415,
            "the content type is to be application/x-protobuf or application/json",
        ),
        (HTTP_PATH, ..) => encode::plain(405, "spans are sent with POST"),
        _ => encode::plain(404, "spans are sent to /v1/traces"),
    };
    if refusal.status() == 405 {
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    }
    Err(Box::new(refusal))
}

fn owned_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let owned = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), owned(value))).collect()
}

/// What to answer, which spans to keep, and how many not.
fn settle(
    contents: Result<Contents, Failure>,
    reply: &Reply,
    record: &mut Request,
) -> (Outcome, Vec<stagetrace_wire::span::Span>, u64) {
    let contents = match contents {
        Ok(contents) => contents,
        Err(failure) => {
            record.error = Some(failure.message.clone());
            return (Outcome::Failure(failure), Vec::new(), 0);
        }
    };
    let mut spans = contents.spans;
    record.spans = spans.len();
    let mut rejected = contents.report.refused_spans;
    let mut message = String::new();
    if let [first, ..] = &contents.report.refused[..] {
        message = first.refusal.to_string();
        record.error = Some(message.clone());
    }
    if let Kind::Partial { rejected: asked } = reply.kind {
        spans.truncate(spans.len().saturating_sub(usize::try_from(asked).unwrap_or(usize::MAX)));
        rejected += asked;
    } else if !reply.keeps_spans {
        rejected += spans.len() as u64;
        spans = Vec::new();
    }
    if !reply.message.is_empty() {
        message.clone_from(&reply.message);
    }
    let outcome = match reply.kind {
        _ if rejected == 0 && message.is_empty() => Outcome::Success,
        _ => Outcome::Partial { rejected, message },
    };
    (outcome, spans, rejected)
}

async fn answer(
    outcome: Outcome,
    protocol: Protocol,
    reply: &Reply,
) -> Result<Response<Frames>, Close> {
    tokio::time::sleep(reply.delay).await;
    let failure = |code, status| {
        Outcome::Failure(Failure {
            retry_after: reply.retry_after,
            ..Failure::new(code, status, &*reply.message)
        })
    };
    let mut response = match reply.kind {
        Kind::Success | Kind::Partial { .. } => outcome.encode(protocol),
        Kind::Grpc(GrpcCode::Ok) => Outcome::Success.encode(protocol),
        Kind::Grpc(code) => failure(code, code.http_status()).encode(protocol),
        Kind::Status(status) => {
            // Whoever is in between speaks HTTP, not gRPC.
            let form = if protocol == Protocol::Grpc { Protocol::HttpProtobuf } else { protocol };
            match status {
                200..300 => Outcome::Success.encode(form),
                _ => failure(GrpcCode::of_http_status(status), status).encode(form),
            }
        }
        Kind::Hang => std::future::pending().await,
        Kind::Close => return Err(Close),
        Kind::CloseMidBody => encode::torn(protocol),
        Kind::Garbage => encode::garbage(protocol),
    };
    if let Kind::Status(status) = reply.kind
        && let Ok(status) = hyper::StatusCode::from_u16(status)
    {
        *response.status_mut() = status;
    }
    for (name, value) in &reply.headers {
        use hyper::header::HeaderName;
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

enum BodyError {
    TooLarge,
    Broken(hyper::Error),
}

impl BodyError {
    fn failure(self, limit: usize) -> Failure {
        match self {
            Self::TooLarge => too_large(limit),
            Self::Broken(error) => invalid(format!("the body cannot be read: {error}")),
        }
    }
}

async fn read_within(
    mut body: Incoming,
    limit: usize,
    read: &mut usize,
) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge);
    }
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        // Trailers say nothing of use.
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        *read += data.len();
        if whole.len() + data.len() > limit {
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

/// Bytes before a message of gRPC: whether it is compressed, and its length.
const GRPC_HEAD: usize = 5;

/// The one message of a call, and whether it is compressed.
fn unframed(body: Bytes) -> Result<(Bytes, bool), Failure> {
    let &[flag, a, b, c, d, ..] = &*body else {
        return Err(invalid("the call has no message"));
    };
    let message = body.slice(GRPC_HEAD..);
    if message.len() as u64 != u64::from(u32::from_be_bytes([a, b, c, d])) {
        return Err(invalid("the call is not one whole message"));
    }
    match flag {
        0 => Ok((message, false)),
        1 => Ok((message, true)),
        _ => Err(invalid("the flag of compression is neither 0 nor 1")),
    }
}

fn compression(
    protocol: Protocol,
    headers: &HeaderMap,
    record: &mut Request,
) -> Result<Compression, Failure> {
    let header = match protocol {
        Protocol::Grpc => headers.get("grpc-encoding"),
        Protocol::HttpProtobuf | Protocol::HttpJson => headers.get(CONTENT_ENCODING),
    };
    let name = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let name = name.unwrap_or_default().trim().to_ascii_lowercase();
    let compression = Compression::named(&name).ok_or_else(|| {
        let message = format!("the body is compressed with {name:?}; accepted are {ACCEPTED}");
        Failure::new(GrpcCode::Unimplemented, 415, message)
    });
    if compression.as_ref().ok() != Some(&Compression::None) {
        record.compression = Some(name);
    }
    compression
}

#[cold]
fn too_large(limit: usize) -> Failure {
    let message = format!("the request is larger than {limit} bytes");
    Failure::new(GrpcCode::ResourceExhausted, 413, message)
}

#[cold]
fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(GrpcCode::InvalidArgument, 400, message)
}

/// For whoever sends with a compression that is not accepted.
#[allow(dead_code)]
pub(crate) fn name_accepted(headers: &mut HeaderMap, protocol: Protocol) {
    let name = match protocol {
        Protocol::Grpc => hyper::header::HeaderName::from_static("grpc-accept-encoding"),
        Protocol::HttpProtobuf | Protocol::HttpJson => ACCEPT_ENCODING,
    };
    headers.insert(name, HeaderValue::from_static(ACCEPTED));
}
