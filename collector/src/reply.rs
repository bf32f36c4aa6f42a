//! What a collector answers, instead of what is true.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// An answer to a request to export spans.
///
/// Unless said otherwise, the spans of a request that is answered with a failure are not kept.
///
/// ```
/// # use {std::time::Duration, stagetrace_collector::{GrpcCode, Reply}};
/// let busy = Reply::status(503).retry_after(Duration::from_secs(1));
/// let slow = Reply::success().delay(Duration::from_secs(5));
/// let answer_lost = Reply::close().keep_spans();
/// let overloaded = Reply::grpc(GrpcCode::ResourceExhausted).message("try later");
/// ```
#[derive(Clone, Debug)]
#[must_use = "give it to `Collector::reply` or `Collector::script`"]
pub struct Reply {
    pub(crate) kind: Kind,
    pub(crate) delay: Duration,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) headers: HeaderMap,
    pub(crate) keeps_spans: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Success,
    Partial { rejected: u64 },
    Status(u16),
    Grpc(GrpcCode),
    Hang,
    Close,
    CloseMidBody,
    Garbage,
}

/// A status code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // They mean what gRPC says.
pub enum GrpcCode {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Reply {
    /// The truth: success, or what is wrong with the request.
    pub fn success() -> Self {
        Self::new(Kind::Success)
    }

    /// Success, but for so many spans, which are the last of the request and are not kept.
    pub fn partial_success(rejected: u64) -> Self {
        Self::new(Kind::Partial { rejected })
    }

    /// A status of HTTP. Over gRPC it is sent as it is, as a proxy in between does.
    ///
    /// # Panics
    /// If the status is not within 200 to 599.
    #[track_caller]
    pub fn status(status: u16) -> Self {
        assert!((200..600).contains(&status), "{status} ends no exchange over HTTP");
        Self::new(Kind::Status(status))
    }

    /// A status of gRPC. Over HTTP it becomes the status that gateways make of it.
    pub fn grpc(code: GrpcCode) -> Self {
        Self::new(Kind::Grpc(code))
    }

    /// No answer at all. The request is read, and the connection stays open until the sender closes
    /// it.
    pub fn hang() -> Self {
        Self::new(Kind::Hang)
    }

    /// The request is read, and the connection closed without an answer.
    pub fn close() -> Self {
        Self::new(Kind::Close)
    }

    /// A successful answer breaks off within its body: over HTTP the connection is closed, over gRPC
    /// the call is reset.
    pub fn close_mid_body() -> Self {
        Self::new(Kind::CloseMidBody)
    }

    /// A successful status, and a body that is no message.
    pub fn garbage() -> Self {
        Self::new(Kind::Garbage)
    }

    /// Waits before it answers. The spans are there from the beginning of the wait.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The text of an error or of a partial success.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Asks the sender to wait, if the answer is a failure: with `Retry-After` in whole seconds over
    /// HTTP, with `RetryInfo` over gRPC.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// A header of the answer, for example a `Retry-After` that is a date. It takes the place of one
    /// of the same name.
    ///
    /// # Panics
    /// If HTTP has no such name or value.
    #[track_caller]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => self.headers.insert(name, value),
            _ => panic!("{name}: {value:?} is no header"),
        };
        self
    }

    /// Keeps the spans although the sender is told otherwise or nothing, as when an answer is lost:
    /// what it sends again is then there twice.
    pub fn keep_spans(mut self) -> Self {
        self.keeps_spans = true;
        self
    }

    fn new(kind: Kind) -> Self {
        Self {
            keeps_spans: match kind {
                Kind::Success | Kind::Partial { .. } => true,
                Kind::Status(status) => status < 300,
                Kind::Grpc(code) => code == GrpcCode::Ok,
                Kind::Hang | Kind::Close | Kind::CloseMidBody | Kind::Garbage => false,
            },
            kind,
            delay: Duration::ZERO,
            message: String::new(),
            retry_after: None,
            headers: HeaderMap::new(),
        }
    }
}

impl GrpcCode {
    /// The status that gateways from HTTP to gRPC answer with.
    pub(crate) fn http_status(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::Cancelled => 499,
            Self::InvalidArgument | Self::FailedPrecondition | Self::OutOfRange => 400,
            Self::DeadlineExceeded => 504,
            Self::NotFound => 404,
            Self::AlreadyExists | Self::Aborted => 409,
            Self::PermissionDenied => 403,
            Self::ResourceExhausted => 429,
            Self::Unimplemented => 501,
            Self::Unavailable => 503,
            Self::Unauthenticated => 401,
            Self::Unknown | Self::Internal | Self::DataLoss => 500,
        }
    }

    /// The code that belongs to a status of HTTP, as the body of an error has both.
    pub(crate) fn of_http_status(status: u16) -> Self {
        match status {
            200..300 => Self::Ok,
            400 | 405 | 415 => Self::InvalidArgument,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::NotFound,
            409 => Self::Aborted,
            413 | 429 => Self::ResourceExhausted,
            499 => Self::Cancelled,
            501 => Self::Unimplemented,
            502 | 503 => Self::Unavailable,
            504 => Self::DeadlineExceeded,
            500..600 => Self::Internal,
            _ => Self::Unknown,
        }
    }
}
