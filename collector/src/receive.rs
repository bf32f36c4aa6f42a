//! One request: read it, keep its spans, answer.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue};
use stagetrace_wire::otlp::json::{Contents, ReadOptions, read_document};
use stagetrace_wire::otlp::protobuf::read_request;
use stagetrace_wire::span::Span;

use crate::body;
use crate::encode::{self, Failure, Frames, Outcome};
use crate::reply::{GrpcCode, Kind, Reply};
use crate::request::{Protocol, Request};
use crate::route::{Refusal, route};
use crate::store::{Delivery, Store};

/// What the requests of a server have in common.
pub(crate) struct Receiver {
    pub(crate) store: Arc<Store>,
    pub(crate) handler: Option<Handler>,
    pub(crate) max_grpc_bytes: usize,
    pub(crate) max_http_bytes: usize,
}

/// Takes spans instead of the store.
#[derive(Clone)]
pub(crate) struct Handler(pub(crate) Arc<dyn Fn(Vec<Span>) -> Reply + Send + Sync>);

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed by script")]
pub(crate) struct Close;

impl Receiver {
    pub(crate) async fn receive(
        &self,
        request: hyper::Request<Incoming>,
    ) -> Result<Response<Frames>, Close> {
        let (head, body) = request.into_parts();
        let mut record = Request {
            arrived: Instant::now(),
            protocol: None,
            path: head.uri.path().to_owned(),
            headers: owned_headers(&head.headers),
            compression: None,
            sent_bytes: 0,
            body_bytes: None,
            spans: 0,
            error: None,
        };
        let protocol = match route(&head) {
            Ok(protocol) => protocol,
            Err(refusal) => {
                body::ignore(body, &mut record).await;
                return Ok(self.refuse(record, refusal));
            }
        };
        record.protocol = Some(protocol);
        // Scripts are in the order in which heads arrive.
        let scripted = match self.handler {
            Some(_) => Reply::success(),
            None => self.store.next_reply(),
        };
        let mut contents = self.read(protocol, body, &head.headers, &mut record).await;
        record.spans = contents.as_ref().map_or(0, |contents| contents.spans.len());
        let reply = match (&self.handler, &mut contents) {
            (Some(Handler(handler)), Ok(contents)) => handler(mem::take(&mut contents.spans)),
            _ => scripted,
        };
        let (outcome, delivery) = settle(contents, &reply, record);
        self.store.add(delivery);
        answer(outcome, protocol, &reply).await
    }

    fn refuse(&self, mut record: Request, refusal: Refusal) -> Response<Frames> {
        record.error = Some(refusal.text.clone());
        self.store.add(Delivery::without_spans(record));
        refusal.encode()
    }

    /// The contents of the body. Notes what is learnt on the way.
    async fn read(
        &self,
        protocol: Protocol,
        body: Incoming,
        headers: &HeaderMap,
        record: &mut Request,
    ) -> Result<Contents, Failure> {
        let limit = match protocol {
            Protocol::Grpc => self.max_grpc_bytes,
            Protocol::HttpProtobuf | Protocol::HttpJson => self.max_http_bytes,
        };
        let plain = body::read(body, protocol, headers, limit, record).await?;
        match protocol {
            Protocol::HttpJson => {
                let options = ReadOptions { max_bytes: limit, ..ReadOptions::default() };
                read_document(&plain, &options).map_err(|error| body::invalid(error.to_string()))
            }
            Protocol::Grpc | Protocol::HttpProtobuf => {
                read_request(&plain).map_err(|error| body::invalid(error.to_string()))
            }
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

fn owned_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let owned = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), owned(value))).collect()
}

/// What to answer if the reply does not say otherwise, and what to keep.
fn settle(
    contents: Result<Contents, Failure>,
    reply: &Reply,
    mut record: Request,
) -> (Outcome, Delivery) {
    let contents = match contents {
        Ok(contents) => contents,
        Err(failure) => {
            record.error = Some(failure.message.clone());
            let delivery = Delivery::without_spans(record);
            return (Outcome::Failure(failure), delivery);
        }
    };
    let Contents { mut spans, report, .. } = contents;
    let read = record.spans;
    record.error = report.refused.first().map(|first| first.refusal.to_string());
    let asked = match reply.kind {
        Kind::Partial { rejected } => rejected,
        _ if reply.keeps_spans => 0,
        _ => u64::MAX,
    };
    let accepted = read.saturating_sub(usize::try_from(asked).unwrap_or(usize::MAX));
    spans.truncate(accepted);

    let message = match (&*reply.message, &record.error) {
        ("", Some(error)) => error.clone(),
        (message, _) => message.to_owned(),
    };
    let said = report.refused_spans.saturating_add(asked);
    let outcome = if said == 0 && message.is_empty() {
        Outcome::Success
    } else {
        Outcome::Partial { rejected: said, message }
    };
    let rejected = report.refused_spans + (read - accepted) as u64;
    (outcome, Delivery { request: record, spans, accepted: accepted as u64, rejected })
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
        response.headers_mut().insert(name, value.clone());
    }
    Ok(response)
}
