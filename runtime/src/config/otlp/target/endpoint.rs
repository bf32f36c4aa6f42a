//! URLs of endpoints: which path they get, and what of them may be shown.

use super::super::{OtlpError, Protocol};
use http::Uri;
use http::uri::Scheme;
use std::fmt;
use std::net::IpAddr;

/// Where requests go. Shown without what may be secret: a user, a query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint(Uri);

/// What is appended to the path of a base URL.
const TRACES: &str = "v1/traces";

impl Endpoint {
    /// That of a test, which is well-formed.
    #[cfg(test)]
    pub(crate) fn of_test(url: &str, protocol: Protocol) -> Endpoint {
        Endpoint::parse(url, protocol, false, false).expect("it is a URL").0
    }

    /// Reads a URL; gives the user before the host besides.
    ///
    /// Over HTTP, an exact one is taken as it is, any other gets the path of traces. Over gRPC the path is not used, and
    /// there may be no scheme: then it is `http` only if that is said to be insecure.
    pub(super) fn parse(
        url: &str,
        protocol: Protocol,
        is_exact: bool,
        is_insecure: bool,
    ) -> Result<(Endpoint, Option<String>), OtlpError> {
        if url.trim().is_empty() {
            return Err(OtlpError::Endpoint("is empty"));
        }
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::HTTP, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::HTTPS, rest),
            Some(_) => return Err(OtlpError::Endpoint("is neither http:// nor https://")),
            None if protocol != Protocol::Grpc => {
                return Err(OtlpError::Endpoint(
                    "has no scheme: it begins with http:// or https://",
                ));
            }
            None if is_insecure => (Scheme::HTTP, url),
            None => (Scheme::HTTPS, url),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (path, String::new()),
        };
        let path = match (protocol, is_exact) {
            (Protocol::Grpc, _) => "/".to_owned(),
            (_, true) if path.is_empty() => format!("/{query}"),
            (_, true) => format!("{path}{query}"),
            (_, false) => format!("{}/{TRACES}{query}", path.trim_end_matches('/')),
        };
        let behind_host = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
        let port = behind_host.rsplit_once(':').map(|(_, port)| port);
        if port.is_some_and(is_out_of_range) {
            return Err(OtlpError::Endpoint("has a port out of range: it is 1 to 65535"));
        }
        let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(path).build();
        let uri = uri.map_err(|_| OtlpError::Endpoint("is no URL"))?;
        if uri.host().is_none_or(str::is_empty) || port.is_some() && uri.port_u16().is_none() {
            return Err(OtlpError::Endpoint("is no URL"));
        }
        Ok((Endpoint(uri), user))
    }

    /// Itself, if this build can reach it: never in clear what was to be encrypted.
    pub(super) fn reachable<T>(
        (endpoint, more): (Endpoint, T),
        has_scheme: bool,
    ) -> Result<(Endpoint, T), OtlpError> {
        if !endpoint.is_https() || cfg!(feature = "tls") {
            return Ok((endpoint, more));
        }
        Err(match has_scheme {
            true => OtlpError::Feature { what: "an endpoint with https", feature: "tls" },
            // Whoever wrote none seldom meant https.
            false => OtlpError::Endpoint(
                "has no scheme, and without scheme it is https: write http:// or set \
                 OTEL_EXPORTER_OTLP_INSECURE=true (https needs the feature `tls`)",
            ),
        })
    }

    /// As HTTP has it.
    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }

    /// Whether what is sent is encrypted.
    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }

    /// Whether what is sent stays on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host().unwrap_or_default().to_ascii_lowercase();
        let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
        match address {
            Ok(address) => address.is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        }
    }
}

