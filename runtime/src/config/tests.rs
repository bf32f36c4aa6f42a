//! The environment: rules, precedence, every variable, and the page that lists them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The configuration that these variables give.
fn from(variables: &[(&str, &str)]) -> TraceConfig {
    let lookup =
        |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    TraceConfig::from_lookup(lookup).expect("the environment never fails")
}

fn without_warnings(mut config: TraceConfig) -> TraceConfig {
    config.warnings.clear();
    config
}

/// Every name that reading the environment asks for.
fn known() -> BTreeSet<String> {
    let asked = RefCell::new(Vec::new());
    let config = TraceConfig::from_lookup(|name| -> Option<OsString> {
        asked.borrow_mut().push(name.to_owned());
        None
    });
    assert_eq!(config, Ok(TraceConfig::new()), "an empty environment is the default");
    let asked = asked.into_inner();
    let names: BTreeSet<String> = asked.iter().cloned().collect();
    assert_eq!(names.len(), asked.len(), "a variable is read once, so that it warns once");
    names
}

/// Those that say where and how to send spans, which this build may be able to.
#[cfg(feature = "_network")]
fn of_otlp() -> Vec<(&'static str, &'static str, TraceConfig)> {
    let of = |otlp: Otlp| TraceConfig::new().otlp(otlp);
    let ms = Duration::from_millis;
    let text = |value: &str| Some(value.to_owned().into());
    let path = |value: &str| Some(PathBuf::from(value).into());
    let new = Otlp::new;
    let both = |name: &'static str, value: &'static str, otlp: Otlp| {
        let general: &str = format!("OTEL_EXPORTER_OTLP_{name}").leak();
        let signal: &str = format!("OTEL_EXPORTER_OTLP_TRACES_{name}").leak();
        [(general, value, of(otlp.clone())), (signal, value, of(otlp))]
    };
    let mut rows = vec![
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://c",
            of(Otlp { endpoint: text("http://c"), ..new() }),
        ),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c", {
            of(Otlp { traces_endpoint: text("http://c"), ..new() })
        }),
    ];
    rows.extend(both("PROTOCOL", "http/JSON", new().protocol(Protocol::HttpJson)));
    rows.extend(both("HEADERS", "a=%20b", new().header("a", " b")));
    rows.extend(both("COMPRESSION", "GZip", new().compression(Compression::Gzip)));
    rows.extend(both("TIMEOUT", "7", new().timeout(ms(7))));
    rows.extend(both("INSECURE", "True", new().insecure(true)));
    rows.extend(both("CERTIFICATE", "/a", new().certificate("/a")));
    rows.extend(both("CLIENT_CERTIFICATE", "/a", Otlp { client_certificate: path("/a"), ..new() }));
    rows.extend(both("CLIENT_KEY", "/a", Otlp { client_key: path("/a"), ..new() }));
    for name in ["HTTP", "HTTPS", "ALL", "NO"] {
        let upper: &str = format!("{name}_PROXY").leak();
        let lower: &str = upper.to_ascii_lowercase().leak();
        // These the program cannot say.
        rows.extend([upper, lower].map(|name| (name, "p:1", from(&[(upper, "p:1")]))));
    }
    rows
}

/// Nothing, where nothing can be sent.
#[cfg(not(feature = "_network"))]
fn of_otlp() -> Vec<(&'static str, &'static str, TraceConfig)> {
    Vec::new()
}

/// Each variable that this build understands, a value, and the same said by the program.
fn supported() -> Vec<(&'static str, &'static str, TraceConfig)> {
    let mut all = of_recorder();
    all.extend(of_otlp());
    all
}

fn ratio_without_sampler() -> ConfigWarning {
    let when = "without OTEL_TRACES_SAMPLER=traceidratio or parentbased_traceidratio";
    let problem = ConfigProblem::NoEffect { when };
    ConfigWarning { variable: "OTEL_TRACES_SAMPLER_ARG".into(), problem }
}

