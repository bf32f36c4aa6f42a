//! Where spans are sent over a network: what may be said about it, by the program and by the environment.

mod env;
mod problem;
#[cfg(feature = "_network")]
mod proxy;
#[cfg(feature = "_network")]
mod target;
#[cfg(test)]
mod tests;

use super::choice::Choice;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(super) use env::{Exporter, apply};
pub use problem::OtlpError;
#[cfg(feature = "_network")]
pub(crate) use proxy::Proxy;
#[cfg(feature = "_network")]
pub(crate) use target::{Endpoint, Mistake, Target};

/// Where spans are sent over the network, beside the local files, and how. Given to
/// [`TraceConfig::otlp`](super::TraceConfig::otlp).
///
/// ```
/// use stagetrace::{Otlp, TraceConfig};
///
/// let otlp = Otlp::grpc("http://collector:4317").header("x-team", "inference");
/// let config = TraceConfig::new().otlp(otlp);
/// # let _ = config;
/// ```
///
/// Needs the feature `otlp-grpc` or `otlp-http` of this crate, and `tls` for `https`. What is not said here comes from
/// the environment (`OTEL_EXPORTER_OTLP_*`), if the configuration was read from there, or is the default. Only the
/// environment names proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`). Whatever is said here and cannot be
/// used is an error of [`init`](crate::init); files are read only if tracing is enabled.
///
/// Sending harms nobody: it has its own thread, a bounded queue and a deadline; what is lost is counted in
/// [`SinkStatus`](crate::SinkStatus) under the name `otlp`. No header's value is ever shown, nor what stands before the
/// host or behind the path of a URL.
#[derive(Clone, Default, PartialEq)]
#[must_use = "it does nothing until it is given to `TraceConfig::otlp`"]
pub struct Otlp {
    /// Whether to send; `None`: if there is an endpoint.
    pub(super) on: Option<Given<bool>>,
    pub(super) protocol: Option<Given<Protocol>>,
    pub(super) endpoint: Option<Given<String>>,
    pub(super) traces_endpoint: Option<Given<String>>,
    pub(super) headers: Vec<Given<(String, String)>>,
    pub(super) compression: Option<Given<Compression>>,
    pub(super) timeout: Option<Duration>,
    pub(super) insecure: Option<bool>,
    pub(super) certificate: Option<Given<PathBuf>>,
    pub(super) client_certificate: Option<Given<PathBuf>>,
    pub(super) client_key: Option<Given<PathBuf>>,
    #[cfg(feature = "_network")]
    pub(super) proxies: proxy::Proxies,
}

/// How requests are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC. Needs the feature `otlp-grpc`.
    Grpc,
    /// HTTP with bodies in protobuf. Needs the feature `otlp-http`. The default.
    #[default]
    HttpProtobuf,
    /// HTTP with bodies in JSON. Needs the feature `otlp-http`.
    HttpJson,
}

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all. The default.
    #[default]
    None,
    /// With gzip, which every server takes. Needs the feature `gzip`.
    Gzip,
    /// With zstd, which is faster and which some servers take. Needs the feature `zstd`.
    Zstd,
}

impl Choice for Protocol {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("grpc", Self::Grpc),
        ("http/protobuf", Self::HttpProtobuf),
        ("http/json", Self::HttpJson),
    ];
}

impl Choice for Compression {
    const WORDS: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("gzip", Self::Gzip), ("zstd", Self::Zstd)];
}

impl Otlp {
    /// Nothing but what the environment says: to add to it.
    pub fn new() -> Otlp {
        Otlp::default()
    }

    /// Over gRPC to this server, as in `http://localhost:4317`. A path in it is not used.
    pub fn grpc(endpoint: impl Into<String>) -> Otlp {
        Otlp::to(Protocol::Grpc, endpoint.into())
    }

    /// Over HTTP to this server, as in `http://localhost:4318`, in protobuf. `v1/traces` is appended to the path.
    pub fn http(endpoint: impl Into<String>) -> Otlp {
        Otlp::to(Protocol::HttpProtobuf, endpoint.into())
    }

    /// Over HTTP to this server, in JSON: for what cannot read protobuf. `v1/traces` is appended to the path.
    pub fn http_json(endpoint: impl Into<String>) -> Otlp {
        Otlp::to(Protocol::HttpJson, endpoint.into())
    }

    /// Nothing is sent, whatever the environment says.
    pub fn off() -> Otlp {
        Otlp { on: Some(false.into()), ..Otlp::default() }
    }

    fn to(protocol: Protocol, endpoint: String) -> Otlp {
        Otlp {
            on: Some(true.into()),
            protocol: Some(protocol.into()),
            endpoint: Some(endpoint.into()),
            ..Otlp::default()
        }
    }

    /// How requests are made; [`Protocol::HttpProtobuf`] by default.
    pub fn protocol(mut self, protocol: Protocol) -> Otlp {
        self.protocol = Some(protocol.into());
        self
    }