/// Whether it is a number, but none of a port.
fn is_out_of_range(port: &str) -> bool {
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !port.parse::<u16>().is_ok_and(|port| port > 0)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        write!(f, "{scheme}://{authority}{}", self.0.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(url: &str, is_exact: bool) -> String {
        let parsed = Endpoint::parse(url, Protocol::HttpProtobuf, is_exact, false);
        parsed.map_or_else(|error| error.to_string(), |(endpoint, _)| endpoint.uri().to_string())
    }

    fn grpc(url: &str, is_insecure: bool) -> String {
        let parsed = Endpoint::parse(url, Protocol::Grpc, false, is_insecure);
        parsed.map_or_else(|error| error.to_string(), |(endpoint, _)| endpoint.uri().to_string())
    }

    #[test]
    fn a_base_url_gets_the_path_of_traces_and_an_exact_one_nothing() {
        for (url, base, exact) in [
            ("http://c:4318", "http://c:4318/v1/traces", "http://c:4318/"),
            ("http://c:4318/", "http://c:4318/v1/traces", "http://c:4318/"),
            ("http://c:4318/my/api/", "http://c:4318/my/api/v1/traces", "http://c:4318/my/api/"),
            ("HTTPS://c/my/api", "https://c/my/api/v1/traces", "https://c/my/api"),
            ("http://c?key=1", "http://c/v1/traces?key=1", "http://c/?key=1"),
            ("http://[::1]:4318#x", "http://[::1]:4318/v1/traces", "http://[::1]:4318/"),
        ] {
            assert_eq!(http(url, false), base);
            assert_eq!(http(url, true), exact);
        }
    }

    #[test]
    fn over_grpc_the_path_is_not_used_and_a_scheme_is_not_needed() {
        assert_eq!(grpc("http://c:4317/v1/traces", false), "http://c:4317/");
        assert_eq!(grpc("http://c:4317", true), "http://c:4317/");
        assert_eq!(grpc("https://c:4317", true), "https://c:4317/", "a scheme beats `insecure`");
        assert_eq!(grpc("c:4317", false), "https://c:4317/");
        assert_eq!(grpc("c:4317", true), "http://c:4317/");
    }

    #[test]
    fn what_is_no_endpoint_says_why_without_repeating_it() {
        for url in [
            "c:4318",
            "//c",
            "http//c",
            "unix:///run/c",
            "http://",
            "http://:4318",
            "http://c:x",
            "http://c:0",
            "http://c:99999",
            "http://a b",
            "http://s3cret@",
            "ftp://s3cret:s3cret@c",
        ] {
            let error = http(url, false);
            assert!(
                error.starts_with("the endpoint ") && !error.contains("s3cret"),
                "{url}: {error}"
            );
        }
        for url in ["http://c:0", "http://c:65536", "http://[::1]:99999/x"] {
            assert_eq!(http(url, false), "the endpoint has a port out of range: it is 1 to 65535");
        }
        for url in ["", " "] {
            assert_eq!([http(url, true), grpc(url, false)], ["the endpoint is empty"; 2]);
        }
    }

    #[test]
    fn a_user_and_a_query_are_used_but_not_shown() {
        let url = "http://user:s3%40cret@c:4318/api?key=s3cret";
        let (endpoint, user) =
            Endpoint::parse(url, Protocol::HttpJson, true, false).expect("it is a URL");
        assert_eq!(user.as_deref(), Some("user:s3%40cret"));
        assert_eq!(endpoint.uri().to_string(), "http://c:4318/api?key=s3cret");
        assert_eq!(format!("{endpoint} {endpoint:?}"), "http://c:4318/api http://c:4318/api");
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is_loopback = |url: &str| {
            let parsed = Endpoint::parse(url, Protocol::Grpc, false, false);
            parsed.expect("it is a URL").0.is_loopback()
        };
        for url in [
            "http://localhost",
            "http://LOCALHOST:1",
            "http://a.localhost",
            "http://127.0.0.9:1",
            "http://[::1]:1",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in
            ["http://localhost.example", "http://10.0.0.1", "http://128.0.0.1", "http://[::2]"]
        {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
