//! What the environment says about sending. A variable of the signal beats the general one.

use super::Otlp;
use crate::config::choice::Choice;
use crate::config::environment::Environment;
use crate::config::warning::ConfigProblem;

#[cfg(feature = "_network")]
use super::{Given, proxy::Proxies, target};
#[cfg(feature = "_network")]
use std::path::PathBuf;

/// The general name of a variable, and that of the signal.
type Names = [&'static str; 2];

const ENDPOINT: Names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
const PROTOCOL: Names = ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"];
const HEADERS: Names = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];
const COMPRESSION: Names =
    ["OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION"];
const TIMEOUT: Names = ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"];
const INSECURE: Names = ["OTEL_EXPORTER_OTLP_INSECURE", "OTEL_EXPORTER_OTLP_TRACES_INSECURE"];
const CERTIFICATE: Names =
    ["OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"];
const CLIENT_CERTIFICATE: Names =
    ["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE"];
const CLIENT_KEY: Names = ["OTEL_EXPORTER_OTLP_CLIENT_KEY", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY"];
// Those of all programs: some read these in lower case, some in upper case. Here the latter beat the former.
#[cfg(feature = "_network")]
const HTTP_PROXY: Names = ["http_proxy", "HTTP_PROXY"];
#[cfg(feature = "_network")]
const HTTPS_PROXY: Names = ["https_proxy", "HTTPS_PROXY"];
#[cfg(feature = "_network")]
const ALL_PROXY: Names = ["all_proxy", "ALL_PROXY"];
#[cfg(feature = "_network")]
const NO_PROXY: Names = ["no_proxy", "NO_PROXY"];
const SWITCH: &str = "OTEL_TRACES_EXPORTER";

/// The values of `OTEL_*_EXPORTER`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Exporter {
    None,
    Otlp,
    Console,
}

impl Choice for Exporter {
    const WORDS: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("otlp", Self::Otlp), (CONSOLE, Self::Console)];
}

/// Reads what is said about sending spans.
#[cfg(feature = "_network")]
pub(in super::super) fn apply(env: &mut Environment<'_>) -> Otlp {
    let exporters = env.choices::<Exporter>(SWITCH).unwrap_or_default();
    let switch = |on| Some(Given { value: on, variable: Some(SWITCH) });
    let on = match exporters.as_slice() {
        all if all.contains(&Exporter::Otlp) => switch(true),
        all if all.contains(&Exporter::None) => switch(false),
        _ => None,
    };
    let [general, signal] = ENDPOINT;
    let endpoint = |env: &mut Environment<'_>, name| env.text(name).map(|url| given(url, name));
    let (endpoint, traces_endpoint) = (endpoint(env, general), endpoint(env, signal));
    if exporters.contains(&Exporter::Console) {
        let has_endpoint = endpoint.is_some() || traces_endpoint.is_some();
        let is_on = on.map_or(has_endpoint, |on| on.value);
        let instead = if is_on { SENT_INSTEAD_OF_CONSOLE } else { NO_CONSOLE };
        env.warn(SWITCH, ConfigProblem::WordNotSupported { word: CONSOLE, instead });
    }
    let is_given = |path: &PathBuf| !path.to_string_lossy().trim().is_empty();
    let file = |env: &mut Environment<'_>, names| {
        read(env, names, |env, name| env.path(name).filter(is_given))
    };
    let text = |env: &mut Environment<'_>, names| read(env, names, |env, name| env.text(name));
    Otlp {
        on,
        protocol: read(env, PROTOCOL, |env, name| env.choice(name)),
        endpoint,
        traces_endpoint,
        headers: headers(env),
        compression: read(env, COMPRESSION, |env, name| env.choice(name)),
        timeout: read(env, TIMEOUT, |env, name| env.milliseconds(name)).map(|given| given.value),
        insecure: read(env, INSECURE, |env, name| env.boolean(name)).map(|given| given.value),
        certificate: file(env, CERTIFICATE),
        client_certificate: file(env, CLIENT_CERTIFICATE),
        client_key: file(env, CLIENT_KEY),
        proxies: Proxies {
            http: text(env, HTTP_PROXY),
            https: text(env, HTTPS_PROXY),
            all: text(env, ALL_PROXY),
            none_for: text(env, NO_PROXY),
        },
    }
}

/// Warns of what is said about sending spans, since nothing here can send.
#[cfg(not(feature = "_network"))]
pub(in super::super) fn apply(env: &mut Environment<'_>) -> Otlp {
    let exporters = env.choices::<Exporter>(SWITCH).unwrap_or_default();
    let settings = [ENDPOINT, PROTOCOL, HEADERS, COMPRESSION, TIMEOUT, INSECURE];
    let files = [CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY];
    if exporters.contains(&Exporter::Otlp) {
        env.warn(SWITCH, ConfigProblem::NotSupported { instead: NOT_BUILT });
    } else if exporters.contains(&Exporter::Console) {
        let problem = ConfigProblem::WordNotSupported { word: CONSOLE, instead: NO_CONSOLE };
        env.warn(SWITCH, problem);
    }
    for name in settings.into_iter().chain(files).flatten() {
        if env.is_set(name) {
            env.warn(name, ConfigProblem::NotSupported { instead: NOT_BUILT });
        }
    }
    Otlp::default()
}

#[cfg(not(feature = "_network"))]
const NOT_BUILT: &str = "it was built without the feature `otlp-grpc` or `otlp-http` of the crate `stagetrace`, the local \
                         files are written";
const CONSOLE: &str = "console";
const NO_CONSOLE: &str = "it has no console exporter of its own, the local files are written";
#[cfg(feature = "_network")]
const SENT_INSTEAD_OF_CONSOLE: &str = "it has no console exporter of its own, spans are sent to the OTLP endpoint and \
                                       the local files are written";

/// The value of the signal's variable, else of the general one.
#[cfg(feature = "_network")]
fn read<T>(
    env: &mut Environment<'_>,
    [general, signal]: Names,
    read: impl Fn(&mut Environment<'_>, &str) -> Option<T>,
) -> Option<Given<T>> {
    let general = read(env, general).map(|value| given(value, general));
    let signal = read(env, signal).map(|value| given(value, signal));
    signal.or(general)
}

/// The signal's headers replace the general ones, all of them.
#[cfg(feature = "_network")]
fn headers(env: &mut Environment<'_>) -> Vec<Given<(String, String)>> {
    let read = |env: &mut Environment<'_>, name| {
        let mut headers = Otlp::default();
        for (position, (key, value)) in env.secret_pairs(name) {
            match target::header(&key, &value) {
                Ok(_) => headers.set_header(given((key, value), name)),
                Err(problem) => env.warn(name, ConfigProblem::Secret { position, problem }),
            }
        }
        headers.headers
    };
    let [general, signal] = HEADERS;
    let (general, signal) = (read(env, general), read(env, signal));
    if signal.is_empty() { general } else { signal }
}

#[cfg(feature = "_network")]
fn given<T>(value: T, variable: &'static str) -> Given<T> {
    Given { value, variable: Some(variable) }
}
