//! What servers answer: how many spans they rejected, when they want to be asked again.

use crate::config::{Endpoint, Shown};
use crate::export::supervised::{Cause, Failure};
use http::header::{HeaderMap, RETRY_AFTER};
use prost::Message;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Largest answer that is read.
pub(super) const ANSWER_MAX: usize = 4 << 20;
/// Longest part of a server's message that is repeated, in characters.
const SHOWN: usize = 200;

/// What a server says of what has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Spans that it did not take.
    pub(super) rejected: u64,
    message: String,
}

impl Answer {
    /// Reads an answer in protobuf. What cannot be read says nothing: that it has arrived is known already.
    pub(super) fn of_protobuf(bytes: &[u8]) -> Answer {
        let response = ExportResponse::decode(bytes).unwrap_or_default();
        let partial = response.partial_success.unwrap_or_default();
        Answer::new(partial.rejected_spans, partial.error_message)
    }

    /// Reads an answer in JSON, likewise.
    #[cfg(feature = "otlp-http")]
    pub(super) fn of_json(bytes: &[u8]) -> Answer {
        let response: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
        let partial = &response["partialSuccess"];
        let rejected = &partial["rejectedSpans"];
        let rejected = rejected.as_i64().or_else(|| rejected.as_str()?.parse().ok());
        let message = partial["errorMessage"].as_str().unwrap_or_default();
        Answer::new(rejected.unwrap_or_default(), message.to_owned())
    }

    /// What was lost of so many spans that this endpoint was sent.
    pub(super) fn loss(&self, spans: u64, endpoint: &Endpoint) -> Option<(u64, Failure)> {
        let lost = self.rejected.min(spans);
        let failure = || Failure { cause: Cause::Rejected, problem: format!("{endpoint}: {self}") };
        (lost > 0).then(|| (lost, failure()))
    }

    /// Whether the server says anything in words: a warning, if it took all.
    pub(super) fn has_message(&self) -> bool {
        !self.message.is_empty()
    }

    fn new(rejected: i64, message: String) -> Answer {
        Answer { rejected: rejected.try_into().unwrap_or_default(), message }
    }
}

impl fmt::Display for Answer {
    /// One line: the server's own words are cut, and their control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rejected {
            0 => f.write_str("the server took all spans")?,
            some => write!(f, "the server rejected {some} spans")?,
        }
        if self.has_message() { write!(f, ": {}", Shown(&self.message, SHOWN)) } else { Ok(()) }
    }
}

/// The delay that a `google.rpc.Status` asks for in its details.
#[cfg(feature = "otlp-grpc")]
pub(super) fn retry_delay(status: &[u8]) -> Option<Duration> {
    let status = Status::decode(status).ok()?;
    let is_about_retry = |detail: &&Any| detail.type_url.ends_with("/google.rpc.RetryInfo");
    let detail = status.details.iter().find(is_about_retry)?;
    let delay = RetryInfo::decode(detail.value.as_slice()).ok()?.retry_delay.unwrap_or_default();
    let seconds = Duration::from_secs(delay.seconds.try_into().unwrap_or_default());
    Some(seconds + Duration::from_nanos(delay.nanos.try_into().unwrap_or_default()))
}

/// How long to wait, if an answer over HTTP says so.
pub(super) fn wait(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, SystemTime::now())
}

/// The delay that a header `Retry-After` asks for: seconds, or a date.
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    // A date that has passed asks for nothing.
    Some(date.duration_since(now).unwrap_or_default())
}

// Of OTLP's and gRPC's own messages, what is read here.

#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

#[cfg(feature = "otlp-grpc")]
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[cfg(feature = "otlp-grpc")]
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[cfg(feature = "otlp-grpc")]
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

#[cfg(feature = "otlp-grpc")]
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[cfg(test)]
mod tests;
