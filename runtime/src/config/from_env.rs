//! What each variable of the environment means. `docs/configuration.md` has the same list for
//! users; a test compares the two.

use stagetrace_wire::id::RunId;

use super::choice::{Choice, LogLevel};
use super::environment::Environment;
use super::otlp::{self, Exporter};
use super::warning::ConfigProblem;
use super::{MAX_LEVEL, MAX_MEMORY, MIN_MEMORY, TraceConfig};

/// Reads every variable that stagetrace knows, each exactly once, so that whoever records the names
/// that are asked for has the whole list.
pub(super) fn apply(config: &mut TraceConfig, env: &mut Environment<'_>) {
    process(config, env);
    run(config, env);
    limits(config, env);
    sampling(config, env);
    batching(config, env);
    propagators(env);
    config.otlp = otlp::apply(env);
    exporters(env);
    for (name, instead) in NOT_SUPPORTED {
        if env.is_set(name) {
            env.warn(name, ConfigProblem::NotSupported { instead });
        }
    }
}

fn process(config: &mut TraceConfig, env: &mut Environment<'_>) {
    if let Some(disabled) = env.boolean("OTEL_SDK_DISABLED") {
        config.enabled = !disabled;
    }
    for (key, value) in env.pairs("OTEL_RESOURCE_ATTRIBUTES") {
        config.set_resource(key, value.into());
    }
    if let Some(name) = env.text("OTEL_SERVICE_NAME") {
        config.service_name = Some(name);
    }
    config.process_label = env.text("STAGETRACE_LABEL");
    if let Some(level) = env.choice::<LogLevel>("OTEL_LOG_LEVEL") {
        config.log_level = level;
    }
    // Only the newest GenAI names are ever written, which is what its one value for us asks for.
    env.text("OTEL_SEMCONV_STABILITY_OPT_IN");
}

fn run(config: &mut TraceConfig, env: &mut Environment<'_>) {
    if let Some(dir) = env.path("STAGETRACE_DIR") {
        config.output_dir = dir;
    }
    if let Some(run_id) = env.text("STAGETRACE_RUN_ID") {
        if run_id.parse::<RunId>().is_ok() {
            config.run_id = Some(run_id);
        } else {
            let problem =
                "is no run id, which is 1 to 128 of A-Z a-z 0-9 . _ -, and not `.` or `..`";
            env.warn("STAGETRACE_RUN_ID", ConfigProblem::Malformed { value: run_id, problem });
        }
    }
    if let Some(level) = env.number("STAGETRACE_LEVEL", 0..=i64::from(MAX_LEVEL), "a level, 0 to 3")
    {
        config.level = level as u8;
    }
    let memory = MIN_MEMORY as u64..=MAX_MEMORY as u64;
    if let Some(bytes) = env.bytes("STAGETRACE_MEMORY_LIMIT", memory) {
        config.memory_limit = bytes as usize;
    }
    if let Some(mapping) = env.choice("STAGETRACE_MAPPING") {
        config.mapping = mapping;
    }
    if let Some(jsonl) = env.choice("STAGETRACE_JSONL") {
        config.jsonl = jsonl;
    }
    if let Some(bytes) = env.bytes("STAGETRACE_JSONL_MAX_BYTES", 0..=u64::MAX) {
        config.jsonl_max_bytes = bytes;
    }
    if let Some(bytes) = env.bytes("STAGETRACE_OUTBOX_MAX_BYTES", 0..=u64::MAX) {
        config.outbox.max_bytes = bytes;
    }
    if let Some(age) = env.milliseconds("STAGETRACE_OUTBOX_MAX_AGE") {
        config.outbox.max_age = age;
    }
    if let Some(viewer) = env.choice::<Viewer>("STAGETRACE_VIEWER") {
        config.viewer = viewer == Viewer::Beside;
    }
    if let Some(port) = env.number("STAGETRACE_VIEWER_PORT", 0..=u16::MAX, "a port, 0 to 65535") {
        config.viewer_port = port;
    }
}

/// Whether there is a viewer. A number does here as well, since nothing is switched off by mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Viewer {
    Beside,
    None,
}

impl Choice for Viewer {
    const WORDS: &'static [(&'static str, Self)] =
        &[("true", Self::Beside), ("1", Self::Beside), ("false", Self::None), ("0", Self::None)];
}

