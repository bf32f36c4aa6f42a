//! One request at a time to a Jaeger, of either version, and what it answers.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use stagetrace_wire::id::TraceId;
use stagetrace_wire::otlp::json::{ReadOptions, read_document};
use stagetrace_wire::span::Span;
use ureq::Agent;

use super::JaegerQuery;
use super::windows::{Window, percent_encoded, rfc3339};
use crate::source::jaeger;

/// A Jaeger.
pub(super) struct Client {
    agent: Agent,
    url: String,
    max_bytes: usize,
    /// `None` until it has answered.
    api: Option<Api>,
}

/// What it understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    /// Times in microseconds, tags.
    V1,
    /// OTLP.
    V3,
}

/// An answer.
pub(super) enum Found {
    Spans(Vec<Span>, u64),
    /// It is longer than is read.
    TooLarge,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) why: String,
    pub(super) retry_after: Option<Duration>,
    pub(super) cause: Cause,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is not there, or busy.
    NoAnswer,
    /// It takes too long.
    Slow,
    /// It does not look for so many traces at once.
    Limit,
    /// What it answers is of no use.
    Answer,
}

/// A stream of answers of version 3.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ServicesV1 {
    data: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ServicesV3 {
    #[serde(default)]
    services: Vec<String>,
}

/// Bytes of an answer that are told of a failure.
const SHOWN: usize = 200;
/// Most redirections that are followed.
const REDIRECTS: u32 = 3;

impl Client {
    pub(super) fn new(query: &JaegerQuery) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(query.timeout))
            .max_redirects(REDIRECTS)
            .http_status_as_error(false)
            .user_agent(concat!("stagetrace-viewer/", env!("CARGO_PKG_VERSION")));
        #[cfg(feature = "tls")]
        let config = match query.url.starts_with("https:") {
            true => config.tls_config(super::tls::config()),
            false => config,
        };
        Self {
            agent: config.build().new_agent(),
            url: query.url.trim_end_matches('/').to_owned(),
            max_bytes: query.max_answer_bytes,
            api: None,
        }
    }

    /// The services that it knows.
    pub(super) fn services(&mut self) -> Result<Vec<String>, Failed> {
        if self.api != Some(Api::V1) {
            let answer = self.get("/api/v3/services")?;
            // Older ones answer whatever they do not know with their user interface.
            if let (200, Some(body)) = &answer
                && let Ok(ServicesV3 { services }) = serde_json::from_slice(body)
            {
                self.api = Some(Api::V3);
                return Ok(services);
            }
            if self.api.is_some() || answer.0 >= 500 {
                return Err(failed(&answer));
            }
        }
        let answer = self.get("/api/services")?;
        match &answer {
            (200, Some(body)) => {
                let services: ServicesV1 = serde_json::from_slice(body).map_err(|_| {
                    other("it does not answer as a Jaeger does; name its query port")
                })?;
                self.api = Some(Api::V1);
                Ok(services.data.unwrap_or_default())
            }
            _ => Err(failed(&answer)),
        }
    }

    /// Traces of a service with a span that began in a window, so many at most.
    pub(super) fn find(
        &mut self,
        service: &str,
        window: Window,
        limit: u32,
    ) -> Result<Found, Failed> {
        let service = percent_encoded(service);
        let Window { from, to } = window;
        let path = match self.api {
            Some(Api::V3) => {
                let end = to.saturating_mul(1000).saturating_add(999);
                let (from, to) = (rfc3339(from.saturating_mul(1000)), rfc3339(end));
                format!(
                    "/api/v3/traces?query.service_name={service}&query.start_time_min={from}&query.start_time_max={to}&query.num_traces={limit}&query.raw_traces=true"
                )
            }
            _ => {
                // It compares nanoseconds, of which the last microsecond has a thousand.
                let end = to.saturating_add(1);
                format!(
                    "/api/traces?service={service}&start={from}&end={end}&limit={limit}&raw=true"
                )
            }
        };
        self.traces(&path)
    }

    /// One trace.
    pub(super) fn trace(&mut self, id: TraceId) -> Result<Found, Failed> {
        match self.api {
            Some(Api::V3) => self.traces(&format!("/api/v3/traces/{id}?raw_traces=true")),
            _ => self.traces(&format!("/api/traces/{id}?raw=true")),
        }
    }

    fn traces(&mut self, path: &str) -> Result<Found, Failed> {
        let answer = self.get(path)?;
        match &answer {
            (200, Some(body)) => {
                let read = match self.api {
                    Some(Api::V3) => read_pieces(body),
                    _ => {
                        let mut spans = Vec::new();
                        jaeger::each(body, |span| spans.push(span)).map(|refused| (spans, refused))
                    }
                };
                let (spans, refused) =
                    read.map_err(|why| other(format!("its answer cannot be read: {why}")))?;
                Ok(Found::Spans(spans, refused))
            }
            (200, None) => Ok(Found::TooLarge),
            // There are none.
            (404, _) => Ok(Found::Spans(Vec::new(), 0)),
            _ => Err(failed(&answer)),
        }
    }

    /// Status and body; `None` if it is too long.
    fn get(&mut self, path: &str) -> Result<(u16, Option<Vec<u8>>), Failed> {
        let answer = self.agent.get(format!("{}{path}", self.url)).call();
        let mut answer = answer.map_err(|error| no_answer(&error))?;
        let status = answer.status().as_u16();
        if matches!(status, 429 | 503) {
            let header = answer.headers().get("retry-after");
            let wait = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            return Err(Failed {
                retry_after: wait.map(Duration::from_secs),
                cause: Cause::NoAnswer,
                ..other(format!("it answered with status {status}"))
            });
        }
        let body = answer.body_mut().with_config().limit(self.max_bytes as u64).read_to_vec();
        match body {
            Ok(body) => Ok((status, Some(body))),
            Err(ureq::Error::BodyExceedsLimit(_)) => Ok((status, None)),
            Err(error) => Err(no_answer(&error)),
        }
    }
}

/// Reads the answer of version 3: one or more objects.
fn read_pieces(body: &[u8]) -> Result<(Vec<Span>, u64), String> {
    let options = ReadOptions { strict: false, max_bytes: usize::MAX };
    let (mut spans, mut refused) = (Vec::new(), 0);
    for piece in serde_json::Deserializer::from_slice(body).into_iter::<Piece<'_>>() {
        let piece = piece.map_err(|error| error.to_string())?;
        if let Some(error) = piece.error {
            return Err(error.get().chars().take(SHOWN).collect());
        }
        let Some(result) = piece.result else { continue };
        let contents = read_document(result.get().as_bytes(), &options)
            .map_err(|damaged| damaged.damage.to_string())?;
        spans.extend(contents.spans);
        refused += contents.report.refused_spans;
    }
    Ok((spans, refused))
}

fn no_answer(error: &ureq::Error) -> Failed {
    let cause = match error {
        ureq::Error::Timeout(_) => Cause::Slow,
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => Cause::Slow,
        _ => Cause::NoAnswer,
    };
    Failed { cause, ..other(error.to_string()) }
}

fn other(why: impl Into<String>) -> Failed {
    Failed { why: why.into(), retry_after: None, cause: Cause::Answer }
}

/// What an answer says that is none.
fn failed((status, body): &(u16, Option<Vec<u8>>)) -> Failed {
    let text = String::from_utf8_lossy(body.as_deref().unwrap_or_default());
    let shown: String = text.trim().chars().take(SHOWN).collect();
    let cause = if text.contains("search depth") { Cause::Limit } else { Cause::Answer };
    Failed { cause, ..other(format!("it answered with status {status}: {shown}")) }
}
