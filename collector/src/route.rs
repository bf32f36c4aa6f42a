//! Which form of OTLP a request has.

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response};

use crate::encode::{self, Failure, Frames, Outcome};
use crate::reply::GrpcCode;
use crate::request::Protocol;

/// A request that has no form of OTLP.
pub(crate) struct Refusal {
    is_grpc: bool,
    status: u16,
    pub(crate) text: String,
}

const HTTP_PATH: &str = "/v1/traces";
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Which form of OTLP a request has; else why it has none.
pub(crate) fn route(head: &Parts) -> Result<Protocol, Refusal> {
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    let path = head.uri.path();
    let (status, text) = match (path, &head.method, &*media_type) {
        (GRPC_PATH, &Method::POST, "application/grpc" | "application/grpc+proto") => {
            return Ok(Protocol::Grpc);
        }
        (HTTP_PATH, &Method::POST, "application/x-protobuf") => return Ok(Protocol::HttpProtobuf),
        (HTTP_PATH, &Method::POST, "application/json") => return Ok(Protocol::HttpJson),
        (GRPC_PATH, &Method::POST, _) => {
            (415, format!("the content type is {media_type:?}, not application/grpc"))
        }
        (HTTP_PATH, &Method::POST, _) => (
            415,
            format!(
                "the content type is {media_type:?}, neither application/x-protobuf nor \
                 application/json"
            ),
        ),
        (GRPC_PATH | HTTP_PATH, method, _) => {
            (405, format!("spans are sent with POST, not {method}"))
        }
        _ => (404, format!("there is no {path:?}; spans are sent to {HTTP_PATH}, or over gRPC")),
    };
    Err(Refusal { is_grpc: media_type.starts_with("application/grpc"), status, text })
}

impl Refusal {
    pub(crate) fn encode(self) -> Response<Frames> {
        if self.is_grpc {
            let failure = Failure::new(GrpcCode::Unimplemented, self.status, self.text);
            return Outcome::Failure(failure).encode(Protocol::Grpc);
        }
        let mut response = encode::plain(self.status, self.text);
        if self.status == 405 {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
