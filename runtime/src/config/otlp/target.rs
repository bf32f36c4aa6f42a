//! What was said about sending, put together and checked.

use super::proxy::Proxy;
use super::{Compression, Given, Otlp, OtlpError, Protocol};
use crate::config::warning::{ConfigProblem, ConfigWarning};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::time::Duration;

mod endpoint;

pub(crate) use endpoint::Endpoint;

/// Where to send to, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: Endpoint,
    /// Each is marked as sensitive, so that nobody shows it.
    pub(crate) headers: HeaderMap,
    pub(crate) compression: Compression,
    /// `None`: as long as the export of any exporter may take.
    pub(crate) timeout: Option<Duration>,
    pub(crate) files: Files,
    /// On the way to the endpoint.
    pub(crate) proxy: Option<Proxy>,
}

/// Files of certificates and keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Files {
    pub(crate) certificate: Option<Given<PathBuf>>,
    /// The client's certificate and its key.
    pub(crate) identity: Option<(Given<PathBuf>, Given<PathBuf>)>,
}

/// What is wrong, and the variable that says so; `None`: the program does.
pub(crate) struct Mistake {
    pub(crate) variable: Option<&'static str>,
    pub(crate) error: OtlpError,
}

const TIMEOUT: Duration = Duration::from_millis(10_000);

impl Target {
    /// Where to send to, if anywhere. What the environment got wrong is one more warning, and nothing is sent.
    pub(in super::super) fn of(
        otlp: &Otlp,
        mut warnings: Vec<ConfigWarning>,
    ) -> Result<(Option<Target>, Vec<ConfigWarning>), OtlpError> {
        if !otlp.is_on() {
            return Ok((None, warnings));
        }
        match Target::build(otlp, &mut warnings) {
            Ok(target) => {
                warnings.extend(unused_files(otlp).filter(|_| !target.endpoint.is_https()));
                Ok((Some(target), warnings))
            }
            Err(mistake) => mistake.warn(&mut warnings).map(|()| (None, warnings)),
        }
    }

    fn build(otlp: &Otlp, warnings: &mut Vec<ConfigWarning>) -> Result<Target, Mistake> {
        // What switched it on is to blame for what was not said.
        let switch = otlp.on.and_then(|on| on.variable);
        let endpoint = otlp.traces_endpoint.as_ref().or(otlp.endpoint.as_ref());
        let of_default = endpoint.map_or(switch, |given| given.variable);

        let protocol =
            otlp.protocol.unwrap_or(Given { value: Protocol::default(), variable: of_default });
        let Given { value: protocol, variable } = protocol;
        has_protocol(protocol).map_err(|error| Mistake { variable, error })?;

        let is_exact = otlp.traces_endpoint.is_some();
        let url = endpoint.map_or(default_endpoint(protocol), |given| &given.value);
        let endpoint = Endpoint::parse(url, protocol, is_exact, otlp.insecure.unwrap_or(false));
        let endpoint = endpoint.and_then(|found| Endpoint::reachable(found, url.contains("://")));
        let (endpoint, user) = endpoint.map_err(|error| Mistake { variable: of_default, error })?;

        Ok(Target {
            protocol,
            proxy: otlp.proxies.to(&endpoint)?,
            endpoint,
            headers: headers(&otlp.headers, user)?,
            compression: compression(otlp.compression, warnings)?,
            timeout: Some(otlp.timeout.unwrap_or(TIMEOUT)).filter(|timeout| !timeout.is_zero()),
            files: files(otlp)?,
        })
    }
}

impl Mistake {
    /// An error, if it is the program's; else a warning.
    pub(crate) fn warn(self, warnings: &mut Vec<ConfigWarning>) -> Result<(), OtlpError> {
        let variable = self.variable.ok_or(self.error.clone())?.to_owned();
        warnings.push(ConfigWarning { variable, problem: ConfigProblem::NotSent(self.error) });
        Ok(())
    }
}

fn default_endpoint(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Grpc => "http://localhost:4317",
        Protocol::HttpProtobuf | Protocol::HttpJson => "http://localhost:4318",
    }
}

