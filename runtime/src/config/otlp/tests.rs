//! What is said about sending: by variables, by the program, in which order, and what is wrong with it.

use super::*;
use crate::config::TraceConfig;
#[cfg(feature = "_network")]
use crate::config::{ConfigProblem, Settings};
use crate::error::InitError;

fn refusal(otlp: Otlp) -> OtlpError {
    match TraceConfig::new().otlp(otlp).settings() {
        Err(InitError::Otlp(error)) => error,
        other => panic!("it is not refused: {other:?}"),
    }
}

#[test]
fn nothing_secret_is_shown() {
    let otlp = Otlp::http("https://user:s3cret@host/?key=s3cret")
        .traces_endpoint("https://s3cret")
        .header("authorization", "Bearer s3cret");
    let config = TraceConfig::new().otlp(otlp);
    let text = format!("{config:?}");
    assert!(text.contains("authorization") && !text.contains("s3cret"), "{text}");
}

#[cfg(not(feature = "_network"))]
mod without_network {
    use super::*;

    #[test]
    fn the_program_is_told_which_feature_it_lacks() {
        for (otlp, feature) in [
            (Otlp::grpc("http://localhost"), "otlp-grpc"),
            (Otlp::http("http://localhost"), "otlp-http"),
            (Otlp::http_json("http://localhost"), "otlp-http"),
        ] {
            let text = refusal(otlp).to_string();
            assert!(text.contains(&format!("needs the feature `{feature}`")), "{text}");
        }
        let unused = Otlp::new().header("a", "b").protocol(Protocol::Grpc);
        assert!(TraceConfig::new().otlp(unused).settings().is_ok(), "nothing is to be sent");
        assert!(TraceConfig::new().otlp(Otlp::off()).settings().is_ok());
    }

    #[test]
    fn the_environment_warns_and_names_the_features() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:s3cret@localhost"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key=s3cret"),
            ("OTEL_TRACES_EXPORTER", "otlp"),
        ] {
            let config = TraceConfig::from_lookup(|other| (other == name).then_some(value));
            let settings = config.and_then(TraceConfig::settings).expect("never fails");
            let [warning] = settings.warnings.as_slice() else { panic!("{:?}", settings.warnings) };
            let text = warning.to_string();
            assert!(
                text.starts_with(name) && text.contains("`otlp-grpc` or `otlp-http`"),
                "{text}"
            );
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
}

#[cfg(all(feature = "otlp-grpc", feature = "otlp-http"))]
mod with_network;

/// Of the two protocols this build has one.
#[cfg(all(feature = "_network", not(all(feature = "otlp-grpc", feature = "otlp-http"))))]
#[test]
fn a_protocol_that_is_not_built_names_its_feature() {
    let (otlp, protocol, missing) = match cfg!(feature = "otlp-http") {
        true => (Otlp::grpc("http://c:1"), "grpc", "otlp-grpc"),
        false => (Otlp::http("http://c:1"), "", "otlp-http"),
    };
    let needed = format!("needs the feature `{missing}`");
    let error = refusal(otlp).to_string();
    assert!(error.contains(&needed), "{error}");

    let lookup = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://c:1"),
        "OTEL_EXPORTER_OTLP_PROTOCOL" => Some(protocol),
        _ => None,
    };
    let settings: Settings =
        TraceConfig::from_lookup(lookup).and_then(TraceConfig::settings).expect("never fails");
    assert_eq!(settings.target, None);
    let warning = &settings.warnings[0];
    assert!(
        matches!(warning.problem, ConfigProblem::NotSent(OtlpError::Feature { .. })),
        "{warning}"
    );
    let blamed = if protocol.is_empty() { "ENDPOINT" } else { "PROTOCOL" };
    assert_eq!(warning.variable, format!("OTEL_EXPORTER_OTLP_{blamed}"));
    assert!(warning.to_string().contains(&needed), "{warning}");
}
