//! Attempts over HTTP.

use super::answer::{ANSWER_MAX, Answer, wait};
use super::compress::compressed;
use super::connect::{Connector, Stream, USER_AGENT, builder, causes};
use super::retry::{Transport, Verdict};
use super::tcp::has_tunnel;
use crate::config::{Compression, Endpoint, Protocol, Target};
use crate::export::supervised::Failure;
use bytes::Bytes;
use http::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT as NAME,
};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;

const JSON: &str = "application/json";
/// What helps where a server has no such URL.
const WRONG_URL: &str = "is this its URL for traces? v1/traces is appended to OTEL_EXPORTER_OTLP_ENDPOINT, and not to \
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// Posts bodies to one URL.
pub(super) struct Http {
    connector: Connector,
    client: Client<Stream, Full<Bytes>>,
    uri: Uri,
    endpoint: Endpoint,
    headers: HeaderMap,
    compression: Compression,
}

impl Http {
    pub(super) fn new(target: &Target, connector: Connector) -> Http {
        let mut headers = target.headers.clone();
        headers.entry(NAME).or_insert(HeaderValue::from_static(USER_AGENT));
        let content_type = match target.protocol {
            Protocol::HttpJson => JSON,
            _ => "application/x-protobuf",
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let encoding = match target.compression {
            Compression::None => None,
            Compression::Gzip => Some("gzip"),
            Compression::Zstd => Some("zstd"),
        };
        if let Some(proxy) = target.proxy.as_ref().filter(|_| !has_tunnel(target)) {
            headers.extend(proxy.authorization.clone().map(|who| (PROXY_AUTHORIZATION, who)));
        }
        headers.extend(encoding.map(|name| (CONTENT_ENCODING, HeaderValue::from_static(name))));
        Http {
            client: connector.client(&builder()),
            connector,
            uri: target.endpoint.uri().clone(),
            endpoint: target.endpoint.clone(),
            headers,
            compression: target.compression,
        }
    }
}

impl Transport for Http {
    fn prepare(&self, body: &[u8]) -> Result<Bytes, Failure> {
        compressed(body, self.compression)
    }

    async fn attempt(&mut self, body: Bytes) -> Verdict {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) => return Verdict::Again(None, causes(&error)),
        };
        let status = response.status();
        let problem = || format!("HTTP status {status}");
        let from = || format!("HTTP status {status} from {}", self.endpoint);
        match status {
            status if status.is_success() => Verdict::Arrived(read(response).await),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Verdict::Again(wait(response.headers()), problem())
            }
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
                Verdict::Again(None, problem())
            }
            StatusCode::PAYLOAD_TOO_LARGE => Verdict::TooLarge(from()),
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Verdict::Refused(format!("{}; {WRONG_URL}", from())),
            _ => Verdict::Refused(from()),
        }
    }

    fn reconnect(&mut self) {
        self.client = self.connector.client(&builder());
    }
}

/// What a server says of what has arrived: nothing, if it breaks off.
async fn read(
    response: Response<impl http_body::Body<Data = Bytes, Error: Into<Error>>>,
) -> Answer {
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_json = content_type.is_some_and(|of| of.as_bytes().starts_with(JSON.as_bytes()));
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    if is_json { Answer::of_json(&body) } else { Answer::of_protobuf(&body) }
}

type Error = Box<dyn std::error::Error + Send + Sync>;