fn has_protocol(protocol: Protocol) -> Result<(), OtlpError> {
    let (is_built, what, feature) = match protocol {
        Protocol::Grpc => (cfg!(feature = "otlp-grpc"), "OTLP over gRPC", "otlp-grpc"),
        _ => (cfg!(feature = "otlp-http"), "OTLP over HTTP", "otlp-http"),
    };
    if is_built { Ok(()) } else { Err(OtlpError::Feature { what, feature }) }
}

/// What the environment asks for and this build lacks is not done, which is no reason to send nothing.
fn compression(
    given: Option<Given<Compression>>,
    warnings: &mut Vec<ConfigWarning>,
) -> Result<Compression, Mistake> {
    let Some(Given { value, variable }) = given else { return Ok(Compression::None) };
    let (is_built, what, feature) = match value {
        Compression::None => return Ok(value),
        Compression::Gzip => (cfg!(feature = "gzip"), "compression with gzip", "gzip"),
        Compression::Zstd => (cfg!(feature = "zstd"), "compression with zstd", "zstd"),
    };
    if is_built {
        return Ok(value);
    }
    let error = OtlpError::Feature { what, feature };
    let variable = variable.ok_or_else(|| Mistake { variable, error: error.clone() })?;
    let problem = ConfigProblem::Uncompressed(error);
    warnings.push(ConfigWarning { variable: variable.to_owned(), problem });
    Ok(Compression::None)
}

fn files(otlp: &Otlp) -> Result<Files, Mistake> {
    let identity = match (&otlp.client_certificate, &otlp.client_key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => {
            return Err(Mistake { variable: one.variable, error: OtlpError::HalfIdentity });
        }
    };
    Ok(Files { certificate: otlp.certificate.clone(), identity })
}

/// One warning of files of certificates, however many there are, for an endpoint that is not encrypted.
fn unused_files(otlp: &Otlp) -> Option<ConfigWarning> {
    let client = "Otlp::client_certificate";
    let files = [
        (&otlp.certificate, "Otlp::certificate"),
        (&otlp.client_certificate, client),
        (&otlp.client_key, client),
    ];
    let (given, call) = files.into_iter().find_map(|(file, call)| Some((file.as_ref()?, call)))?;
    let problem =
        ConfigProblem::NoEffect { when: "with an http:// endpoint: only https:// is encrypted" };
    Some(ConfigWarning { variable: given.variable.unwrap_or(call).to_owned(), problem })
}

/// What the protocol says by itself, and what belongs to the connection.
const RESERVED: [&str; 7] = [
    "content-type",
    "content-encoding",
    "content-length",
    "transfer-encoding",
    "connection",
    "te",
    "host",
];

/// A header, or why it is none.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name: HeaderName =
        name.parse().map_err(|_| "has a name with characters that HTTP does not allow")?;
    if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
        return Err("has a name that the protocol uses itself");
    }
    let value = HeaderValue::from_str(value);
    let mut value = value.map_err(|_| "has a value with characters that HTTP does not allow")?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// The headers of each request; who stands before the host of the endpoint is one, as with any client.
fn headers(given: &[Given<(String, String)>], user: Option<String>) -> Result<HeaderMap, Mistake> {
    let mut headers = HeaderMap::new();
    for Given { value: (name, value), variable } in given {
        let (name, value) = header(name, value)
            .map_err(|rule| Mistake { variable: *variable, error: OtlpError::Header(rule) })?;
        headers.insert(name, value);
    }
    if let Some(user) = user.filter(|_| !headers.contains_key(AUTHORIZATION)) {
        // Basic asks for the colon also where no password follows; an encoded one is a part of the name.
        let colon = if user.contains(':') { "" } else { ":" };
        let user: Vec<u8> = percent_decode_str(&user).chain(colon.bytes()).collect();
        let basic = format!("Basic {}", BASE64_STANDARD.encode(user));
        if let Ok((name, value)) = header(AUTHORIZATION.as_str(), &basic) {
            headers.insert(name, value);
        }
    }
    Ok(headers)
}