fn of_recorder() -> Vec<(&'static str, &'static str, TraceConfig)> {
    let new = TraceConfig::new;
    let ms = Duration::from_millis;
    vec![
        ("OTEL_SDK_DISABLED", "True", new().enabled(false)),
        ("OTEL_SERVICE_NAME", "router", new().service_name("router")),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=1, b = x%2Cy ,", {
            new().resource_attribute("a", "1").resource_attribute("b", "x,y")
        }),
        ("OTEL_LOG_LEVEL", "DEBUG", new().log_level(LogLevel::Debug)),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental", new()),
        ("OTEL_PROPAGATORS", "Baggage, tracecontext", new()),
        ("OTEL_TRACES_SAMPLER", "Always_Off", new().sampler(Sampler::AlwaysOff)),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5", {
            TraceConfig { warnings: vec![ratio_without_sampler()], ..new() }
        }),
        ("OTEL_BSP_SCHEDULE_DELAY", "7", new().batching(|b| b.schedule_delay = ms(7))),
        ("OTEL_BSP_EXPORT_TIMEOUT", "7", new().batching(|b| b.export_timeout = ms(7))),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "7", new().batching(|b| b.max_queue_size = Some(7))),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "7", new().batching(|b| b.max_export_batch_size = 7)),
        ("OTEL_ATTRIBUTE_COUNT_LIMIT", "7", new().span_limits(|l| l.attributes = 7)),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "7", new().span_limits(|l| l.attributes = 7)),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "7", {
            new().span_limits(|l| l.attribute_length = Some(7))
        }),
        ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "7", {
            new().span_limits(|l| l.attribute_length = Some(7))
        }),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "7", new().span_limits(|l| l.events = 7)),
        ("OTEL_SPAN_LINK_COUNT_LIMIT", "7", new().span_limits(|l| l.links = 7)),
        ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "7", {
            new().span_limits(|l| l.attributes_per_event = 7)
        }),
        ("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", "0", {
            new().span_limits(|l| l.attributes_per_link = 0)
        }),
        ("OTEL_TRACES_EXPORTER", "none", {
            if cfg!(feature = "_network") { new().otlp(Otlp::off()) } else { new() }
        }),
        ("OTEL_METRICS_EXPORTER", "none", new()),
        ("OTEL_LOGS_EXPORTER", "none", new()),
        ("STAGETRACE_DIR", "/runs", new().output_dir("/runs")),
        ("STAGETRACE_RUN_ID", "run-1", new().run_id("run-1")),
        ("STAGETRACE_LEVEL", "3", new().level(3)),
        ("STAGETRACE_LABEL", "worker 3", new().process_label("worker 3")),
        ("STAGETRACE_MEMORY_LIMIT", "8 mib", new().memory_limit(8 << 20)),
        ("STAGETRACE_MAPPING", "Run-Dir", new().mapping(Mapping::RunDir)),
        ("STAGETRACE_JSONL", "FALSE", new().jsonl(false)),
        ("STAGETRACE_TRUST_CALLERS", "false", new().trust_callers(false)),
        ("STAGETRACE_JSONL_MAX_BYTES", "1GiB", new().jsonl_max_bytes(1 << 30)),
        ("STAGETRACE_OUTBOX_MAX_BYTES", "0", new().outbox_max_bytes(0)),
        ("STAGETRACE_OUTBOX_MAX_AGE", "7", new().outbox_max_age(Duration::from_millis(7))),
        ("STAGETRACE_VIEWER", "1", new().viewer_enabled(true)),
        ("STAGETRACE_VIEWER_PORT", "8080", new().viewer_port(8080)),
    ]
}

#[test]
fn each_variable_says_what_the_program_could_say() {
    for (name, value, expected) in supported() {
        assert_eq!(from(&[(name, value)]), expected, "{name}={value}");
    }
}

#[test]
fn every_known_variable_is_either_understood_or_warns_once_by_name() {
    let understood: BTreeSet<&str> = supported().iter().map(|(name, ..)| *name).collect();
    for name in known().iter().filter(|name| !understood.contains(name.as_str())) {
        let config = from(&[(name, "true")]);
        let [warning] = config.warnings() else { panic!("{name}: {:?}", config.warnings()) };
        assert_eq!(&warning.variable, name);
        assert!(matches!(warning.problem, ConfigProblem::NotSupported { .. }), "{warning}");
        assert_eq!(without_warnings(config), TraceConfig::new(), "{name}");
    }
}

