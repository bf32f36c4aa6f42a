//! What is sent where, as the environment and the program say.

mod mistakes;

use super::*;
use crate::config::{ConfigWarning, Target};

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1");

fn config(variables: &[(&str, &str)]) -> TraceConfig {
    let value = |name: &str| {
        let found = variables.iter().rev().find(|(other, _)| *other == name);
        found.map(|(_, value)| *value)
    };
    TraceConfig::from_lookup(value).expect("the environment never fails")
}

fn settings(variables: &[(&str, &str)]) -> Settings {
    config(variables).settings().expect("the environment is no mistake of the program's")
}

/// Where spans go to with these variables, which are all right, if some without effect.
fn target(variables: &[(&str, &str)]) -> Option<Target> {
    let settings = settings(variables);
    assert!(settings.warnings.iter().all(is_of_no_effect), "{variables:?}: {settings:?}");
    settings.target
}

fn is_of_no_effect(warning: &ConfigWarning) -> bool {
    matches!(warning.problem, ConfigProblem::NoEffect { .. })
}

/// The same with an endpoint besides.
fn with_endpoint(variables: &[(&str, &str)]) -> Target {
    let mut all = vec![ENDPOINT];
    all.extend(variables);
    target(&all).expect("an endpoint switches it on")
}

fn uri(variables: &[(&str, &str)]) -> String {
    target(variables).expect("it is switched on").endpoint.uri().to_string()
}

fn of_program(config: TraceConfig) -> Target {
    let settings = config.settings().expect("the program makes no mistake");
    assert!(settings.warnings.iter().all(is_of_no_effect), "{settings:?}");
    settings.target.expect("it is switched on")
}

fn headers(target: &Target) -> Vec<(&str, &str)> {
    let headers = target.headers.iter();
    let text = |value: &http::HeaderValue| value.is_sensitive().then_some(());
    assert!(target.headers.values().all(|value| text(value).is_some()), "they are secret");
    headers.map(|(name, value)| (name.as_str(), value.to_str().expect("plain text"))).collect()
}

