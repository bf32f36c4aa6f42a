//! Connections: plain or encrypted, the same for either protocol.

use super::tcp::Tcp;
use crate::config::{Mistake, Target};
use http_body::Body;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error;
use std::time::Duration;

/// What opens connections.
#[cfg(not(feature = "tls"))]
pub(super) type Stream = Tcp;
/// What opens connections.
#[cfg(feature = "tls")]
pub(super) type Stream = hyper_rustls::HttpsConnector<Tcp>;

/// How long a connection is kept that nobody uses: less than servers and what stands before them do.
const IDLE: Duration = Duration::from_secs(30);

/// Makes clients that reach a target.
#[derive(Clone)]
pub(super) struct Connector(Stream);

impl Connector {
    /// Reads the certificates, if there is use for them.
    pub(super) fn new(target: &Target) -> Result<Connector, Mistake> {
        let tcp = Tcp::new(target);
        #[cfg(feature = "tls")]
        let tcp = hyper_rustls::HttpsConnector::from((tcp, super::tls::config(target)?));
        Ok(Connector(tcp))
    }

    /// A client with no connection yet, for the protocol that `builder` is set to.
    pub(super) fn client<B>(&self, builder: &Builder) -> Client<Stream, B>
    where
        B: Body + Send,
        B::Data: Send,
    {
        builder.build(self.0.clone())
    }
}

/// How clients use connections.
pub(super) fn builder() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    builder
}

/// An error with its causes. They are this machine's: nothing that the server said.
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = own_words(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = own_words(error);
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    if let Some(hint) = hint(&text) {
        text.push_str("; ");
        text.push_str(hint);
    }
    text
}

/// What an error comes of most often, and what helps.
fn hint(text: &str) -> Option<&'static str> {
    const HINTS: [(&str, &str); 5] = [
        (
            "the proxy ",
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names the proxy, and NO_PROXY the hosts that need none",
        ),
        ("InvalidContentType", "the server does not speak TLS here: http:// instead of https://?"),
        ("HTTP/2: frame with invalid size", NO_HTTP2),
        ("HTTP/2: unspecific protocol error detected", NO_HTTP2),
        (
            "invalid HTTP version parsed",
            "is this a port for gRPC? HTTP is mostly on 4318, or OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        ),
    ];
    HINTS.iter().find(|(words, _)| text.contains(words)).map(|(_, hint)| *hint)
}

const NO_HTTP2: &str =
    "is this a port for HTTP? gRPC is mostly on 4317, or OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf";

/// An error without its causes. One of HTTP/2 quotes what the server said when it went away; its reason is a code.
fn own_words(error: &(dyn Error + 'static)) -> String {
    #[cfg(feature = "otlp-grpc")]
    if let Some(reason) = error.downcast_ref().and_then(h2::Error::reason) {
        return format!("HTTP/2: {reason}");
    }
    error.to_string()
}

/// What names this library to servers.
pub(super) const USER_AGENT: &str = concat!(
    "stagetrace/",
    env!("CARGO_PKG_VERSION"),
    " OTel-OTLP-Exporter-Rust/",
    env!("CARGO_PKG_VERSION")
);

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "otlp-grpc")]
    #[test]
    fn only_what_another_protocol_makes_of_http2_hints_at_the_port() {
        let said = |reason: h2::Reason| causes(&h2::Error::from(reason));
        for reason in [h2::Reason::FRAME_SIZE_ERROR, h2::Reason::PROTOCOL_ERROR] {
            assert!(said(reason).ends_with(NO_HTTP2), "{}", said(reason));
        }
        assert_eq!(hint(&said(h2::Reason::ENHANCE_YOUR_CALM)), None);
    }

    #[test]
    fn a_server_that_is_away_gets_no_hint() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(causes(&refused), "connection refused");
    }
}
