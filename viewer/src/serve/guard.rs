//! Who may look: nobody but this machine, unless it is asked for, and then with a token.
//!
//! A page of another site must not read traces through its visitor's browser. Against a name of its
//! own that it points at us (DNS rebinding) the `Host` is checked; where others may come the token
//! stands in the way as well, since a browser sends its cookie only to where it came from.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Who may look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// What must be known to look; `None` if everybody who can connect may.
    pub(crate) token: Option<Token>,
    /// Names under which the server may be called, beside addresses and `localhost`.
    pub(crate) hosts: Vec<String>,
}

/// A secret of 128 bits.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Takes the same time whatever is wrong.
    fn is(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        let differences = own.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
        own.len() == other.len() && differences == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Access {
    /// What opens the pages of a server at an address.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        let host = match address.ip() {
            ip if !ip.is_unspecified() => SocketAddr::new(ip, address.port()).to_string(),
            _ => format!("localhost:{}", address.port()),
        };
        match &self.token {
            None => format!("http://{host}/"),
            Some(Token(token)) => format!("http://{host}/?token={token}"),
        }
    }

    /// Whether the server may be called by this name: an address, `localhost`, or one that was allowed.
    fn is_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']');
        match address.parse::<IpAddr>() {
            // Where no token is needed nothing but this machine calls, by its own addresses.
            Ok(address) => self.token.is_some() || address.is_loopback(),
            Err(_) => {
                let is = |allowed: &str| allowed.eq_ignore_ascii_case(name);
                is("localhost") || self.hosts.iter().any(|allowed| is(allowed))
            }
        }
    }

    /// Whether a request brings the token in its cookie or header.
    fn is_known(&self, headers: &HeaderMap, cookie: &str) -> bool {
        let Some(token) = &self.token else { return true };
        let texts = |name: HeaderName| {
            headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
        };
        let mut bearers = texts(header::AUTHORIZATION)
            .filter_map(|value| value.strip_prefix("Bearer ").map(str::trim));
        let mut cookies = texts(header::COOKIE)
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == cookie)
            .map(|(_, value)| value);
        bearers.any(|value| token.is(value)) || cookies.any(|value| token.is(value))
    }
}

/// What every request passes.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    access: Arc<Access>,
    /// Cookies know no ports, and two viewers may run on one machine.
    cookie: Arc<str>,
}

impl Guard {
    pub(super) fn new(access: Access, address: SocketAddr) -> Self {
        let cookie = format!("stagetrace-{}", address.port()).into();
        Self { access: access.into(), cookie }
    }
}

/// Lets a request pass, or says why not.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let Guard { access, cookie } = &guard;
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let mut response = if !host.is_some_and(|host| access.is_host(host)) {
        let why = "this server is not known by that name; allow it by --allow-host NAME\n";
        (StatusCode::MISDIRECTED_REQUEST, why).into_response()
    } else if let Some(given) = token_in(request.uri())
        && let Some(Token(token)) = access.token.as_ref().filter(|token| token.is(given))
    {
        // The token leaves the address at once, so that it is neither bookmarked nor passed on.
        let cookie = format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict");
        let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())];
        (StatusCode::SEE_OTHER, headers).into_response()
    } else if access.is_known(headers, cookie) {
        next.run(request).await
    } else {
        let why = "a token is needed: open the address that the viewer printed when it started\n";
        (StatusCode::UNAUTHORIZED, why).into_response()
    };
    for (name, value) in SECURITY {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn token_in(uri: &Uri) -> Option<&str> {
    let query = uri.query()?;
    query.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Everything comes from here, and nobody frames it.
const SECURITY: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_and_allowed_names_are_answered_without_a_token() {
        let access = Access { token: None, hosts: vec!["gpu-7".to_owned()] };
        for host in ["localhost:18080", "LOCALHOST", "127.0.0.1:1", "[::1]:18080", "gpu-7:80"] {
            assert!(access.is_host(host), "{host}");
        }
        for host in ["evil.example:18080", "10.1.2.3:18080", "", "localhost.evil.example", "[::2]"]
        {
            assert!(!access.is_host(host), "{host}");
        }
    }

    #[test]
    fn with_a_token_addresses_are_answered_and_other_names_are_not() {
        let access = Access { token: Token::random().ok(), hosts: Vec::new() };
        assert!(access.is_host("10.1.2.3:18080"));
        assert!(!access.is_host("evil.example:18080"));
    }

    #[test]
    fn a_token_is_asked_for_whole() {
        let token = Token("0123".to_owned());
        assert!(token.is("0123"));
        assert!(["", "012", "01234", "0124"].iter().all(|wrong| !token.is(wrong)));
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
