//! Plain settings: defaults with reasons, the program's own calls, and the environment.
//!
//! What the program says beats the environment; there a variable of the signal beats the general
//! one, and that the default. A bad variable never fails a program: it becomes a [`ConfigWarning`].

mod choice;
mod environment;
mod from_env;
mod host;
mod limits;
mod near;
mod otlp;
mod resource;
mod sampler;
mod settings;
mod tail;
mod warning;

#[cfg(feature = "clap")]
mod args;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use stagetrace_wire::span::Value;

use crate::error::InitError;
use environment::Environment;

#[cfg(feature = "clap")]
pub use args::TraceArgs;
pub use choice::{LogLevel, Mapping};
pub(crate) use limits::OutboxLimits;
pub use limits::{Batching, SpanLimits};
#[cfg(all(feature = "_network", feature = "tls"))]
pub(crate) use otlp::Given;
pub use otlp::{Compression, Otlp, OtlpError, Protocol};
#[cfg(feature = "_network")]
pub(crate) use otlp::{Endpoint, Mistake, Proxy, Target};
pub(crate) use resource::Process;
pub use sampler::Sampler;
pub(crate) use sampler::within;
pub(crate) use settings::Settings;
pub use tail::TailSampling;
#[cfg(feature = "_network")]
pub(crate) use warning::Shown;
pub use warning::{ConfigProblem, ConfigWarning};

/// The most detailed level; greater ones act as this one.
pub(crate) const MAX_LEVEL: u8 = 3;
/// The pool grows in steps of this size, so less would be none.
pub(crate) const MIN_MEMORY: usize = 1 << 20;
/// What a pool needs at most, however long the job runs.
pub(crate) const MAX_MEMORY: usize = 32 << 20;

/// How this process records: where to, how much, under which name.
///
/// Nothing configured means: recording and `.jsonl` below `./traces`, level 2, no network.
///
/// ```
/// use stagetrace::TraceConfig;
///
/// # fn main() -> Result<(), stagetrace::InitError> {
/// let config = TraceConfig::from_env()?.service_name("diffusion").level(3);
/// # let _ = config;
/// # Ok(())
/// # }
/// ```
///
/// The setters only store; [`init`](crate::init) checks them all and says which one is wrong.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a configuration does nothing until it is given to `init`"]
pub struct TraceConfig {
    enabled: bool,
    output_dir: PathBuf,
    service_name: Option<String>,
    run_id: Option<String>,
    process_label: Option<String>,
    resource: Vec<(String, Value)>,
    level: u8,
    memory_limit: usize,
    mapping: Mapping,
    jsonl: bool,
    jsonl_max_bytes: u64,
    outbox: OutboxLimits,
    limits: SpanLimits,
    sampler: Sampler,
    trust_callers: bool,
    tail: Option<TailSampling>,
    batching: Batching,
    otlp: Otlp,
    shutdown_timeout: Duration,
    log_level: LogLevel,
    viewer: bool,
    viewer_port: u16,
    warnings: Vec<ConfigWarning>,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            output_dir: PathBuf::from("./traces"),
            service_name: None,
            run_id: None,
            process_label: None,
            resource: Vec::new(),
            level: 2,
            memory_limit: MAX_MEMORY,
            mapping: Mapping::Auto,
            jsonl: true,
            // Small enough to open in an editor and to read in one go.
            jsonl_max_bytes: 256 << 20,
            outbox: OutboxLimits::default(),
            limits: SpanLimits::default(),
            sampler: Sampler::default(),
            trust_callers: true,
            tail: None,
            batching: Batching::default(),
            otlp: Otlp::default(),
            // A supervisor that sends SIGTERM waits 10 s or longer before it kills.
            shutdown_timeout: Duration::from_secs(5),
            log_level: LogLevel::default(),
            viewer: false,
            // A free one, so that runs do not get into each other's way.
            viewer_port: 0,
            warnings: Vec::new(),
        }
    }
}

impl TraceConfig {
    /// The defaults. The environment is not read.
    pub fn new() -> Self {
        Self::default()
    }

