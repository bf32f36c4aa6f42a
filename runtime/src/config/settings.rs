//! A configuration that was checked, with every default filled in: what the recorder works by.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use stagetrace_wire::id::RunId;
use stagetrace_wire::span::Value;

use super::choice::word_of;
#[cfg(feature = "_network")]
use super::otlp::Target;
use super::resource::Process;
use super::{Batching, ConfigWarning, LogLevel, Mapping, OutboxLimits, Sampler, SpanLimits};
use super::{MAX_LEVEL, MAX_MEMORY, MIN_MEMORY, TailSampling, TraceConfig};
use crate::error::InitError;

/// Longest part of a file's name that stands for the service.
const SERVICE_IN_FILE_NAME: usize = 64;

/// What the recorder works by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) enabled: bool,
    /// Absolute, so that it stays true when the process changes its working directory.
    pub(crate) output_dir: PathBuf,
    pub(crate) service_name: String,
    /// `None` where this process begins a run of its own.
    pub(crate) run_id: Option<RunId>,
    pub(crate) process_label: Option<String>,
    pub(crate) resource: Vec<(String, Value)>,
    pub(crate) level: u8,
    pub(crate) memory_limit: usize,
    pub(crate) mapping: Mapping,
    pub(crate) jsonl: bool,
    /// 0: never.
    pub(crate) jsonl_max_bytes: u64,
    pub(crate) outbox: OutboxLimits,
    pub(crate) limits: SpanLimits,
    pub(crate) sampler: Sampler,
    pub(crate) trust_callers: bool,
    pub(crate) tail: Option<TailSampling>,
    pub(crate) batching: Batching,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) log_level: LogLevel,
    /// The port of the viewer that is started beside this process.
    pub(crate) viewer: Option<u16>,
    pub(crate) warnings: Vec<ConfigWarning>,
    /// Where spans are sent over the network.
    #[cfg(feature = "_network")]
    pub(crate) target: Option<Target>,
}

impl TraceConfig {
    /// Checks what the program set.
    pub(crate) fn settings(self) -> Result<Settings, InitError> {
        if self.level > MAX_LEVEL {
            return Err(InitError::Level(self.level));
        }
        if !(MIN_MEMORY..=MAX_MEMORY).contains(&self.memory_limit) {
            return Err(InitError::MemoryLimit(self.memory_limit));
        }
        if let Some(ratio) = self.sampler.ratio().filter(|ratio| !(0.0..=1.0).contains(ratio)) {
            return Err(InitError::SamplingRatio(ratio));
        }
        self.tail.as_ref().map_or(Ok(()), TailSampling::check)?;
        if self.output_dir.as_os_str().is_empty() {
            return Err(InitError::OutputDir);
        }
        if self.resource.iter().any(|(key, _)| key.is_empty()) {
            return Err(InitError::ResourceKey);
        }
        let run_id = match self.run_id {
            Some(text) => Some(text.parse().map_err(|error| InitError::RunId(text, error))?),
            None => None,
        };
        #[cfg(feature = "_network")]
        let (target, warnings) = Target::of(&self.otlp, self.warnings)?;
        #[cfg(not(feature = "_network"))]
        let warnings = self.otlp.none_is_asked_for().map(|()| self.warnings)?;
        Ok(Settings {
            enabled: self.enabled,
            // Fails only where the working directory is lost; then the relative path is no worse.
            output_dir: std::path::absolute(&self.output_dir).unwrap_or(self.output_dir),
            service_name: self.service_name.unwrap_or_else(unknown_service),
            run_id,
            process_label: self.process_label,
            resource: self.resource,
            level: self.level,
            memory_limit: self.memory_limit,
            mapping: self.mapping,
            jsonl: self.jsonl,
            jsonl_max_bytes: self.jsonl_max_bytes,
            outbox: self.outbox,
            limits: self.limits,
            sampler: self.sampler,
            trust_callers: self.trust_callers,
            tail: self.tail,
            batching: self.batching.fitted(),
            shutdown_timeout: self.shutdown_timeout,
            log_level: self.log_level,
            viewer: self.viewer.then_some(self.viewer_port),
            warnings,
            #[cfg(feature = "_network")]
            target,
        })
    }
}