#[test]
fn one_switch_is_enough_to_send_and_one_to_send_nothing() {
    let exporter = |value: &'static str| ("OTEL_TRACES_EXPORTER", value);
    let signal = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1");
    for (variables, is_on) in [
        (vec![], false),
        (vec![ENDPOINT], true),
        (vec![signal], true),
        (vec![exporter("otlp")], true),
        (vec![exporter("OTLP")], true),
        (vec![exporter("none")], false),
        (vec![exporter("none"), ENDPOINT], false),
        (vec![exporter("none"), signal, ENDPOINT], false),
        (vec![exporter("otlp"), ENDPOINT], true),
        (vec![exporter(" "), ENDPOINT], true),
        // These say how, and not that.
        (vec![("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], false),
        (vec![("OTEL_EXPORTER_OTLP_HEADERS", "a=b"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "1")], false),
    ] {
        assert_eq!(target(&variables).is_some(), is_on, "{variables:?}");
    }
    assert!(!settings(&[("OTEL_SDK_DISABLED", "true"), ENDPOINT]).enabled);
    // The program beats both.
    let none = config(&[exporter("none")]);
    assert!(of_program(none.otlp(Otlp::grpc("http://p:1"))).endpoint.to_string().contains("p:1"));
    let settings = config(&[ENDPOINT, exporter("otlp")]).otlp(Otlp::off()).settings();
    assert_eq!(settings.expect("it is no mistake").target, None);
}

#[test]
fn an_exporter_that_is_not_built_warns_and_says_what_holds_instead() {
    let sent = "spans are sent to the OTLP endpoint and the local files are written";
    for (exporters, more, instead) in [
        ("console,otlp", vec![], sent),
        ("console", vec![ENDPOINT], sent),
        ("console", vec![], "the local files are written"),
        ("console,none", vec![ENDPOINT], "the local files are written"),
    ] {
        let settings = settings(&[&[("OTEL_TRACES_EXPORTER", exporters)][..], &more].concat());
        assert_eq!(settings.target.is_some(), instead == sent, "{exporters} {more:?}");
        let [warning] = settings.warnings.as_slice() else { panic!("{:?}", settings.warnings) };
        let expected = format!(
            "OTEL_TRACES_EXPORTER: console has no effect in this build: it has no console exporter of its \
             own, {instead}"
        );
        assert_eq!(warning.to_string(), expected);
    }
}

#[test]
fn each_setting_has_its_default() {
    let target = target(&[("OTEL_TRACES_EXPORTER", "otlp")]).expect("it is switched on");
    assert_eq!(target.endpoint.uri(), "http://localhost:4318/v1/traces");
    assert_eq!(target.protocol, Protocol::HttpProtobuf);
    assert_eq!(target.compression, Compression::None);
    assert_eq!(target.timeout, Some(Duration::from_secs(10)));
    assert!(target.headers.is_empty());
    assert_eq!((target.files.certificate, target.files.identity), (None, None));

    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let target = self::target(&[("OTEL_TRACES_EXPORTER", "otlp"), grpc]);
    assert_eq!(target.expect("it is switched on").endpoint.uri(), "http://localhost:4317/");
}

/// A variable without its prefix, two values, and what its setting is with each.
type Row = (&'static str, [&'static str; 2], [String; 2], fn(&Target) -> String);

fn rows() -> Vec<Row> {
    let expected = |one: &str, two: &str| [one.to_owned(), two.to_owned()];
    vec![
        ("PROTOCOL", ["grpc", "HTTP/JSON"], expected("Grpc", "HttpJson"), |target| {
            format!("{:?}", target.protocol)
        }),
        ("HEADERS", ["a=1", "b=2"], expected("a: 1", "b: 2"), |target| {
            let headers = headers(target);
            headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
        }),
        ("TIMEOUT", ["7", "8"], expected("Some(7ms)", "Some(8ms)"), |target| {
            format!("{:?}", target.timeout)
        }),
        ("CERTIFICATE", ["/a", "/b"], expected("/a", "/b"), |target| {
            let file = target.files.certificate.as_ref();
            file.map(|file| file.value.display().to_string()).unwrap_or_default()
        }),
        #[cfg(all(feature = "gzip", feature = "zstd"))]
        ("COMPRESSION", ["gzip", "Zstd"], expected("Gzip", "Zstd"), |target| {
            format!("{:?}", target.compression)
        }),
    ]
}

#[test]
fn the_signal_beats_the_general_beats_the_default() {
    for (name, [one, two], [with_one, with_two], setting) in rows() {
        let general = format!("OTEL_EXPORTER_OTLP_{name}");
        let signal = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
        let of = |variables: &[(&str, &str)]| setting(&with_endpoint(variables));
        assert!(![&with_one, &with_two].contains(&&of(&[])), "{name}");
        assert_eq!(of(&[(&general, one)]), with_one, "{name}");
        assert_eq!(of(&[(&signal, two)]), with_two, "{name}");
        assert_eq!(of(&[(&general, one), (&signal, two)]), with_two, "{name}");
        assert_eq!(of(&[(&general, one), (&signal, " ")]), with_one, "{name}: empty is unset");
    }
}

#[test]
fn the_program_beats_every_variable() {
    let config = config(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:1"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://signal:1"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=signal,b=signal"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "7"),
        ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/signal"),
    ]);
    let untouched = of_program(config.clone().otlp(Otlp::new()));
    assert_eq!(untouched, of_program(config.clone()), "nothing said, nothing changed");

    let target =
        of_program(config.clone().otlp(Otlp::http_json("http://program:1").header("A", "program")));
    assert_eq!(target.endpoint.uri(), "http://program:1/v1/traces", "also that of the signal");
    assert_eq!(target.protocol, Protocol::HttpJson);
    assert_eq!(headers(&target), [("b", "signal"), ("a", "program")]);
    assert_eq!(target.timeout, Some(Duration::from_millis(7)));

    let otlp = Otlp::new()
        .protocol(Protocol::HttpProtobuf)
        .timeout(Duration::from_secs(3))
        .certificate("/program")
        .client_certificate("/certificate", "/key");
    let target = of_program(config.otlp(otlp));
    assert_eq!(target.endpoint.uri(), "http://signal:1/");
    assert_eq!(
        (target.protocol, target.timeout),
        (Protocol::HttpProtobuf, Some(Duration::from_secs(3)))
    );
    let file = |given: Given<PathBuf>| given.value.display().to_string();
    assert_eq!(target.files.certificate.map(file).as_deref(), Some("/program"));
    let identity = target.files.identity.map(|(certificate, key)| (file(certificate), file(key)));
    assert_eq!(identity, Some(("/certificate".to_owned(), "/key".to_owned())));
}

#[test]
fn what_the_program_says_later_beats_what_it_said_before() {
    let config = TraceConfig::new()
        .otlp(Otlp::http("http://first:1").timeout(Duration::ZERO))
        .otlp(Otlp::new().traces_endpoint("http://second:1/x"));
    let target = of_program(config);
    assert_eq!(target.endpoint.uri(), "http://second:1/x");
    assert_eq!(target.timeout, None, "zero: no limit of its own");
}

#[test]
fn the_endpoint_of_the_signal_is_taken_as_it_is() {
    let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/mycollector/");
    let signal = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:4318");
    assert_eq!(uri(&[general]), "http://c:4318/mycollector/v1/traces");
    assert_eq!(uri(&[signal]), "http://t:4318/");
    assert_eq!(uri(&[general, signal]), "http://t:4318/");
}

#[test]
fn insecure_counts_for_grpc_without_a_scheme() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let general = |value| ("OTEL_EXPORTER_OTLP_INSECURE", value);
    let signal = |value| ("OTEL_EXPORTER_OTLP_TRACES_INSECURE", value);
    let bare = ("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317");
    assert_eq!(uri(&[grpc, bare, general("TRUE")]), "http://c:4317/");
    assert_eq!(uri(&[grpc, bare, general("false"), signal("true")]), "http://c:4317/");
    #[cfg(feature = "tls")]
    for more in [general("false"), general("")] {
        assert_eq!(uri(&[grpc, bare, more]), "https://c:4317/");
    }
    #[cfg(feature = "tls")]
    assert_eq!(
        uri(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c:1"), general("true")]),
        "https://c:1/v1/traces"
    );
}

#[test]
fn headers_are_decoded_and_a_wrong_one_costs_only_itself() {
    let name = "OTEL_EXPORTER_OTLP_HEADERS";
    let target = with_endpoint(&[(name, " Api-Key = s3%3Dcret%20x ,b=c=d,,api-key=last")]);
    assert_eq!(headers(&target), [("b", "c=d"), ("api-key", "last")]);
    for wrong in [
        "s3cret",
        "=s3cret",
        "s3 cret=x",
        "a=s3cret%0Ax",
        "a=s3cret%FF",
        "content-type=s3cret",
        "Host=s3cret",
        "grpc-timeout=s3cret",
    ] {
        let settings = settings(&[ENDPOINT, (name, &format!("{wrong},ok=1"))]);
        let [warning] = settings.warnings.as_slice() else {
            panic!("{wrong}: {:?}", settings.warnings)
        };
        let text = warning.to_string();
        assert!(text.starts_with(name) && !text.contains("s3"), "{text}");
        assert_eq!(headers(&settings.target.expect("it is switched on")), [("ok", "1")]);
    }
    let settings = settings(&[ENDPOINT, (name, "a b=c,x-ok=1,foo")]);
    let warnings: Vec<_> = settings.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "OTEL_EXPORTER_OTLP_HEADERS: the 3rd member is not key=value: ignored",
        "OTEL_EXPORTER_OTLP_HEADERS: the 1st member has a name with characters that HTTP does not allow: ignored",
    ];
    assert_eq!(warnings, expected);
    // Those of the signal replace all of the others.
    let both = with_endpoint(&[(name, "a=1,b=2"), ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=3")]);
    assert_eq!(headers(&both), [("b", "3")]);
}

#[test]
fn a_user_in_the_url_becomes_a_header_unless_there_is_one() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:pass%40word@c:1");
    let target = with_endpoint(&[endpoint]);
    assert_eq!(headers(&target), [("authorization", "Basic dXNlcjpwYXNzQHdvcmQ=")]);
    let target =
        with_endpoint(&[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer x")]);
    assert_eq!(headers(&target), [("authorization", "Bearer x")]);
}

#[test]
fn a_user_without_a_password_has_an_empty_one() {
    for (user, expected) in [
        ("token", "Basic dG9rZW46"),
        ("token:", "Basic dG9rZW46"),
        ("to%3Aken", "Basic dG86a2VuOg=="),
    ] {
        let url = format!("http://{user}@c:1");
        let target = with_endpoint(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &url)]);
        assert_eq!(headers(&target), [("authorization", expected)], "{user}");
    }
}

/// Where a proxy is asked for an endpoint, if it is.
fn proxy(endpoint: &str, variables: &[(&str, &str)]) -> Option<String> {
    let mut all = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)];
    all.extend(variables);
    let target = target(&all).expect("an endpoint switches it on");
    assert!(!format!("{target:?}").contains("s3cret"), "{target:?}");
    let authority = target.proxy?.uri.authority()?.to_string();
    Some(authority)
}