    /// The defaults, changed by the process's environment: the `OTEL_*` variables that apply and
    /// our own `STAGETRACE_*`. `docs/configuration.md` lists them all.
    ///
    /// # Errors
    ///
    /// None today. Nothing that stands in the environment is an error: what cannot be used becomes
    /// one of the [`warnings`](Self::warnings), which the recorder shows once.
    pub fn from_env() -> Result<Self, InitError> {
        let asked = RefCell::new(BTreeSet::new());
        let mut config = Self::from_lookup(|name| {
            asked.borrow_mut().insert(name.to_owned());
            std::env::var_os(name)
        })?;
        let present = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        config.warnings.extend(unread(present, &asked.into_inner()));
        Ok(config)
    }

    /// Like [`from_env`](Self::from_env), with the variables that `lookup` gives: for tests, and
    /// for programs that keep their environment elsewhere.
    ///
    /// # Errors
    ///
    /// As [`from_env`](Self::from_env).
    ///
    /// ```
    /// use stagetrace::TraceConfig;
    ///
    /// # fn main() -> Result<(), stagetrace::InitError> {
    /// let lookup = |name: &str| (name == "STAGETRACE_LEVEL").then_some("lots");
    /// let config = TraceConfig::from_lookup(lookup)?;
    /// let warning = config.warnings()[0].to_string();
    /// assert_eq!(warning, "STAGETRACE_LEVEL=lots is not a level, 0 to 3: ignored");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_lookup<V: Into<OsString>>(
        lookup: impl Fn(&str) -> Option<V>,
    ) -> Result<Self, InitError> {
        let lookup = |name: &str| lookup(name).map(Into::into);
        let mut env = Environment::new(&lookup);
        let mut config = Self::default();
        from_env::apply(&mut config, &mut env);
        config.warnings = env.warnings;
        Ok(config)
    }

    /// What the environment got wrong, in the order in which it was read. What only several settings together show, as
    /// an endpoint that needs a feature, is found by [`init`](crate::init): see [`status`](crate::status).
    #[must_use]
    pub fn warnings(&self) -> &[ConfigWarning] {
        &self.warnings
    }

    /// Whether anything is recorded; true by default. When off, a trace that a request brings along
    /// is still passed on.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Where runs lie: each in a directory of its own, named by its run id. `./traces` by default.
    /// If it cannot be written, recording goes on without files, and warns once.
    pub fn output_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.output_dir = dir.into();
        self
    }

    /// The service's name: `service.name` and the beginning of the file names. By default
    /// `unknown_service:<executable>`, as for an empty name.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = Some(name.into()).filter(|name| !name.is_empty());
        self
    }

    /// The run that this process belongs to; by default one of its own. Child processes get it by
    /// [`child_env`](crate::child_env). 1 to 128 of `A-Z a-z 0-9 . _ -`.
    pub fn run_id(mut self, run_id: impl Into<String>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// A short name of this process among those of its run, as in `worker 3`.
    pub fn process_label(mut self, label: impl Into<String>) -> Self {
        self.process_label = Some(label.into());
        self
    }

    /// An attribute of the whole process. It replaces one of the same key from the environment.
    pub fn resource_attribute(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set_resource(key.into(), value.into());
        self
    }

    /// The most detailed level that is recorded: 1 important, 2 normal (the default), 3 detail. 0
    /// records nothing.
    pub fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// The most memory in bytes that spans on their way out may take: 1 MiB to 32 MiB, 32 MiB by
    /// default. It grows to that only if needed. What does not fit is dropped and counted.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Where the mapped recording lies; [`Mapping::Auto`] by default.
    pub fn mapping(mut self, mapping: Mapping) -> Self {
        self.mapping = mapping;
        self
    }

    /// Whether spans are written as OTLP/JSON lines; true by default. Without them they wait in the recording until every
    /// exporter has them, or go to a spool in the run's directory, of 64 MiB at most, when an exporter fails or is slow.
    pub fn jsonl(mut self, jsonl: bool) -> Self {
        self.jsonl = jsonl;
        self
    }

    /// Size in bytes at which a `.jsonl` file is closed and the next one begun; 256 MiB by default,
    /// 0 means never.
    pub fn jsonl_max_bytes(mut self, bytes: u64) -> Self {
        self.jsonl_max_bytes = bytes;
        self
    }

    /// Bytes that may wait in the run's directory for an OTLP endpoint that takes no spans now; 256 MiB by default, 0 means
    /// that none wait. They are sent, the oldest first, when it takes spans again: by this process or, if it ends before
    /// that, by the next one that sends to the same endpoint, or by [`recover`](crate::recover). When there is no room left,
    /// the oldest go, and are counted as failed.
    pub fn outbox_max_bytes(mut self, bytes: u64) -> Self {
        self.outbox.max_bytes = bytes;
        self
    }

    /// How long spans wait there; a day by default. Those that have waited longer are thrown away, and counted as failed.
    pub fn outbox_max_age(mut self, age: Duration) -> Self {
        self.outbox.max_age = age;
        self
    }

    /// Changes how much one span may hold.
    ///
    /// ```
    /// # use stagetrace::TraceConfig;
    /// let config = TraceConfig::new().span_limits(|limits| limits.events = 16);
    /// ```
    pub fn span_limits(mut self, change: impl FnOnce(&mut SpanLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Which traces are sampled; [`Sampler::ParentBasedAlwaysOn`] by default.
    pub fn sampler(mut self, sampler: Sampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// Whether it counts what a request brings as its sender's wish: that its trace be exported whatever samplers say
    /// (`stagetrace=f:1` in a `tracestate`, see [`TraceState::force`](crate::TraceState::force)), and at which level it is
    /// recorded (`l:3` there, or `level`); true by default. If not, neither counts here, and neither is sent on.
    ///
    /// To be switched off where requests come from anybody, so that nobody can have more recorded than is wanted. That a
    /// sender has sampled its trace is another matter, which the [`sampler`](Self::sampler) judges.
    pub fn trust_callers(mut self, trust: bool) -> Self {
        self.trust_callers = trust;
        self
    }

    /// Changes how spans are gathered for exporters that send batches.
    pub fn batching(mut self, change: impl FnOnce(&mut Batching)) -> Self {
        change(&mut self.batching);
        self
    }

    /// Where spans are sent over the network, beside the local files: nowhere by default. What is said here beats what
    /// the environment says, setting by setting, and so do later calls what earlier ones said.
    ///
    /// ```
    /// # use stagetrace::{Otlp, TraceConfig};
    /// let config = TraceConfig::new().otlp(Otlp::http("http://localhost:4318"));
    /// ```
    pub fn otlp(mut self, otlp: Otlp) -> Self {
        self.otlp = self.otlp.changed_by(otlp);
        self
    }

    /// Longest time that dropping the guard of [`init`](crate::init) may take; 5 s by default.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// From which severity on stagetrace says something about itself on standard error;
    /// [`LogLevel::Info`] by default.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = level;
        self
    }

    /// Whether a viewer is started beside this process, whose address stands on standard error and in
    /// [`status`](crate::status); false by default.
    ///
    /// It is the program `stagetrace-viewer`, beside this one or on `PATH`, and serves the run's directory to this
    /// machine. If it is not there, a line says how to get it. Of the processes of a run the first starts it. It ends with
    /// the guard of [`init`](crate::init), or with the process, however that ends.
    pub fn viewer_enabled(mut self, enabled: bool) -> Self {
        self.viewer = enabled;
        self
    }

    /// The port at which the viewer listens; 0, the default, is a free one.
    pub fn viewer_port(mut self, port: u16) -> Self {
        self.viewer_port = port;
        self
    }

    /// `service.name` has a field of its own, whichever way it comes.
    fn set_resource(&mut self, key: String, value: Value) {
        match value {
            Value::Str(name) if key == "service.name" => self.service_name = Some(name),
            value => {
                self.resource.retain(|(other, _)| *other != key);
                self.resource.push((key, value));
            }
        }
    }
}

/// Warnings of variables that bear our prefix but that nothing asked for.
fn unread(
    present: impl Iterator<Item = String>,
    asked: &BTreeSet<String>,
) -> impl Iterator<Item = ConfigWarning> {
    let unread = present.filter(|name| name.starts_with("STAGETRACE_") && !asked.contains(name));
    unread.map(|variable| {
        let ours = asked.iter().filter(|name| name.starts_with("STAGETRACE_"));
        let nearest = near::nearest(&variable, ours.map(String::as_str)).map(str::to_owned);
        ConfigWarning { variable, problem: ConfigProblem::UnknownName { nearest } }
    })
}