impl Settings {
    /// The service's name as the beginning of a file's name: all but `[A-Za-z0-9._-]` is `_`, cut
    /// to 64.
    pub(crate) fn service_in_file_name(&self) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let characters = self.service_name.chars().take(SERVICE_IN_FILE_NAME);
        characters.map(|c| if allowed(c) { c } else { '_' }).collect()
    }

    /// The variables by which a child process joins the run and records as its parent does now.
    pub(crate) fn child_env(&self, run_id: &RunId, level: u8) -> Vec<(&'static str, OsString)> {
        vec![
            ("STAGETRACE_DIR", self.output_dir.clone().into()),
            ("STAGETRACE_RUN_ID", run_id.as_str().into()),
            ("STAGETRACE_LEVEL", level.to_string().into()),
            ("STAGETRACE_MEMORY_LIMIT", self.memory_limit.to_string().into()),
            ("STAGETRACE_MAPPING", word_of(self.mapping).into()),
            ("STAGETRACE_JSONL", self.jsonl.to_string().into()),
            ("STAGETRACE_JSONL_MAX_BYTES", self.jsonl_max_bytes.to_string().into()),
            ("STAGETRACE_OUTBOX_MAX_BYTES", self.outbox.max_bytes.to_string().into()),
            ("STAGETRACE_OUTBOX_MAX_AGE", self.outbox.max_age.as_millis().to_string().into()),
            // The run has its viewer, if it wants one.
            ("STAGETRACE_VIEWER", "false".into()),
        ]
    }
}

fn unknown_service() -> String {
    match Process::this().executable {
        Some(executable) => format!("unknown_service:{executable}"),
        None => "unknown_service".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: TraceConfig) -> InitError {
        config.settings().expect_err("the configuration is wrong")
    }

    #[test]
    fn what_the_program_got_wrong_is_an_error_that_names_it() {
        let config = TraceConfig::new;
        assert_eq!(refusal(config().level(4)), InitError::Level(4));
        assert_eq!(refusal(config().memory_limit(4096)), InitError::MemoryLimit(4096));
        assert_eq!(refusal(config().memory_limit(64 << 20)), InitError::MemoryLimit(64 << 20));
        let ratio = |ratio| refusal(config().sampler(Sampler::Ratio(ratio)));
        assert_eq!(ratio(1.5), InitError::SamplingRatio(1.5));
        assert!(matches!(ratio(f64::NAN), InitError::SamplingRatio(_)));
        let tail = |change: fn(&mut TailSampling)| refusal(config().tail_sampling(change));
        assert_eq!(tail(|tail| tail.fraction = -0.1), InitError::SamplingRatio(-0.1));
        assert_eq!(tail(|tail| tail.per_second = -1.0), InitError::SamplingRate(-1.0));
        assert_eq!(refusal(config().output_dir("")), InitError::OutputDir);
        assert_eq!(refusal(config().resource_attribute("", 1_i64)), InitError::ResourceKey);
        for run_id in ["a/b", "..", "", "a b", &"x".repeat(129)] {
            let error = refusal(config().run_id(run_id));
            assert!(matches!(&error, InitError::RunId(text, _) if text == run_id), "{error}");
        }
        let text = refusal(config().run_id("a/b")).to_string();
        assert!(text.starts_with("\"a/b\" is no run id: "), "{text}");
    }

    #[test]
    fn the_defaults_are_no_mistake_and_are_filled_in() {
        let settings = TraceConfig::new().settings().expect("the defaults are right");
        assert!(settings.output_dir.is_absolute() && settings.output_dir.ends_with("traces"));
        assert!(settings.service_name.starts_with("unknown_service:"), "{}", settings.service_name);
        assert_eq!(settings.run_id, None);
    }

    #[test]
    fn a_batch_never_exceeds_its_queue() {
        let config = TraceConfig::new().batching(|batching| batching.max_queue_size = Some(100));
        let settings = config.settings().expect("sizes are fitted, not refused");
        assert_eq!(settings.batching.max_export_batch_size, 100);
    }

    #[test]
    fn a_file_name_holds_only_what_every_file_system_takes() {
        let in_file_name = |service: &str| {
            let settings = TraceConfig::new().service_name(service).settings();
            settings.expect("any service name will do").service_in_file_name()
        };
        assert_eq!(in_file_name("diffusion-2.1_b"), "diffusion-2.1_b");
        assert_eq!(in_file_name("../a b:ü/\n"), ".._a_b____");
        assert_eq!(in_file_name(&"ü".repeat(100)), "_".repeat(64));
    }

    #[test]
    fn a_child_process_reads_what_its_parent_set() {
        let parent = TraceConfig::new()
            .output_dir("runs")
            .memory_limit(2 << 20)
            .mapping(Mapping::RunDir)
            .jsonl(false)
            .jsonl_max_bytes(7)
            .outbox_max_bytes(8)
            .outbox_max_age(Duration::from_secs(9));
        let parent = parent.settings().expect("the configuration is right");
        let run_id: RunId = "run-1".parse().expect("a run id");
        let child_env = parent.child_env(&run_id, 3);

        let lookup = |name: &str| {
            child_env.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone())
        };
        let child = TraceConfig::from_lookup(lookup).and_then(TraceConfig::settings);
        let expected = Settings { run_id: Some(run_id), level: 3, ..parent };
        assert_eq!(child, Ok(expected));
    }
}