#[test]
fn the_variables_of_opentelemetry_are_known() {
    let known = known();
    let otlp = ["ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION", "TIMEOUT", "INSECURE"];
    let tls = ["CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"];
    let mut expected: Vec<String> = Vec::new();
    for signal in ["", "TRACES_", "METRICS_", "LOGS_"] {
        for setting in otlp.iter().chain(&tls) {
            expected.push(format!("OTEL_EXPORTER_OTLP_{signal}{setting}"));
        }
    }
    for setting in ["SCHEDULE_DELAY", "EXPORT_TIMEOUT", "MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE"] {
        expected.push(format!("OTEL_BSP_{setting}"));
        expected.push(format!("OTEL_BLRP_{setting}"));
    }
    for setting in [
        "METRIC_EXPORT_INTERVAL",
        "METRIC_EXPORT_TIMEOUT",
        "METRICS_EXEMPLAR_FILTER",
        "ENTITIES",
        "CONFIG_FILE",
    ] {
        expected.push(format!("OTEL_{setting}"));
    }
    for name in &expected {
        assert!(known.contains(name), "{name}");
    }
}

#[test]
fn the_program_beats_the_signal_beats_the_general_beats_the_default() {
    let general = ("OTEL_ATTRIBUTE_COUNT_LIMIT", "10");
    let signal = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "20");
    let by_program = |config: TraceConfig| config.span_limits(|limits| limits.attributes = 30);

    assert_eq!(from(&[]).limits.attributes, 128);
    assert_eq!(from(&[general]).limits.attributes, 10);
    assert_eq!(from(&[general, signal]).limits.attributes, 20);
    assert_eq!(from(&[signal, general]).limits.attributes, 20);
    assert_eq!(by_program(from(&[general, signal])).limits.attributes, 30);
}

#[test]
fn the_service_name_has_the_same_order() {
    let general = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=general");
    let own = ("OTEL_SERVICE_NAME", "own");
    let name = |config: TraceConfig| config.service_name;
    assert_eq!(name(from(&[])), None);
    assert_eq!(name(from(&[general])).as_deref(), Some("general"));
    assert_eq!(name(from(&[general, own])).as_deref(), Some("own"));
    let program = from(&[general, own]).service_name("program");
    assert_eq!(program.service_name.as_deref(), Some("program"));
    assert!(program.resource.is_empty(), "one name, in one place");
}