    /// The URL to which spans go, taken as it is: nothing is appended. It beats the server's own URL.
    pub fn traces_endpoint(mut self, url: impl Into<String>) -> Otlp {
        (self.on, self.traces_endpoint) = (Some(true.into()), Some(url.into().into()));
        self
    }

    /// A header of each request. It replaces one of the same name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Otlp {
        self.set_header((name.into(), value.into()).into());
        self
    }

    /// How bodies are compressed; not at all by default.
    pub fn compression(mut self, compression: Compression) -> Otlp {
        self.compression = Some(compression.into());
        self
    }

    /// How long the export of a batch may take, all attempts and the waits between them included: 10 s by default. It is
    /// never longer than [`Batching::export_timeout`](crate::Batching::export_timeout), which is all that holds if this
    /// is zero.
    pub fn timeout(mut self, timeout: Duration) -> Otlp {
        self.timeout = Some(timeout);
        self
    }

    /// Whether an endpoint without scheme, as in `localhost:4317`, is `http` instead of `https`; false by default. Only
    /// gRPC has such endpoints.
    pub fn insecure(mut self, insecure: bool) -> Otlp {
        self.insecure = Some(insecure);
        self
    }

    /// A file of certificates in PEM: only servers that one of these has signed are trusted, instead of those that the
    /// system trusts. To an `http` endpoint it makes no difference, which is a warning.
    pub fn certificate(mut self, path: impl Into<PathBuf>) -> Otlp {
        self.certificate = Some(path.into().into());
        self
    }

    /// This process's own certificate and its key, as files in PEM, for servers that ask for one. To an `http` endpoint
    /// they make no difference, which is a warning.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Otlp {
        self.client_certificate = Some(certificate.into().into());
        self.client_key = Some(key.into().into());
        self
    }

    fn set_header(&mut self, header: Given<(String, String)>) {
        self.headers.retain(|other| !other.value.0.eq_ignore_ascii_case(&header.value.0));
        self.headers.push(header);
    }

    /// What `self` says, changed by what `other` says.
    pub(super) fn changed_by(self, other: Otlp) -> Otlp {
        let mut changed = Otlp {
            on: other.on.or(self.on),
            protocol: other.protocol.or(self.protocol),
            compression: other.compression.or(self.compression),
            timeout: other.timeout.or(self.timeout),
            insecure: other.insecure.or(self.insecure),
            certificate: other.certificate.or(self.certificate),
            client_certificate: other.client_certificate.or(self.client_certificate),
            client_key: other.client_key.or(self.client_key),
            #[cfg(feature = "_network")]
            proxies: other.proxies.or(self.proxies),
            headers: self.headers,
            // An endpoint is one setting, whichever way it is said.
            ..match other.endpoint.is_some() || other.traces_endpoint.is_some() {
                true => Otlp {
                    endpoint: other.endpoint,
                    traces_endpoint: other.traces_endpoint,
                    ..Otlp::default()
                },
                false => Otlp {
                    endpoint: self.endpoint,
                    traces_endpoint: self.traces_endpoint,
                    ..Otlp::default()
                },
            }
        };
        for header in other.headers {
            changed.set_header(header);
        }
        changed
    }

    /// An error if something is to be sent, since nothing here can.
    #[cfg(not(feature = "_network"))]
    pub(super) fn none_is_asked_for(&self) -> Result<(), OtlpError> {
        let (what, feature) = match self.protocol.map(|given| given.value) {
            Some(Protocol::Grpc) => ("OTLP over gRPC", "otlp-grpc"),
            _ => ("OTLP over HTTP", "otlp-http"),
        };
        if self.is_on() { Err(OtlpError::Feature { what, feature }) } else { Ok(()) }
    }

    /// Whether anything is to be sent.
    pub(super) fn is_on(&self) -> bool {
        let has_endpoint = self.endpoint.is_some() || self.traces_endpoint.is_some();
        self.on.map_or(has_endpoint, |on| on.value)
    }
}

impl fmt::Debug for Otlp {
    /// Without what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> =
            self.headers.iter().map(|header| header.value.0.as_str()).collect();
        f.debug_struct("Otlp")
            .field("on", &self.is_on())
            .field("protocol", &self.protocol)
            .field("headers", &headers)
            .field("compression", &self.compression)
            .field("timeout", &self.timeout)
            .field("insecure", &self.insecure)
            .field("certificate", &self.certificate)
            .field("client_certificate", &self.client_certificate)
            .finish_non_exhaustive()
    }
}

/// A value, and the variable that gave it; `None`: the program did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    #[cfg_attr(
        not(feature = "_network"),
        expect(dead_code, reason = "only the program can ask for it")
    )]
    pub(crate) variable: Option<&'static str>,
}

impl<T> From<T> for Given<T> {
    fn from(value: T) -> Given<T> {
        Given { value, variable: None }
    }
}

impl<T: PartialEq> PartialEq for Given<T> {
    /// Who said it does not make it another.
    fn eq(&self, other: &Given<T>) -> bool {
        self.value == other.value
    }
}