#[test]
fn a_proxy_is_for_the_endpoints_of_its_scheme_and_the_one_for_all_for_the_rest() {
    let (http, all) = (("HTTP_PROXY", "http://h:1"), ("ALL_PROXY", "a:1"));
    let of = |endpoint: &str, variables: &[(&str, &str)]| proxy(endpoint, variables);
    assert_eq!(of("http://c:1", &[]), None);
    assert_eq!(of("http://c:1", &[http, all]).as_deref(), Some("h:1"));
    assert_eq!(of("http://c:1", &[all]).as_deref(), Some("a:1"));
    let lower = ("http_proxy", "http://user:s3cret@lower:1/");
    assert_eq!(of("http://c:1", &[lower, all]).as_deref(), Some("lower:1"));
    assert_eq!(of("http://c:1", &[lower, http]).as_deref(), Some("h:1"));
    #[cfg(feature = "tls")]
    {
        let https = ("https_proxy", "s:1");
        assert_eq!(of("https://c:1", &[http]), None);
        assert_eq!(of("https://c:1", &[http, all]).as_deref(), Some("a:1"));
        assert_eq!(of("https://c:1", &[http, https, all]).as_deref(), Some("s:1"));
    }
}

#[test]
fn to_this_machine_and_to_those_that_are_named_there_is_no_proxy() {
    let all = ("ALL_PROXY", "a:1");
    for endpoint in ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"] {
        assert_eq!(proxy(endpoint, &[all]), None, "{endpoint}");
    }
    let none_for = ("NO_PROXY", "example.org, .corp.example,10.0.0.0/8");
    for (endpoint, is_asked) in [
        ("http://example.org:1", false),
        ("http://otel.example.org:1", false),
        ("http://otel.corp.example:1", false),
        ("http://10.1.2.3:1", false),
        ("http://notexample.org:1", true),
        ("http://11.1.2.3:1", true),
    ] {
        assert_eq!(proxy(endpoint, &[all, none_for]).is_some(), is_asked, "{endpoint}");
    }
    assert_eq!(proxy("http://c:1", &[all, ("no_proxy", "*")]), None);
    // Nor is one that cannot be used a mistake there.
    assert_eq!(proxy("http://c:1", &[("ALL_PROXY", "socks5://a"), ("no_proxy", "c")]), None);
}

#[test]
fn a_proxy_that_cannot_be_used_warns_without_being_shown_and_nothing_is_sent() {
    for url in ["https://user:s3cret@p:1", "socks5h://s3cret:1", "s3cret@", "http://s3 cret"] {
        let settings = settings(&[ENDPOINT, ("http_proxy", url)]);
        assert_eq!(settings.target, None, "{url}");
        let [warning] = settings.warnings.as_slice() else { panic!("{url}: {settings:?}") };
        let text = warning.to_string();
        assert!(text.starts_with("http_proxy: the proxy is "), "{text}");
        assert!(!text.contains("s3"), "{text}");
    }
}
