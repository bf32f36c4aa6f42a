//! The proxy on the way to an endpoint, as the environment names it to all programs.

use super::target::Mistake;
use super::{Endpoint, Given, OtlpError};
use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

/// What the environment says about proxies.
#[derive(Clone, Default, PartialEq)]
pub(in super::super) struct Proxies {
    pub(super) http: Option<Given<String>>,
    pub(super) https: Option<Given<String>>,
    /// For whichever is not said.
    pub(super) all: Option<Given<String>>,
    /// The hosts to which there is none.
    pub(super) none_for: Option<Given<String>>,
}

/// A proxy that is spoken to in clear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proxy {
    /// Without a user.
    pub(crate) uri: Uri,
    /// Who asks it. Marked as sensitive, so that nobody shows it.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Proxies {
    /// The proxy on the way to an endpoint; never one to this machine.
    pub(super) fn to(&self, endpoint: &Endpoint) -> Result<Option<Proxy>, Mistake> {
        let own = if endpoint.is_https() { &self.https } else { &self.http };
        let Some(given) = own.as_ref().or(self.all.as_ref()) else { return Ok(None) };
        let none_for = self.none_for.as_ref().map_or("", |given| &given.value);
        let others = Matcher::builder().all("any").no(none_for).build();
        if endpoint.is_loopback() || others.intercept(endpoint.uri()).is_none() {
            return Ok(None);
        }
        let mistake = |error| Mistake { variable: given.variable, error };
        Proxy::parse(&given.value).map(Some).map_err(mistake)
    }

    /// What `self` says, and the other where it says nothing.
    pub(super) fn or(self, other: Proxies) -> Proxies {
        Proxies {
            http: self.http.or(other.http),
            https: self.https.or(other.https),
            all: self.all.or(other.all),
            none_for: self.none_for.or(other.none_for),
        }
    }
}

impl Proxy {
    fn parse(url: &str) -> Result<Proxy, OtlpError> {
        let for_all = Matcher::builder().all(url).build();
        let found = for_all.intercept(&Uri::from_static("http://any"));
        let found = found.ok_or(OtlpError::Proxy("is no URL"))?;
        if found.uri().scheme() != Some(&Scheme::HTTP) {
            return Err(OtlpError::Proxy("is not http://"));
        }
        Ok(Proxy { uri: found.uri().clone(), authorization: found.basic_auth().cloned() })
    }
}