/// The variable of the signal beats the general one.
fn limits(config: &mut TraceConfig, env: &mut Environment<'_>) {
    let limits = &mut config.limits;
    let general = env.count("OTEL_ATTRIBUTE_COUNT_LIMIT", 0);
    let signal = env.count("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", 0);
    limits.attributes = signal.or(general).unwrap_or(limits.attributes);

    let general = env.count("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", 0);
    let signal = env.count("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", 0);
    limits.attribute_length = signal.or(general).or(limits.attribute_length);

    for (name, limit) in [
        ("OTEL_SPAN_EVENT_COUNT_LIMIT", &mut limits.events),
        ("OTEL_SPAN_LINK_COUNT_LIMIT", &mut limits.links),
        ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", &mut limits.attributes_per_event),
        ("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", &mut limits.attributes_per_link),
    ] {
        *limit = env.count(name, 0).unwrap_or(*limit);
    }
}

fn sampling(config: &mut TraceConfig, env: &mut Environment<'_>) {
    if let Some(sampler) = env.choice("OTEL_TRACES_SAMPLER") {
        config.sampler = sampler;
    }
    const RATIO: &str = "OTEL_TRACES_SAMPLER_ARG";
    if let Some(ratio) = env.number(RATIO, 0.0..=1.0, "a ratio, 0 to 1") {
        if config.sampler.ratio().is_none() {
            let when = "without OTEL_TRACES_SAMPLER=traceidratio or parentbased_traceidratio";
            env.warn(RATIO, ConfigProblem::NoEffect { when });
        }
        config.sampler = config.sampler.with_ratio(ratio);
    }
    // By the rule of OpenTelemetry: whoever writes something else than `true` does not want it.
    if let Some(trust) = env.boolean("STAGETRACE_TRUST_CALLERS") {
        config.trust_callers = trust;
    }
}

fn batching(config: &mut TraceConfig, env: &mut Environment<'_>) {
    let batching = &mut config.batching;
    if let Some(delay) = env.milliseconds("OTEL_BSP_SCHEDULE_DELAY") {
        batching.schedule_delay = delay;
    }
    if let Some(timeout) = env.milliseconds("OTEL_BSP_EXPORT_TIMEOUT") {
        batching.export_timeout = timeout;
    }
    if let Some(size) = env.count("OTEL_BSP_MAX_QUEUE_SIZE", 1) {
        batching.max_queue_size = Some(size);
    }
    if let Some(size) = env.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1) {
        batching.max_export_batch_size = size;
    }
}

/// The members of `OTEL_PROPAGATORS`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Propagator {
    TraceContext,
    Baggage,
    None,
}

impl Choice for Propagator {
    const WORDS: &'static [(&'static str, Self)] =
        &[("tracecontext", Self::TraceContext), ("baggage", Self::Baggage), ("none", Self::None)];
}

fn propagators(env: &mut Environment<'_>) {
    const NAME: &str = "OTEL_PROPAGATORS";
    let Some(found) = env.choices::<Propagator>(NAME) else { return };
    if !(found.contains(&Propagator::TraceContext) && found.contains(&Propagator::Baggage)) {
        let instead = "tracecontext and baggage are read, both";
        env.warn(NAME, ConfigProblem::NotSupported { instead });
    }
}

fn exporters(env: &mut Environment<'_>) {
    for (name, instead) in [("OTEL_METRICS_EXPORTER", NO_METRICS), ("OTEL_LOGS_EXPORTER", NO_LOGS)]
    {
        let found = env.choices::<Exporter>(name).unwrap_or_default();
        if found.iter().any(|exporter| *exporter != Exporter::None) {
            env.warn(name, ConfigProblem::NotSupported { instead });
        }
    }
}

const NO_METRICS: &str = "it exports no metrics";
const NO_LOGS: &str = "it exports no logs";
const NO_FILE: &str = "the other variables hold";

/// Known variables that change nothing in this build, and what holds instead.
const NOT_SUPPORTED: &[(&str, &str)] = &[
    ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_INSECURE", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_INSECURE", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY", NO_LOGS),
    ("OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE", NO_METRICS),
    ("OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE", NO_LOGS),
    ("OTEL_METRIC_EXPORT_INTERVAL", NO_METRICS),
    ("OTEL_METRIC_EXPORT_TIMEOUT", NO_METRICS),
    ("OTEL_METRICS_EXEMPLAR_FILTER", NO_METRICS),
    ("OTEL_BLRP_SCHEDULE_DELAY", NO_LOGS),
    ("OTEL_BLRP_EXPORT_TIMEOUT", NO_LOGS),
    ("OTEL_BLRP_MAX_QUEUE_SIZE", NO_LOGS),
    ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", NO_LOGS),
    ("OTEL_ENTITIES", "OTEL_RESOURCE_ATTRIBUTES describes the process"),
    ("OTEL_CONFIG_FILE", NO_FILE),
];