#[test]
fn empty_and_blank_mean_unset() {
    for name in known() {
        for value in ["", " "] {
            // A directory may be named by blanks.
            if name != "STAGETRACE_DIR" || value.is_empty() {
                assert_eq!(from(&[(&name, value)]), TraceConfig::new(), "{name}={value:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_used_warns_and_changes_nothing() {
    for (name, value) in [
        ("STAGETRACE_LEVEL", "detail"),
        ("STAGETRACE_LEVEL", "2.0"),
        ("STAGETRACE_RUN_ID", "../elsewhere"),
        ("STAGETRACE_RUN_ID", ".."),
        ("STAGETRACE_MEMORY_LIMIT", "8 MB"),
        ("STAGETRACE_MEMORY_LIMIT", "99999999999GiB"),
        ("STAGETRACE_MAPPING", "disk"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "half"),
        ("OTEL_TRACES_SAMPLER_ARG", "NaN"),
        ("OTEL_BSP_SCHEDULE_DELAY", "-1"),
        ("OTEL_BSP_SCHEDULE_DELAY", "5s"),
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", "many"),
        ("OTEL_PROPAGATORS", "b3"),
        ("OTEL_PROPAGATORS", "none"),
        ("OTEL_PROPAGATORS", "baggage"),
        ("OTEL_LOG_LEVEL", "loud"),
        ("OTEL_RESOURCE_ATTRIBUTES", "no-equals-sign"),
        ("OTEL_RESOURCE_ATTRIBUTES", "=value"),
        ("OTEL_RESOURCE_ATTRIBUTES", "key=%FF"),
        ("STAGETRACE_JSONL", "yes"),
        ("STAGETRACE_JSONL", "0"),
        ("STAGETRACE_VIEWER", "yes"),
        ("STAGETRACE_VIEWER_PORT", "http"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        #[cfg(not(feature = "_network"))]
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
    ] {
        let config = from(&[(name, value)]);
        let [warning] = config.warnings() else {
            panic!("{name}={value}: {:?}", config.warnings())
        };
        assert!(!matches!(warning.problem, ConfigProblem::OutOfRange { .. }), "{warning}");
        assert_eq!(warning.variable, name);
        assert_eq!(without_warnings(config), TraceConfig::new(), "{name}={value}");
    }
}

#[test]
fn a_number_out_of_range_warns_and_acts_as_the_nearest() {
    for (name, value, expected) in [
        ("STAGETRACE_LEVEL", "4", TraceConfig::new().level(3)),
        ("STAGETRACE_LEVEL", "-1", TraceConfig::new().level(0)),
        ("STAGETRACE_MEMORY_LIMIT", "4096", TraceConfig::new().memory_limit(1 << 20)),
        ("STAGETRACE_MEMORY_LIMIT", "1GiB", TraceConfig::new().memory_limit(32 << 20)),
        (
            "OTEL_BSP_MAX_QUEUE_SIZE",
            "0",
            TraceConfig::new().batching(|b| b.max_queue_size = Some(1)),
        ),
    ] {
        let config = from(&[(name, value)]);
        assert_eq!(config.warnings().len(), 1, "{name}={value}: {:?}", config.warnings());
        assert_eq!(without_warnings(config), expected, "{name}={value}");
    }
}

#[test]
fn a_boolean_of_opentelemetry_is_true_only_for_true() {
    for (value, disabled, warnings) in [
        ("true", true, 0),
        ("TRUE", true, 0),
        ("false", false, 0),
        ("False", false, 0),
        ("1", false, 1),
        ("yes", false, 1),
    ] {
        let config = from(&[("OTEL_SDK_DISABLED", value)]);
        assert_eq!(config.enabled, !disabled, "{value}");
        assert_eq!(config.warnings().len(), warnings, "{value}");
    }
}

#[test]
fn a_boolean_of_ours_that_is_misspelt_switches_nothing_off() {
    let config = from(&[("STAGETRACE_JSONL", "ture")]);
    assert!(config.jsonl);
    let expected = "STAGETRACE_JSONL: ture is none of true, false: ignored";
    assert_eq!(config.warnings()[0].to_string(), expected);
    let config = from(&[("STAGETRACE_TRUST_CALLERS", "no")]);
    assert!(!config.trust_callers, "but trust nobody by mistake");
    assert_eq!(config.warnings().len(), 1);
}

#[test]
fn a_sampler_takes_its_ratio_from_the_other_variable() {
    let sampler = |name, ratio| {
        from(&[("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", ratio)]).sampler
    };
    assert_eq!(sampler("traceidratio", "0.25"), Sampler::Ratio(0.25));
    assert_eq!(sampler("parentbased_traceidratio", "0.25"), Sampler::ParentBasedRatio(0.25));
    assert_eq!(sampler("traceidratio", ""), Sampler::Ratio(1.0));
    assert_eq!(sampler("traceidratio", "7"), Sampler::Ratio(1.0));
    assert_eq!(sampler("always_on", "0.25"), Sampler::AlwaysOn);
}

#[test]
fn a_ratio_for_a_sampler_that_has_none_warns() {
    let ratio = ("OTEL_TRACES_SAMPLER_ARG", "0.1");
    for variables in [vec![ratio], vec![ratio, ("OTEL_TRACES_SAMPLER", "always_on")]] {
        let config = from(&variables);
        assert_eq!(config.warnings(), [ratio_without_sampler()], "{variables:?}");
    }
    let expected = "OTEL_TRACES_SAMPLER_ARG has no effect without OTEL_TRACES_SAMPLER=traceidratio or \
                    parentbased_traceidratio";
    assert_eq!(ratio_without_sampler().to_string(), expected);
    assert_eq!(from(&[ratio, ("OTEL_TRACES_SAMPLER", "traceidratio")]).warnings(), []);
}

#[test]
fn a_list_keeps_what_it_can_use() {
    let config = from(&[("OTEL_RESOURCE_ATTRIBUTES", "a=1,broken,a=2,c=%e2%82%ac=x,=1")]);
    let expected = [("a".to_owned(), "2".into()), ("c".to_owned(), "€=x".into())];
    assert_eq!(config.resource, expected);
    let warnings: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    let expected = [
        "OTEL_RESOURCE_ATTRIBUTES: broken is not key=value: ignored",
        "OTEL_RESOURCE_ATTRIBUTES: =1 has no key before its `=`: ignored",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_misspelt_name_of_ours_warns() {
    let present =
        ["STAGETRACE_LEVEL", "STAGETRACE_LEVLE", "STAGETRACE_NOVELTY", "OTEL_NOVELTY", "HOME"];
    let warnings: Vec<_> = unread(present.into_iter().map(str::to_owned), &known()).collect();
    let expected = [
        "STAGETRACE_LEVLE is no variable of stagetrace: ignored; is STAGETRACE_LEVEL meant?",
        "STAGETRACE_NOVELTY is no variable of stagetrace: ignored",
    ];
    assert_eq!(warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[cfg(unix)]
#[test]
fn bytes_that_are_no_text_warn_but_may_name_a_directory() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = OsString::from_vec(vec![b'd', 0xff]);
    let lookup = |wanted: &'static str| {
        let bytes = bytes.clone();
        move |name: &str| (name == wanted).then(|| bytes.clone())
    };
    let config = TraceConfig::from_lookup(lookup("OTEL_SERVICE_NAME")).expect("never fails");
    assert_eq!(config.warnings()[0].problem, ConfigProblem::NotUnicode);
    let config = TraceConfig::from_lookup(lookup("STAGETRACE_DIR")).expect("never fails");
    assert_eq!(config, TraceConfig::new().output_dir(bytes));
}

/// A row of the page: its variable, its default, its setter; each as it stands in back quotes.
struct Row {
    name: String,
    default: Option<String>,
    setter: Option<String>,
}

/// The rows of every table whose first cell is a variable.
fn documented() -> Vec<Row> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let page = std::fs::read_to_string(page).expect("the page is in the repository");
    let quoted = |cell: &str| {
        let mut parts = cell.split('`');
        parts.nth(1).map(str::to_owned)
    };
    let is_proxy = |line: &str| cfg!(feature = "_network") && line.contains("_proxy` |");
    let rows = page.lines().filter(|line| {
        line.starts_with("| `OTEL_")
            || line.starts_with("| `ST")
            || is_proxy(&line.to_ascii_lowercase())
    });
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').skip(1).collect();
        let name = quoted(cells[0]).expect("the line begins with a name");
        Row { name, default: quoted(cells[1]), setter: quoted(cells[2]) }
    })
    .collect()
}

#[test]
fn the_page_lists_exactly_the_variables_that_are_read() {
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for row in documented() {
        *listed.entry(row.name).or_default() += 1;
    }
    let twice: Vec<&String> =
        listed.iter().filter(|(_, n)| **n > 1).map(|(name, _)| name).collect();
    assert!(twice.is_empty(), "listed twice: {twice:?}");
    let listed: BTreeSet<String> = listed.into_keys().collect();
    let known = known();
    let missing: Vec<_> = known.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&known).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
}

#[test]
fn the_defaults_on_the_page_are_the_defaults() {
    let rows = documented();
    assert!(rows.iter().filter(|row| row.default.is_some()).count() > 20, "no defaults found");
    for row in rows {
        if let Some(default) = &row.default {
            assert_eq!(from(&[(&row.name, default)]), TraceConfig::new(), "{}={default}", row.name);
        }
    }
}

#[test]
fn the_setters_on_the_page_exist_and_every_understood_variable_has_one() {
    let source = include_str!("../config.rs");
    let understood: BTreeSet<&str> = supported().iter().map(|(name, ..)| *name).collect();
    for row in documented() {
        match &row.setter {
            Some(setter) => assert!(source.contains(&format!("pub fn {setter}(")), "{setter}"),
            None => {
                let constant = ["OTEL_SEMCONV_STABILITY_OPT_IN", "OTEL_PROPAGATORS"];
                let is_of_all_programs = row.name.to_ascii_uppercase().ends_with("_PROXY");
                let exempt = row.name.ends_with("_EXPORTER")
                    || is_of_all_programs
                    || constant.contains(&&*row.name);
                assert!(exempt || !understood.contains(row.name.as_str()), "{}", row.name);
            }
        }
    }
}
