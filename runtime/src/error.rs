//! What can go wrong and whose fault it is.
//!
//! Misuse by the program is an error, returned by the call that was misused. Trouble of the
//! environment (a full disk, a bad variable, an endpoint that does not answer) degrades: it warns
//! once, shows in `status()`, and the job goes on. A bug of stagetrace itself never panics into the
//! caller.

use crate::config::OtlpError;
use stagetrace_wire::id::RunIdError;
use std::time::Duration;

/// Why [`init`](crate::init) refused to start: each case is a mistake in the program's own code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InitError {
    /// `init` was called a second time in this process.
    #[error(
        "stagetrace is already initialised in this process; keep the first guard until the end"
    )]
    AlreadyInitialised,

    /// [`TraceConfig::level`](crate::TraceConfig::level) was given a level that does not exist.
    #[error("level {0} does not exist: levels go from 0 (off) to 3 (detail)")]
    Level(u8),

    /// [`TraceConfig::run_id`](crate::TraceConfig::run_id) was given a text that cannot name a
    /// directory.
    #[error("{0:?} is no run id: {1}")]
    RunId(String, #[source] RunIdError),

    /// [`TraceConfig::output_dir`](crate::TraceConfig::output_dir) was given an empty path.
    #[error("the output directory is empty; write \".\" for the working directory")]
    OutputDir,

    /// [`TraceConfig::memory_limit`](crate::TraceConfig::memory_limit) is outside what a pool can
    /// have.
    #[error("a memory limit of {0} bytes is outside 1 MiB to 32 MiB")]
    MemoryLimit(usize),

    /// [`Sampler`](crate::Sampler) with a ratio that is no probability.
    #[error("a sampling ratio of {0} is outside 0 to 1")]
    SamplingRatio(f64),

    /// [`TailSampling`](crate::TailSampling) with a rate that is none.
    #[error("a sampling rate of {0} traces per second is no rate")]
    SamplingRate(f64),
    /// [`TraceConfig::otlp`](crate::TraceConfig::otlp) was given what cannot be used, or needs a feature of this crate.
    #[error("OTLP: {0}")]
    Otlp(#[from] OtlpError),

    /// [`TraceConfig::resource_attribute`](crate::TraceConfig::resource_attribute) was given an
    /// empty key.
    #[error("a resource attribute has an empty key")]
    ResourceKey,
}

/// Why a flush or a shutdown did not bring everything out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// Tracing was not started, is switched off, or has been stopped.
    #[error("tracing is not running")]
    NotRunning,

    /// The time given passed first. What was not written stays in the recording.
    #[error("not everything was exported within {0:?}")]
    Deadline(Duration),

    /// These sinks failed; the others are done.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Sinks(Vec<SinkError>),
}

/// Why a sink could not let go of its spans.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sink}: {problem}")]
pub struct SinkError {
    /// The sink.
    pub sink: &'static str,
    /// What happened, in words.
    pub problem: String,
}
