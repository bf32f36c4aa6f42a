//! What cannot be used.

use super::*;

#[test]
fn what_cannot_be_used_warns_and_the_default_holds() {
    let as_if_unset = with_endpoint(&[]);
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "thrift"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "lz4"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"),
        ("OTEL_EXPORTER_OTLP_INSECURE", "yes"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "key"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_TRACES_EXPORTER", "console"),
    ] {
        let settings = settings(&[ENDPOINT, (name, value)]);
        let [warning] = settings.warnings.as_slice() else {
            panic!("{name}={value}: {:?}", settings.warnings)
        };
        assert_eq!(warning.variable, name);
        assert_eq!(settings.target.as_ref(), Some(&as_if_unset), "{name}={value}");
    }
}

#[test]
fn an_endpoint_that_is_none_is_the_program_s_mistake_or_a_warning_of_the_environment() {
    for url in ["c:4318", "http://", "ftp://c", "http://c:x", "http://c:0", "http://user:s3cret@"] {
        for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] {
            let settings = settings(&[(name, url)]);
            assert_eq!(settings.target, None, "{url}");
            let [warning] = settings.warnings.as_slice() else { panic!("{url}: {settings:?}") };
            let text = warning.to_string();
            assert!(text.starts_with(&format!("{name}: the endpoint ")), "{text}");
            assert!(text.ends_with("nothing is sent, the local files are written"), "{text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
        let error = refusal(Otlp::http(url));
        assert!(matches!(error, OtlpError::Endpoint(_)), "{error}");
    }
}

#[test]
fn other_mistakes_of_the_program_are_errors_too() {
    let otlp = || Otlp::http("http://c:1");
    assert!(matches!(refusal(otlp().header("a b", "c")), OtlpError::Header(_)));
    assert!(matches!(refusal(otlp().header("a", "\n")), OtlpError::Header(_)));
    assert!(matches!(refusal(otlp().header("Content-Type", "text/html")), OtlpError::Header(_)));
}

#[test]
fn a_certificate_without_its_key_is_half_an_identity() {
    let half = ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key");
    let settings = settings(&[ENDPOINT, half]);
    assert_eq!(settings.target, None);
    assert_eq!(settings.warnings[0].problem, ConfigProblem::NotSent(OtlpError::HalfIdentity));
    assert_eq!(settings.warnings[0].variable, half.0);
    let whole = with_endpoint(&[half, ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "/cert")]);
    assert!(whole.files.identity.is_some());
}

#[test]
fn certificates_for_an_endpoint_that_is_not_encrypted_warn_once() {
    let ca = ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca");
    let client = ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "/cert");
    let key = ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key");
    let why = "has no effect with an http:// endpoint: only https:// is encrypted";
    let warnings = |config: TraceConfig| {
        let settings = config.settings().expect("it is no mistake");
        assert!(settings.target.is_some(), "it is sent all the same");
        settings.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (files, blamed) in [(vec![ca, client, key], ca.0), (vec![client, key], client.0)] {
        let config = config(&[&[ENDPOINT][..], &files].concat());
        assert_eq!(warnings(config), [format!("{blamed} {why}")]);
    }
    let of_program = |otlp| warnings(TraceConfig::new().otlp(otlp));
    let http = || Otlp::http("http://c:1");
    assert_eq!(of_program(http().certificate("/ca")), [format!("Otlp::certificate {why}")]);
    let identity = http().client_certificate("/cert", "/key");
    assert_eq!(of_program(identity), [format!("Otlp::client_certificate {why}")]);
    assert_eq!(of_program(http()), [""; 0]);
    #[cfg(feature = "tls")]
    assert_eq!(of_program(Otlp::http("https://c:1").certificate("/ca")), [""; 0]);
}

#[cfg(not(feature = "tls"))]
#[test]
fn https_is_never_sent_in_clear() {
    let error = refusal(Otlp::grpc("https://c:1")).to_string();
    assert!(error.starts_with("an endpoint with https needs the feature `tls`"), "{error}");
    let error = refusal(Otlp::grpc("c:1")).to_string();
    assert!(error.contains("write http:// or set OTEL_EXPORTER_OTLP_INSECURE=true"), "{error}");
    let settings = settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:1")]);
    assert_eq!((settings.target, settings.warnings.len()), (None, 1));
}

#[cfg(not(feature = "gzip"))]
#[test]
fn a_compression_that_is_not_built_is_an_error_or_not_done() {
    let error = refusal(Otlp::http("http://c:1").compression(Compression::Gzip));
    assert!(matches!(error, OtlpError::Feature { feature: "gzip", .. }), "{error}");
    let settings = settings(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")]);
    let text = settings.warnings[0].to_string();
    assert!(text.contains("needs the feature `gzip`") && text.ends_with("sent as it is"), "{text}");
    assert_eq!(settings.target.expect("it is sent").compression, Compression::None);
}
