//! Stages of requests and rollouts: declared once, checked by the compiler, recorded in nanoseconds, safe from
//! `kill -9`, exported over OpenTelemetry.
//!
//! # Declare
//!
//! The stages of a pipeline are an enum. A request says which field carries its trace; what it records is opt-in. A
//! function says which stage it is, and of which request:
//!
//! ```
//! use stagetrace::{Stages, TraceState, Traced, stage};
//!
//! #[derive(Stages, Clone, Copy)]
//! enum DiffStage {
//!     #[stage(level = 1)]
//!     SchedulerDispatch, // exported as "scheduler_dispatch"
//!     #[stage(level = 1, within = SchedulerDispatch)]
//!     GpuForward,
//! }
//!
//! #[derive(Traced)]
//! #[traced(name = "generate", stages = DiffStage)]
//! struct Generate {
//!     #[traced(id)]
//!     id: String,
//!     #[traced(attr = "diffusion.steps")]
//!     steps: u32,
//!     prompt: String, // not recorded
//!     #[traced(state)]
//!     trace: TraceState,
//! }
//!
//! #[stage(DiffStage::GpuForward, request)]
//! fn forward(request: &Generate) -> Result<Vec<u8>, std::io::Error> {
//!     Ok(vec![0; request.prompt.len()]) // an `Err` or a panic here is the stage's failure
//! }
//! ```
//!
//! A stage of another pipeline, an undeclared one, a request without a trace, a value that cannot be recorded: each is
//! an error of the compiler, on the token that is wrong.
//!
//! # Record
//!
//! [`init`] starts the process's recorder and gives a guard; nothing configured means a file per process below
//! `./traces`, and no network. [`Traced::begin`] opens a request's root span and [`Traced::finish`] ends it, with its
//! attributes, its outcome and the time it spent in each stage. The request's [`TraceState`] is its trace: move it,
//! clone it, send it to a thread, or serialise the request, in any serde format, and whoever reads it goes on in the same
//! trace.
//!
//! Code without stages has [`span!`], [`event!`], [`set_attribute`], [`inject`] and [`extract`].
//!
//! # Ask
//!
//! [`flush`] has everything leave the process within a deadline and says what did not. [`stats`] says what became of
//! every span, by cause; [`status`] where it is written and how each sink stands. [`set_level`] changes the level of
//! detail while the process runs. For tests there is [`testing::capture`].
//!
//! # Send
//!
//! Without features nothing is sent. These add to each other:
//!
//! | feature | what it adds |
//! |---|---|
//! | `otlp-grpc`, `otlp-http` | spans to an OTLP endpoint: [`TraceConfig::otlp`], or `OTEL_EXPORTER_OTLP_ENDPOINT` |
//! | `gzip`, `zstd` | [`Compression`] of what is sent |
//! | `tls` | `https` endpoints |
//! | `otel` | any `SpanExporter` of `opentelemetry_sdk` |
//! | `metrics` | durations of stages and requests through OpenTelemetry's metrics API |
//! | `prometheus` | a page of these metrics for Prometheus to scrape |
//! | `clap` | options of a command line |
//! | `wgpu` | passes on the GPU as spans |
//!
//! # Where things are
//!
//! The modules follow the flow, and import only from their left: `stage` and `request` declare, `record` writes on the
//! caller's threads, `chunk` is the one boundary, `collect` reads in the background, `export` writes out.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("stagetrace needs a 64-bit target: a word of its records holds an address");

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private0;
mod adopt;
mod chunk;
mod clock;
mod collect;
mod complain;
mod config;
mod error;
mod export;
mod files;
#[cfg(unix)]
mod fork;
mod init;
mod integrations;
mod macros;
mod record;
mod recover;
mod request;
mod run;
mod signals;
mod stage;
mod stats;
mod sync;
pub mod testing;
mod viewer;

// Declare.
pub use stage::{SpanKind, Stage, StageSet};
pub use stagetrace_macros::{Stages, Traced, request, stage};

// Requests.
pub use record::{Accepts, Carrier, Parent, Traced};
pub use request::{Failure, Judged, Outcome, StageOutcome, TraceState};

// Record.
pub use clock::monotonic_ns;
pub use record::{
    Attached, BeginSpan, Consecutive, Entered, InSpan, Inside, Position, Span, Value, add_event,
    attach, current, extract, inject, link, next, record_interval, set_attribute, set_attributes,
};

// Start, ask, stop.
pub use clock::ClockSource;
#[cfg(feature = "clap")]
pub use config::TraceArgs;
pub use config::{
    Batching, Compression, ConfigProblem, ConfigWarning, LogLevel, Mapping, Otlp, OtlpError,
    Protocol, Sampler, SpanLimits, TailSampling, TraceConfig,
};
pub use error::{FlushError, InitError, SinkError};
pub use export::Exporter;
pub use init::{
    Status, TraceGuard, child_env, flush, init, init_with, level, set_level, stats, status,
};
pub use recover::{Recovery, recover};

// Other libraries' worlds.
#[cfg(feature = "metrics")]
pub use integrations::metrics;
#[cfg(feature = "otel")]
pub use integrations::otel;
#[cfg(feature = "wgpu")]
pub use integrations::wgpu;

// Counters.
pub use chunk::DropCause;
pub use stats::{ClockStats, SinkStatus, SpoolStats, Stats};
