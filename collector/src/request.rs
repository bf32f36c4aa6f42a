//! A request as it came.

use std::fmt;
use std::time::Instant;

/// A form of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Protobuf over gRPC.
    Grpc,
    /// Protobuf over HTTP.
    HttpProtobuf,
    /// JSON over HTTP.
    HttpJson,
}

/// A request as it came, whatever became of it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// When its head arrived.
    pub arrived: Instant,
    /// The form of OTLP. `None` if it has none: its path, method or content type is another, and no
    /// reply was taken for it.
    pub protocol: Option<Protocol>,
    /// The path, without a query.
    pub path: String,
    /// The headers as they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The compression of the body: `gzip` or `zstd`. `None` if it came plain, or too
    /// large to be looked at.
    pub compression: Option<&'static str>,
    /// Bytes of the body as it came; over gRPC of the message, without the five before it. Of a
    /// body that is too large some may be missing.
    pub sent_bytes: usize,
    /// Bytes of the body after decompression. `None` if that failed or was not tried.
    pub body_bytes: Option<usize>,
    /// Spans that could be read from it, whether they were kept or not.
    pub spans: usize,
    /// Why it is no valid request.
    pub error: Option<String>,
}

impl Request {
    /// The first value of a header; names are compared without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        header.map(|(_, value)| &**value)
    }
}

/// Without the values of headers, which may be secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Request")
            .field("protocol", &self.protocol)
            .field("path", &self.path)
            .field("headers", &headers)
            .field("compression", &self.compression)
            .field("sent_bytes", &self.sent_bytes)
            .field("body_bytes", &self.body_bytes)
            .field("spans", &self.spans)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}
