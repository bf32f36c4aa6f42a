//! Answers in each form of OTLP.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::decompress::ACCEPTED;
use crate::reply::GrpcCode;
use crate::request::Protocol;

/// What became of a request.
pub(crate) enum Outcome {
    Success,
    Partial { rejected: u64, message: String },
    Failure(Failure),
}

/// Why a request failed, as gRPC and as HTTP say it.
pub(crate) struct Failure {
    pub(crate) code: GrpcCode,
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
}

/// The body of an answer: frames, of which the last may be an abort.
pub(crate) struct Frames(VecDeque<Result<Frame<Bytes>, io::Error>>);

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

impl Failure {
    pub(crate) fn new(code: GrpcCode, status: u16, message: impl Into<String>) -> Self {
        Self { code, status, message: message.into(), retry_after: None }
    }
}

impl Outcome {
    pub(crate) fn encode(&self, protocol: Protocol) -> Response<Frames> {
        match (protocol, self) {
            (_, Self::Failure(failure)) => failure.encode(protocol),
            (_, Self::Success) => success(protocol, message(protocol, 0, "")),
            (_, Self::Partial { rejected, message: text }) => {
                success(protocol, message(protocol, *rejected, text))
            }
        }
    }
}

/// A successful answer whose body is no message.
pub(crate) fn garbage(protocol: Protocol) -> Response<Frames> {
    // A field of a type that protobuf does not have, and no JSON.
    success(protocol, b"\x0f\xffgarbage".to_vec())
}

/// A successful answer that breaks off within its body.
pub(crate) fn torn(protocol: Protocol) -> Response<Frames> {
    let mut response = success(protocol, message(protocol, 1, "the rest of this text is"));
    let body = response.body_mut();
    let whole = body.0.pop_front().and_then(Result::ok).and_then(|frame| frame.into_data().ok());
    let whole = whole.unwrap_or_default();
    let broken = io::Error::new(io::ErrorKind::ConnectionReset, "closed by script");
    body.0 = VecDeque::from([Ok(Frame::data(whole.slice(..whole.len() / 2))), Err(broken)]);
    if protocol != Protocol::Grpc {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(whole.len()));
    }
    response
}

/// An answer of HTTP that is none of OTLP.
pub(crate) fn plain(status: u16, text: impl Into<String>) -> Response<Frames> {
    let mut response = Response::new(Frames::of(text.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

impl Failure {
    fn encode(&self, protocol: Protocol) -> Response<Frames> {
        let body = match protocol {
            Protocol::Grpc => return self.encode_grpc(),
            Protocol::HttpProtobuf => self.status_message(),
            Protocol::HttpJson => {
                json!({"code": self.code as i32, "message": self.message}).to_string().into_bytes()
            }
        };
        let mut response = plain(self.status, "");
        *response.body_mut() = Frames::of(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type(protocol));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(rounded_up(wait)));
        }
        if self.status == 415 {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        }
        response
    }

    /// With the trailers as headers, as gRPC has it for an answer without a message.
    fn encode_grpc(&self) -> Response<Frames> {
        let mut response = Response::new(Frames(VecDeque::new()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type(Protocol::Grpc));
        headers.insert(GRPC_STATUS, HeaderValue::from(self.code as u16));
        headers.insert(GRPC_MESSAGE, percent_encoded(&self.message));
        if self.status == 415 {
            headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        }
        if self.retry_after.is_some() {
            let details = STANDARD_NO_PAD.encode(self.status_message());
            if let Ok(details) = HeaderValue::try_from(details) {
                headers.insert(GRPC_DETAILS, details);
            }
        }
        response
    }

    /// A `google.rpc.Status`, with a `RetryInfo` if the sender is to wait.
    fn status_message(&self) -> Vec<u8> {
        let mut status = Vec::new();
        put_number(&mut status, 1, self.code as u64);
        put_bytes(&mut status, 2, self.message.as_bytes());
        if let Some(wait) = self.retry_after {
            let (mut delay, mut info, mut any) = (Vec::new(), Vec::new(), Vec::new());
            put_number(&mut delay, 1, wait.as_secs());
            put_number(&mut delay, 2, wait.subsec_nanos().into());
            put_bytes(&mut info, 1, &delay);
            put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
            put_bytes(&mut any, 2, &info);
            put_bytes(&mut status, 3, &any);
        }
        status
    }
}

/// An `ExportTraceServiceResponse`.
fn message(protocol: Protocol, rejected: u64, text: &str) -> Vec<u8> {
    let is_partial = rejected > 0 || !text.is_empty();
    if protocol == Protocol::HttpJson {
        let partial = json!({"rejectedSpans": rejected.to_string(), "errorMessage": text});
        let whole = if is_partial { json!({"partialSuccess": partial}) } else { json!({}) };
        return whole.to_string().into_bytes();
    }
    let mut response = Vec::new();
    if is_partial {
        let mut partial = Vec::new();
        put_number(&mut partial, 1, rejected);
        put_bytes(&mut partial, 2, text.as_bytes());
        put_bytes(&mut response, 1, &partial);
    }
    response
}

fn success(protocol: Protocol, message: Vec<u8>) -> Response<Frames> {
    let mut response = Response::new(match protocol {
        Protocol::Grpc => {
            let mut framed = vec![0];
            framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
            framed.extend_from_slice(&message);
            let status = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from(0))]);
            Frames([Ok(Frame::data(framed.into())), Ok(Frame::trailers(status))].into())
        }
        Protocol::HttpProtobuf | Protocol::HttpJson => Frames::of(message),
    });
    response.headers_mut().insert(CONTENT_TYPE, content_type(protocol));
    response
}

fn content_type(protocol: Protocol) -> HeaderValue {
    HeaderValue::from_static(match protocol {
        Protocol::Grpc => "application/grpc",
        Protocol::HttpProtobuf => "application/x-protobuf",
        Protocol::HttpJson => "application/json",
    })
}

/// Whole seconds are all that HTTP has.
fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// A text as a header that any client takes, so not too long.
fn percent_encoded(text: &str) -> HeaderValue {
    let mut encoded = String::new();
    for byte in text.bytes().take(1024) {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(encoded).unwrap_or(HeaderValue::from_static(""))
}

fn put_number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number > 0 {
        out.push(field << 3);
        put_varint(out, number);
    }
}

fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    if !bytes.is_empty() {
        out.push(field << 3 | 2);
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

impl Frames {
    fn of(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self(if body.is_empty() { VecDeque::new() } else { [Ok(Frame::data(body))].into() })
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.0.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.0.iter().collect::<Vec<_>>()[..] {
            [] => SizeHint::with_exact(0),
            [Ok(frame)] => SizeHint::with_exact(frame.data_ref().map_or(0, Bytes::len) as u64),
            _ => SizeHint::default(),
        }
    }
}
